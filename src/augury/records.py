"""What was learned, as plain data: frozen, free of torch, JSON in and out."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from augury.core.errors import InputError

VERDICTS = ("invariant", "not invariant", "undecided", "given")
"""What can be said of a width; "given" is one that was fixed by the user."""


class Record:
    """A frozen dataclass that goes to JSON and comes back; an unknown key is an error."""

    def to_json(self) -> dict[str, Any]:
        """Return the record as plain dictionaries, lists, strings and numbers.

        Returns
        -------
        dict
            What `json.dumps` takes.
        """
        return asdict(self)  # type: ignore[call-overload]

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild a record from what `to_json` gave.

        Parameters
        ----------
        values
            The fields.

        Returns
        -------
        Self
            The record.
        """
        known = {f.name for f in fields(cls)}  # type: ignore[arg-type]
        unknown = sorted(set(values) - known)
        if unknown:
            raise InputError(
                f"{cls.__name__} has no field {unknown[0]!r}; it has {', '.join(sorted(known))}. "
                f"Was the file written by another version of Augury?"
            )
        return cls(**values)

    def dumps(self) -> str:
        """Return the record as indented JSON text.

        Returns
        -------
        str
            The text, ending in a newline.
        """
        return json.dumps(self.to_json(), indent=2, allow_nan=False) + "\n"


@dataclass(frozen=True)
class Width(Record):
    """One learned width, as a person reads it."""

    value: float
    """The width in its unit."""
    unit: str
    """"deg", "px", "factor", or "" for a plain number."""
    low: float | None = None
    """Lower end of a 95 % interval, where the method gives one."""
    high: float | None = None
    """Upper end."""
    verdict: str = "undecided"
    """One of `VERDICTS`."""
    planted: float | None = None
    """The truth, where the data set carries one."""


@dataclass(frozen=True)
class Invariance(Record):
    """What one run learned."""

    widths: dict[str, Width]
    """Every width by the name of its generator."""
    method: str
    """The method that learned it."""
    model: str
    """The network's name."""
    data: str
    """Where the data came from."""
    test_accuracy: float | None = None
    """On the test set; None for regression or where there is none."""
    test_error: float | None = None
    """Root mean squared error on the test set, for regression."""
    log_evidence: float | None = None
    """Log marginal likelihood (or the bound that was maximised), summed over the training set."""
    log_evidence_without: float | None = None
    """The same with all widths at zero."""
    seconds: float = 0.0
    """Training time."""
    run: str | None = None
    """The run folder, where there is one."""

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild the record and its widths.

        Parameters
        ----------
        values
            The fields.

        Returns
        -------
        Self
            The record.
        """
        widths = {name: Width.from_json(width) for name, width in values.get("widths", {}).items()}
        return super().from_json({**values, "widths": widths})
