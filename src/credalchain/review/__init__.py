"""The review page: people answer what was left open."""
