"""`python -m augury`, which torchrun can start."""

from augury.cli.main import main

if __name__ == "__main__":
    main()
