"""One short file per command."""
