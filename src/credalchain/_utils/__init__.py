"""Private utilities shared by the subpackages."""
