"""What an item of a paper is made of, and every paper with its items. Free of torch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from augury.core.errors import InputError, choose
from papers.claims import Claim, Pair
from papers.grid import Run
from papers.learning import run_cell
from papers.results import Cell, Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCALES = ("quick", "small", "paper")
"""Seconds, on a few images; at most about an hour on two cores; the paper's own settings."""

Grid = Callable[[str, Sequence[int]], list[Cell]]
Write = Callable[[Sequence[Result]], str]
Draw = Callable[[Sequence[Result]], "Mapping[str, Figure]"]


def no_pairs(results: Sequence[Result]) -> list[Pair]:
    return []


def no_figures(results: Sequence[Result]) -> "Mapping[str, Figure]":
    return {}


@dataclass(frozen=True)
class Item:
    """One table or figure: `ITEM` of the file of its name."""

    what: str  # what it shows, in a line
    grid: Grid  # from a scale and the seeds to the cells, the most telling first
    write: Write  # from results, some of which may be missing, to Markdown: ours beside the paper's
    draw: Draw = no_figures  # from results to figures by name
    run: Run = run_cell  # runs one cell
    scales: tuple[str, ...] = SCALES
    claims: tuple[Claim, ...] = ()  # what the paper says that these results can refute
    pairs: Callable[[Sequence[Result]], list[Pair]] = no_pairs  # from results to the numbers that both have


@dataclass(frozen=True)
class Paper:
    """A title, and the names of the items."""

    title: str
    items: tuple[str, ...]
    ours: tuple[str, ...] = ()  # those of them that are no table or figure of the paper, but test a reason or a claim


PAPERS = {
    "lila": Paper(
        "Invariance Learning in Deep Neural Networks with Differentiable Laplace Approximations",
        ("recovery", "table1", "table2", "figure1", "figure2", "figure3", "ablation"),
        ours=("recovery",),
    ),
    "invariant_weights": Paper(
        "Learning Invariant Weights in Neural Networks",
        (
            *("figure1", "figure2", "table1", "table4", "table4_prior", "table5", "figure5", "table2"),
            *("table7", "table6", "table3", "table8", "figure3", "figure4", "figure6"),
        ),
        ours=("table4_prior",),
    ),
    "genuine": Paper(
        "On genuine invariance learning without weight-tying",
        ("table", "saliency", "drift", "spectrum", "proposition", "verdicts"),
        ours=("verdicts",),
    ),
    "hyperinvariances": Paper(
        "HyperInvariances: Amortizing Invariance Learning", ("table1", "table2", "table3", "figure1")
    ),
    "policies": Paper("Augmentation policies", ("table",)),
}
"""By the name of the folder; `policies` is no paper but our own comparison."""


def item(paper: str, name: str) -> Item:
    """Return an item of a paper, imported now."""
    choose("paper", paper, PAPERS)
    choose(f"item of paper '{paper}'", name, PAPERS[paper].items)
    for package in ("matplotlib", "scipy"):
        if find_spec(package) is None:
            raise InputError(f"{package} must be installed; it is not. In the checkout: pip install -e '.[papers]'")
    found: Item = import_module(f"papers.{paper}.{name}").ITEM
    return found
