"""The papers' tables and figures as grids of runs, ours beside theirs; one folder per paper, one file per item."""
