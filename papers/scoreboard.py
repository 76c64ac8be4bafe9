"""`python -m papers scoreboard`: what of every paper's claims the results on disk hold, item by item.

Writes the first table of docs/results/README.md between two marks, and a picture of every number that both have.
Nothing is typed in: claims are checked against the raw results, and only a reason beside a claim is text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from augury.core.errors import InputError
from augury.core.files import write_text
from papers.catalog import PAPERS, item
from papers.claims import Claim, Held, Pair, counted
from papers.markdown import NONE, table
from papers.reproduce import DOCS, Request, table_rows
from papers.results import Result

BEGIN, END = "<!-- scoreboard -->", "<!-- end of the scoreboard -->"
LETTERS = {"lila": "A", "invariant_weights": "B", "hyperinvariances": "C", "genuine": "D"}
"""What docs and docstrings call each paper."""
PICTURE = "scoreboard.svg"


@dataclass(frozen=True)
class Row:
    """One item: its results, of how many cells, and which comparisons hold."""

    paper: str
    item: str
    results: Sequence[Result]
    cells: int  # of the grid, for the seeds that have results
    held: dict[Claim, Held]
    pairs: list[Pair]


def rows(folder: Path = DOCS) -> list[Row]:
    """Judge every item of the four papers."""
    found = []
    for paper in LETTERS:
        for name in PAPERS[paper].items:
            entry, results = item(paper, name), table_rows(Request(paper, name, out=folder), "small")
            cells = len(entry.grid("small", sorted({r.cell.seed for r in results}) or [0]))
            held = {claim: answers for claim in entry.claims if (answers := claim.check(results))}
            found.append(Row(paper, name, results, cells, held, entry.pairs(results)))
    return found


def text(judged: Sequence[Row]) -> str:
    """Return the table, and below it the comparisons that do not hold, each with its reason."""
    lines: list[list[str]] = []
    failed: list[str] = []
    near: list[str] = []
    once: dict[tuple[str, str, str], bool | None] = {}
    for row in judged:
        letter, link = LETTERS[row.paper], f"[{row.item}]({row.paper}_{row.item}.md)"
        answers = [answer for held in row.held.values() for answer in held.values()]
        score = counted(answers) if answers else NONE
        seeds, done = len({r.cell.seed for r in row.results}), f"{len(row.results)} of {row.cells}"
        lines.append([letter, link if row.results else row.item, done, str(seeds), str(len(row.held)), score])
        for claim, held in row.held.items():
            once |= {(row.paper, claim.words, name): answer for name, answer in held.items()}
            if open_ := [name for name, answer in held.items() if answer is None]:
                near.append(f"- **{letter} {row.item}**, {claim.words}: {'; '.join(open_)}.\n")
            if wrong := [name for name, answer in held.items() if answer is False]:
                where = f"not in {len(wrong)} of {len(held)} ({'; '.join(wrong)})"
                why = f" {claim.why[0].upper()}{claim.why[1:]}." if claim.why else ""
                failed.append(f"- **{letter} {row.item}**, {claim.words}: {where}.{why}\n")
    decided = [answer for answer in once.values() if answer is not None]
    there, right, total = sum(bool(row.results) for row in judged), sum(decided), len(decided)
    return (
        f"{there} of {len(judged)} items have results at scale `small`; {right} of {total} comparisons that the papers "
        f"claim hold ({100 * right / max(total, 1):.0f} %; what several items share counts once); {len(once) - total} "
        f"more are within one standard error, and count neither way. Written by `python -m papers scoreboard` from the "
        f"raw files; the cells are those of the seeds that were run.\n\n"
        f"{table(['paper', 'item', 'cells run', 'seeds', 'claims', 'comparisons that hold'], lines)}\n"
        f"What does not hold:\n\n{''.join(failed)}\nWithin one standard error (over seeds; of one seed, that of the "
        f"test images):\n\n{''.join(near)}\n![ours against the papers']({PICTURE})\n"
    )


def draw(judged: Sequence[Row], path: Path) -> None:
    """Draw ours against the papers', a panel for each paper and measure; on the line they agree."""
    from papers.figures import COLOURS, legend, panels, save

    names = list(dict.fromkeys((row.paper, pair.measure) for row in judged for pair in row.pairs))
    figure, axes = panels(len(names), 4)
    for ax, (paper, measure) in zip(axes, names, strict=True):
        there = [row for row in judged if row.paper == paper]
        for row, colour in zip(there, COLOURS * 3, strict=False):
            some = [pair for pair in row.pairs if pair.measure == measure]
            if some:
                x, y = [pair.theirs for pair in some], [pair.ours for pair in some]
                ax.plot(x, y, "o", color=colour, markersize=3, label=f"{LETTERS[paper]} {row.item}")
        low, high = min(*ax.get_xlim(), *ax.get_ylim()), max(*ax.get_xlim(), *ax.get_ylim())
        ax.plot([low, high], [low, high], color="#555555", linewidth=0.8)
        ax.set(title=f"{LETTERS[paper]}: {measure}", xlabel="the paper's", ylabel="ours")
    legend(figure)
    save(figure, path)


def write(folder: Path = DOCS) -> str:
    """Put the table in its place in the README of the results, and return it."""
    page = folder / "README.md"
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise InputError(f"{page} must hold the marks {BEGIN} and {END}; it does not.")
    judged = rows(folder)
    found = text(judged)
    draw(judged, folder / PICTURE)
    write_text(page, f"{before}{BEGIN}\n{found}{END}{after}")
    return found
