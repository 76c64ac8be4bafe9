"""What was learned, as plain data: frozen, free of torch, JSON in and out."""
