"""Classifier chains: labels one after the other, each given those before it."""
