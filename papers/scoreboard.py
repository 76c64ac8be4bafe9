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
from papers.claims import Claim, Held, Pair
from papers.markdown import table
from papers.reproduce import DOCS, Request, table_rows

BEGIN, END = "<!-- scoreboard -->", "<!-- end of the scoreboard -->"
LETTERS = {"lila": "A", "invariant_weights": "B", "hyperinvariances": "C", "genuine": "D"}
"""What docs and docstrings call each paper."""
PICTURE = "scoreboard.svg"


@dataclass(frozen=True)
class Row:
    """One item: how many cells have results, of how many seeds, and which comparisons hold."""

    paper: str
    item: str
    cells: int
    seeds: int
    held: dict[Claim, Held]
    pairs: list[Pair]

    @property
    def counts(self) -> tuple[int, int]:
        """Comparisons that hold, and all."""
        answers = [answer for held in self.held.values() for answer in held.values()]
        return sum(answers), len(answers)


def rows(folder: Path = DOCS) -> list[Row]:
    """Judge every item of the four papers."""
    found = []
    for paper in LETTERS:
        for name in PAPERS[paper].items:
            entry, results = item(paper, name), table_rows(Request(paper, name, out=folder), "small")
            held = {claim: claim.check(results) for claim in entry.claims} if results else {}
            seeds = len({r.cell.seed for r in results})
            found.append(Row(paper, name, len(results), seeds, held, entry.pairs(results) if results else []))
    return found


def text(judged: Sequence[Row]) -> str:
    """Return the table, and below it the comparisons that do not hold, each with its reason."""
    lines, failed = [], []
    for row in judged:
        right, total = row.counts
        there = f"[{row.item}]({row.paper}_{row.item}.md)" if row.cells else row.item
        score = f"{right} of {total}" if total else "-"
        lines.append([
            LETTERS[row.paper],
            there,
            str(row.cells),
            str(row.seeds),
            str(len(row.held) or "-"),
            score,
        ])
        for claim, held in row.held.items():
            wrong = [name for name, answer in held.items() if not answer]
            if wrong:
                why = f" {claim.why[0].upper()}{claim.why[1:]}." if claim.why else ""
                failed.append(
                    f"- **{LETTERS[row.paper]} {row.item}**, {claim.words}: not in {len(wrong)} of {len(held)} "
                    f"({'; '.join(wrong)}).{why}"
                )
    once = {
        (row.paper, claim.words, name): answer
        for row in judged
        for claim, held in row.held.items()
        for name, answer in held.items()
    }
    right, total = sum(once.values()), len(once)
    run = sum(row.cells > 0 for row in judged)
    return (
        f"{run} of {len(judged)} items have results at scale `small`; {right} of {total} comparisons that the papers "
        f"claim hold ({100 * right / max(total, 1):.0f} %;"
        " what several items share counts once). Written by `python -m papers scoreboard` from the raw files.\n\n"
        f"{table(['paper', 'item', 'cells run', 'seeds', 'claims', 'comparisons that hold'], lines)}\n"
        f"What does not hold:\n\n" + "\n".join(failed) + f"\n\n![ours against the papers']({PICTURE})\n"
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
