"""Errors whose messages say what is required, what was given, and what to do.

Everything a user can get wrong raises an `AuguryError`; the command line prints its message and no traceback.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class AuguryError(Exception):
    """Base of every error that Augury raises on purpose."""


class AuguryWarning(UserWarning):
    """Something runs, and is probably not what was meant."""


class InputError(AuguryError, ValueError):
    """Something the user gave does not fit: data, a name, a number, a path."""


class RunError(AuguryError, RuntimeError):
    """A run cannot continue: its loss is not finite, its folder cannot be written, its checkpoint is damaged."""


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, or its type if it has none."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def choose(what: str, given: str, options: Iterable[str]) -> str:
    """Return `given` if it is one of `options`; otherwise raise an error that suggests the nearest."""
    known = sorted(options)
    if given in known:
        return given
    near = get_close_matches(str(given), known, n=1, cutoff=0.5)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    raise InputError(f"{what} must be one of {', '.join(known)}; got '{given}'.{hint}")
