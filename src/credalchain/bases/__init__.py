"""Credal binary models: what gives a chain its lower and upper probabilities."""
