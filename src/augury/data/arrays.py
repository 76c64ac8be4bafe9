"""numpy arrays, torch tensors or nested lists that the user already holds."""

from typing import Any

from augury.data.assemble import Options, Part, assemble
from augury.data.dataset import Dataset
from augury.data.pixels import as_array, infer_kind, to_inputs


def read_arrays(
    pair: tuple[Any, Any],
    options: Options,
    *,
    test: tuple[Any, Any] | None = None,
    kind: str | None = None,
    class_names: tuple[str, ...] = (),
    source: str = "arrays",
) -> Dataset:
    """Make a data set of arrays."""
    x, y = map(as_array, pair)
    kind = infer_kind(x, kind)
    train = Part(to_inputs(x, kind), y)
    part_test = None
    if test is not None:
        x_test, y_test = map(as_array, test)
        part_test = Part(to_inputs(x_test, kind), y_test)
    return assemble(train, part_test, options, kind=kind, source=source, class_names=class_names)
