"""What several packages here share, and users need not know."""
