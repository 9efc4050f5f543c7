"""What model files are made of: an archive of plain arrays, and checks of all that is in it."""
