"""Data in chunks, as they come from files that do not fit into memory or from a cluster."""
