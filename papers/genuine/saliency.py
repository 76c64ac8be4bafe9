"""The saliency figure: maps of an image's views, moved back to the image's frame. Invariant ones are all alike."""

from collections.abc import Mapping, Sequence

from papers.cell import Result
from papers.genuine.figures import by_row, label
from papers.genuine.run import LEVELS, run
from papers.genuine.settings import grid, group_of
from papers.item import Item
from papers.markdown import grouped, spread, table
from papers.mosaic import Row, mosaic


def write(results: Sequence[Result]) -> str:
    """Return how alike the maps in the figure are."""
    shown = [r for r in results if r.extra.get("maps")]
    rows = []
    for (_, group, _, method), runs in grouped(shown, by_row).items():
        maps = runs[0].extra["maps"]
        rows.append([group, method, *(spread(image["SI"][1:], 2) for image in maps)])
    head = [
        "group",
        "method",
        *(f"image {k + 1}" for k in range(len(shown[0].extra["maps"]) if shown else 0)),
    ]
    return (
        "Seed 0: the gradient of the largest logit for two test images and three of their views each, brought back to "
        "the frame of the image; red raises the logit, blue lowers it. Below, the mean cosine between the image's map "
        f"and those of its views.\n\n{table(head, rows)}"
    )


def draw(results: Sequence[Result]) -> Mapping[str, bytes]:
    """Draw a figure for each group: the views above, then the maps of each method."""
    figures = {}
    shown = [r for r in results if r.extra.get("maps")]
    for (group,), runs in grouped(shown, lambda cell: (group_of(cell),)).items():
        views = [view for image in runs[0].extra["maps"] for view in image["views"]]
        rows = [Row("views", views, signed=False)]
        rows += [Row(label(r.cell), [m for i in r.extra["maps"] for m in i["maps"]]) for r in runs]
        figures[f"{group}.svg"] = mosaic(rows, LEVELS)
    return figures


SALIENCY = Item("Saliency maps of an image's views, in the frame of the image.", grid, write, draw, run)
