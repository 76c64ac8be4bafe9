"""The saliency figure: maps of an image's views, moved back to the image's frame. Invariant ones are all alike."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from papers.catalog import Item
from papers.claims import Claim, Held
from papers.figures import colours, mosaic
from papers.genuine.runs import LEVELS, by_row, grid, group_of, label, run
from papers.markdown import grouped, mean_of, spread, table
from papers.results import Result


def write(results: Sequence[Result]) -> str:
    shown = [r for r in results if r.extra.get("maps")]
    rows = [
        [group, method, *(spread(image["SI"][1:], 2) for image in runs[0].extra["maps"])]
        for (_, group, _, method), runs in grouped(shown, by_row).items()
    ]
    images = [f"image {k + 1}" for k in range(len(shown[0].extra["maps"]) if shown else 0)]
    return (
        "Seed 0: the gradient of the largest logit for two test images and three of their views each, brought back to "
        "the frame of the image; red raises the logit, blue lowers it. Below, the mean cosine between the image's map "
        f"and those of its views.\n\n{table(['group', 'method', *images], rows)}"
    )


def draw(results: Sequence[Result]) -> Mapping[str, Figure]:
    """Draw a figure for each group: the views above, then the maps of each method."""
    figures = {}
    shown = [r for r in results if r.extra.get("maps")]
    for (group,), runs in grouped(shown, lambda cell: (group_of(cell),)).items():
        images = runs[0].extra["maps"]
        rows = [("views", [colours(view, LEVELS, signed=False) for image in images for view in image["views"]])]
        rows += [(label(r.cell), [colours(m, LEVELS) for i in r.extra["maps"] for m in i["maps"]]) for r in runs]
        names = [f"view {k}" if k else "image" for image in images for k in range(len(image["views"]))]
        figures[group] = mosaic(rows, names, f"{group}: red raises the largest logit, blue lowers it")
    return figures


def alike(results: Sequence[Result]) -> Held:
    """Return whether the maps of views are alike (cosine above .9) where the paper shows them so, and not else."""
    found = {}
    for r in results:
        if r.extra.get("maps"):
            SI = mean_of(s for image in r.extra["maps"] for s in image["SI"][1:]) or 0.0
            found[f"{group_of(r.cell)} {label(r.cell)}"] = (SI > 0.9) is (r.cell.algorithm != "data_augmented")
    return found


ITEM = Item(
    "Saliency maps of an image's views, in the frame of the image.",
    grid, write, draw, run, claims=(Claim("maps of views are alike for WT and IR, not for DA", alike),),
)  # fmt: skip
