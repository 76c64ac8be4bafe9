"""The learned distribution over transformations, apart from the network it was learned with: JSON in and out.

The names of the widths are the words that `transforms.vocabulary` builds transformations from, so names, values and the
shape of an input are all that is needed to rebuild the distribution. Loads no torch until a transformation is made.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from augury.core.errors import InputError, RunError
from augury.core.files import write_text
from augury.records.record import Name, OneOf, Positive, Record, read_json
from augury.records.results import Invariance, Width
from augury.records.saved import AXES, check_shape

if TYPE_CHECKING:
    from augury.transforms.base import Transform

FORMAT = 1  # version of the JSON
SURE = ("invariant", "given")  # verdicts of widths that `Policy.sure` keeps


@dataclass(frozen=True)
class Policy(Record):
    """Which transformations, and how far, in their units."""

    widths: dict[str, Width]
    """Every width by the name of its generator, in the order in which they act."""
    kind: Annotated[str, OneOf(tuple(AXES))]
    """Kind of the data: "image", "signal", "points" or "coordinates"."""
    input_shape: list[Positive]
    """Shape of one input; pixels are those of such an input."""
    sampling: Name = "independent"
    """How the noise is drawn."""
    learned: dict[str, Name] = field(default_factory=dict)
    """What learned it: method, model, data."""
    format: int = FORMAT
    """Version of this record."""

    @classmethod
    def from_json(cls, values: Any) -> "Policy":
        """Rebuild the record."""
        if isinstance(values, dict) and values.get("format") != FORMAT:
            raise InputError(
                f"a policy of format {FORMAT} can be read; got format {values.get('format')!r}. "
                f"Export it again with this version: augury export RUN --to json."
            )
        return super().from_json(values)

    def check(self) -> None:
        """Raise unless shape and names are possible."""
        check_shape(self.kind, self.input_shape)
        if self.learned and set(self.learned) != {"method", "model", "data"}:
            raise InputError("what learned a policy must be a method, a model and data.")

    @classmethod
    def read(cls, path: str | Path) -> "Policy":
        """Read a policy from its JSON file, or from the folder of a run."""
        if Path(path).is_dir():
            from augury.export.card import policy_of_run

            return policy_of_run(path)
        try:
            return read_json(Path(path), cls.from_json)
        except RunError as error:
            raise InputError(
                f"a policy must be a run's folder, or a file that augury export --to json wrote. {error}"
            ) from error

    def write(self, path: str | Path) -> None:
        """Write the policy as JSON, atomically."""
        write_text(Path(path), self.dumps())

    def sure(self) -> "Policy":
        """Return the policy without the widths that are undecided or not invariant."""
        kept = {name: width for name, width in self.widths.items() if width.verdict in SURE}
        return Policy(kept, self.kind, self.input_shape, self.sampling, self.learned)

    def widths_for(self, input_shape: Sequence[int] | None = None) -> dict[str, float]:
        """Return the widths in their units for inputs of a shape (default: its own); pixels and samples grow too."""
        ratio = 1.0
        if input_shape is not None:
            ratio = _side(self.kind, input_shape) / _side(self.kind, self.input_shape)
        return {n: w.value * (ratio if w.unit in ("px", "samples") else 1.0) for n, w in self.widths.items()}

    def settings(self, kind: str, input_shape: Sequence[int]) -> dict[str, Any]:
        """Return generators, widths and sampling: the settings with which `augury.learn` takes the policy as given."""
        if kind != self.kind:
            raise InputError(f"the policy is for data of kind '{self.kind}'; these are of kind '{kind}'.")
        widths = self.widths_for(input_shape)
        return {"generators": tuple(widths), "widths": widths, "sampling": self.sampling}

    def transform(self, input_shape: Sequence[int] | None = None) -> "Transform":
        """Return the distribution itself, its widths set, for inputs of a shape (default: the policy's own)."""
        from augury.transforms.compose import Identity
        from augury.transforms.vocabulary import build

        if not self.widths:
            return Identity()
        transform = build(list(self.widths), self.kind, input_shape or self.input_shape, self.sampling)
        transform.set_widths(self.widths_for(input_shape))
        return transform


def in_unit(value: float, unit: str) -> str:
    return f"x {value:.3g}" if unit == "factor" else f"{value:.4g} {unit}".strip()


def _side(kind: str, shape: Sequence[int]) -> int:
    """Return the length that pixels or samples are counted along."""
    return min(shape[1:]) if kind == "image" else shape[-1]


def policy_of(invariance: Invariance, kind: str, input_shape: Sequence[int], sampling: str = "independent") -> Policy:
    """Return the policy of a record of what was learned."""
    widths = {n: Width(w.value, w.unit, w.low, w.high, w.verdict) for n, w in invariance.widths.items()}
    learned = {"method": invariance.method, "model": invariance.model, "data": invariance.data}
    return Policy(widths, kind, list(input_shape), sampling, learned)
