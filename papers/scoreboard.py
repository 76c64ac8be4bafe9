"""`python -m papers scoreboard`: what of every paper's claims the results on disk hold, item by item.

Writes the first table of docs/results/README.md between two marks, and a picture of every number that both have.
Nothing is typed in: claims are checked against the raw results, and only a reason beside a claim is text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
    """Return how many comparisons hold, item by item, and below them those that do not, each with its reason."""
    papers, ours = _Count(), _Count()
    lines = []
    for row in judged:
        letter, link = LETTERS[row.paper], f"[{row.item}]({row.paper}_{row.item}.md)"
        scores = []
        for count in (papers, ours):
            held = {claim: answers for claim, answers in row.held.items() if claim.ours is (count is ours)}
            scores.append(count.take(row, held))
        seeds, done = len({r.cell.seed for r in row.results}), f"{len(row.results)} of {row.cells}"
        own = " (ours)" * (row.item in PAPERS[row.paper].ours)
        lines.append([letter, (link if row.results else row.item) + own, done, str(seeds), *scores])
    items = [row for row in judged if row.item not in PAPERS[row.paper].ours]
    right, total = (a + b for a, b in zip(papers.score, ours.score, strict=True))
    return (
        f"{sum(bool(row.results) for row in items)} of {len(items)} items of the papers have results at scale `small`, "
        f"and {len(judged) - len(items)} experiments of ours. **{_share(*papers.score)} comparisons that the papers "
        f"claim hold** (what several items share counts once); {papers.near} more are within one standard error, and "
        f"count neither way. {ABOUT} With them it is {_share(right, total)}. Written by `python -m papers scoreboard` "
        f"from the raw files; the cells are those of the seeds that were run.\n\n"
        f"{table(['paper', 'item', 'cells run', 'seeds', 'comparisons that hold', 'ours that hold'], lines)}\n"
        f"What of the papers does not hold:\n\n{''.join(papers.failed)}\nWhat of ours does not:\n\n"
        f"{''.join(ours.failed)}\nOf the papers, within one standard error (over seeds; of one seed, that of the test "
        f"images):\n\n{''.join(papers.open)}\n![ours against the papers']({PICTURE})\n"
    )


ABOUT = (
    "Questions of our own about the same runs are counted apart: the prior that suits each width best in "
    "`table4_prior` (it tests a reason of Table 4), the evidence in place of paper C's training loss, and a relative "
    "sigma_max(J), which paper D does not have. `recovery` asks what Figure 2 and appendix J.3 of paper A say, so its "
    "answers are among the papers'."
)


def _share(right: int, total: int) -> str:
    return f"{right} of {total} ({100 * right / max(total, 1):.0f} %)"


@dataclass
class _Count:
    """Comparisons by what they compare, and lines about those that fail and those within the error."""

    once: dict[tuple[str, str, str], bool | None] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)

    def take(self, row: Row, held: Mapping[Claim, Held]) -> str:
        """Add an item's, and return how many of them hold."""
        letter = LETTERS[row.paper]
        for claim, answers in held.items():
            self.once |= {(row.paper, claim.words, name): answer for name, answer in answers.items()}
            if near := [name for name, answer in answers.items() if answer is None]:
                self.open.append(f"- **{letter} {row.item}**, {claim.words}: {'; '.join(near)}.\n")
            if wrong := [name for name, answer in answers.items() if answer is False]:
                where = f"not in {len(wrong)} of {len(answers)} ({'; '.join(wrong)})"
                why = f" {claim.why[0].upper()}{claim.why[1:]}." if claim.why else ""
                self.failed.append(f"- **{letter} {row.item}**, {claim.words}: {where}.{why}\n")
        every = [answer for answers in held.values() for answer in answers.values()]
        return counted(every) if every else NONE

    @property
    def score(self) -> tuple[int, int]:
        """How many hold, of those that are decided."""
        decided = [answer for answer in self.once.values() if answer is not None]
        return sum(decided), len(decided)

    @property
    def near(self) -> int:
        """How many are within the error."""
        return len(self.once) - self.score[1]


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


def _items(page: str) -> int:
    """Return how many items a page says it has."""
    first = page.split(maxsplit=1)[:1]
    return int(first[0]) if first and first[0].isdigit() else 0


def write(folder: Path = DOCS) -> str:
    """Put the table in its place in the README of the results, and return it."""
    page = folder / "README.md"
    before, begin, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    old, end, after = rest.partition(END)
    if not (begin and end):
        raise InputError(f"{page} must hold the marks {BEGIN} and {END}; it does not.")
    judged = rows(folder)
    found = text(judged)
    if _items(found) < _items(old):
        raise InputError(
            f"the page has results of {_items(old)} items, and only {_items(found)} are found. The cells of paper A "
            f"name the complete MNIST: set AUGURY_DATA to the folder that it is in."
        )
    draw(judged, folder / PICTURE)
    write_text(page, f"{before}{BEGIN}\n{found}{END}{after}")
    return found
