"""How cautious to be, chosen by a promise about errors."""
