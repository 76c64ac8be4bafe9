"""One file per algorithm; each reads top to bottom like the paper's."""
