"""The ablation of paper A's appendix F: structure of the curvature (kron, diag, full) by output curvature.

`full` needs a small network, so all nine stand on toy points with a planted rotation; kron and diag on digits too.
"""

from collections.abc import Sequence

from papers.cell import Cell, Result
from papers.item import Item
from papers.lila.settings import TOY, digits, settings
from papers.markdown import accuracies, evidences, grouped, seconds, spread, table

OUTPUTS = ("ggn", "mc", "ef")
TOY_VARIANTS = ("rotated", "partially_rotated")
IMAGES = {"quick": 40, "small": 1000, "paper": 5000}
TEST_IMAGES = {"quick": 50, "small": 2000, "paper": None}


def grid(scale: str, seeds: Sequence[int]) -> list[Cell]:
    """Return the runs, seed by seed."""
    return [cell for seed in seeds for cell in (*_toy(scale, seed), *_digits(scale, seed))]


def _toy(scale: str, seed: int) -> list[Cell]:
    return [
        Cell("toy", variant, "toy_mlp", f"lila/{structure}-{output}", seed, chosen)
        for variant in (TOY_VARIANTS[:1] if scale == "quick" else TOY_VARIANTS)
        for structure in ("kron", "diag", "full")
        for output in OUTPUTS
        if (chosen := {**TOY[scale], "structure": structure, "output": output})
    ]


def _digits(scale: str, seed: int) -> list[Cell]:
    if scale == "quick":
        return []
    data, model = digits(scale), "cnn"
    base = settings(scale, data, model, "lila", 1000 if scale == "paper" else None)
    return [
        Cell(
            data,
            "rotated",
            model,
            f"lila/{structure}-{output}",
            seed,
            chosen,
            IMAGES[scale],
            TEST_IMAGES[scale],
        )
        for structure in ("kron", "diag")
        for output in OUTPUTS
        if (chosen := {**base, "structure": structure, "output": output})
    ]


def write(results: Sequence[Result]) -> str:
    """Return the learned rotation, accuracy and evidence for every combination."""
    rows = []
    for key, group in grouped(results, lambda c: (c.data, c.model, c.variant, c.method)).items():
        widths = [r.invariance.widths["rotation"] for r in group]
        rows.append([
            *key[:3],
            *key[3].removeprefix("lila/").split("-"),
            f"{spread([w.value for w in widths], 1)} (planted {widths[0].planted:g})",
            spread(accuracies(group), 2, 100),
            spread(evidences(group), 3),
            spread(seconds(group), 0),
        ])
    head = ["data", "network", "variant", "structure", "outputs", "rotation, deg", "test accuracy, %"]
    return (
        "The paper's appendix F finds that diag and ef do worse than kron and ggn. `mc` is our default, one sampled "
        "label per input. On toy points only rotation may act, on digits all "
        "six. On partially rotated toy points the fit of this network asks for less than the classes allow.\n\n"
        + table([*head, "log evidence per input", "seconds"], rows)
    )


ABLATION = Item("Structure of the curvature by output curvature.", grid, write)
