"""The command line: commands parse, call the library and print."""
