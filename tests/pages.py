"""Pages of documentation as programs: their fences run in order, in one folder, with small budgets.

| fence | what is done |
|---|---|
| python | run; the names of a page's earlier blocks are there |
| sh, or none | every command is run: augury in this process, make and pip as far as what they name exists |
| anything else | left alone: what a command prints, a file, a diagram |

A remark behind a command tells how it ends, where that is not well: `augury learn nowhere/  # exits with 2`.
"""

import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from typer.testing import CliRunner

ROOT = Path(__file__).parents[1]
EXITS = re.compile(r"# exits with (\d+)")
PROGRAMS = ("augury", "make", "pip", "python", ".venv/bin/python")
"""What an unlabelled fence must begin with for its lines to be commands."""


@dataclass(frozen=True)
class Fence:
    """One block between fences."""

    kind: str
    """What stands behind the opening fence."""
    text: str
    """What it holds."""
    line: int
    """Where it begins."""


def fences(page: Path) -> list[Fence]:
    """Return the blocks of a page; every other piece between fences is one."""
    found, line = [], 1
    for k, piece in enumerate(re.split(r"^ *```", page.read_text(encoding="utf-8"), flags=re.MULTILINE)):
        if k % 2:
            kind, _, text = piece.partition("\n")
            found.append(Fence(kind.strip(), text, line))
        line += piece.count("\n")
    return found


def commands(text: str, labelled: bool = True) -> Iterator[str]:
    """Return the commands of a block, those that go on over several lines as one."""
    for line in text.replace("\\\n", " ").splitlines():
        words = line.split()
        if words and not words[0].startswith("#") and (labelled or words[0] in PROGRAMS):
            yield line.strip()


def run_page(page: Path) -> int:
    """Run a page in the folder that is current; return how many blocks and commands that were."""
    names: dict[str, object] = {"__name__": "__page__"}
    count = 0
    for fence in fences(page):
        if fence.kind == "python":
            code = "\n" * fence.line + fence.text  # so that a failure names the line of the page
            exec(compile(code, str(page), "exec"), names)
            count += 1
        elif fence.kind in ("", "sh"):
            for command in commands(fence.text, fence.kind == "sh"):
                run(command)
                count += 1
    return count


def run(command: str) -> None:
    """Run one command, or several joined by &&."""
    expected = int(match[1]) if (match := EXITS.search(command)) else 0
    for part in command.split("&&"):
        words = shlex.split(part, comments=True)
        if words[0] == "augury":
            code = _augury(words[1:])
            found_nothing = words[1] == "doctor" and code == 3  # no wonder with so small a budget
            assert code == expected or found_nothing, f"{command}: exit code {code} is not {expected}"
        elif words[0] == "make":
            _make(words[1:])
        elif words[:2] == ["pip", "install"]:
            _pip(words[2:])
        elif words[0] in ("python", ".venv/bin/python"):
            named = [ROOT / word for word in words if word.endswith(".py")]
            assert named and all(path.is_file() for path in named), f"no such file: {command}"
        else:
            assert words == ["pre-commit", "install"], f"nobody knows how to test: {command}"


def _augury(words: list[str]) -> int:
    """Run a command of Augury's; what it prints goes to a file where the page says so. Return its exit code."""
    from augury.cli.main import app
    from augury.core.errors import AuguryError

    target = None
    if ">" in words:
        words, target = words[: words.index(">")], Path(words[-1])
    sys.argv = ["augury", *words]
    result = CliRunner().invoke(app, words)
    if isinstance(result.exception, AuguryError):
        print(result.exception)
        return 2
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if target is not None:
        target.write_text(result.stdout, encoding="utf-8")
    print(result.output)
    return result.exit_code


def _make(targets: list[str]) -> None:
    known = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert targets and set(targets) <= set(known), f"make knows {known}, not {targets}"


def _pip(words: list[str]) -> None:
    """Check that what is installed from here exists, and its extras with it."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    extras = [name for word in words for name in re.findall(r"\.\[([\w,]+)\]", word)]
    for name in ",".join(extras).split(","):
        assert not name or re.search(rf"^{name} = \[", project, re.MULTILINE), f"no extra {name}"


LEARNING = {"epochs": 2, "samples": 2, "samples_eval": 2, "evidence_images": 40, "eta_images": 20, "eta_steps": 1}
AUDITING = {"images": 8, "levels": 2, "floor_images": 8, "drift_images": 8, "jacobian_images": 4}
AMORTIZING = {"epochs": 1, "batch": 16}
SUBSET = 50


def small_budgets(monkeypatch) -> None:
    """Let every run of a page be tiny, whatever epochs, views and subsets it asks for."""
    from augury.config.audit import AuditConfig
    from augury.config.hyper import AmortizeConfig
    from augury.config.learn import LearnConfig
    from augury.data.dataset import Dataset

    for config, make, most in (
        (LearnConfig, "for_method", LEARNING),
        (AmortizeConfig, "for_method", AMORTIZING),
        (AuditConfig, "of", AUDITING),
    ):
        monkeypatch.setattr(config, make, classmethod(_capped(getattr(config, make).__func__, most)))
    subset = Dataset.subset

    def smaller(data, n, seed=0):
        fewer = subset(data, min(n, SUBSET), seed)
        return replace(fewer, x_test=fewer.x_test[:SUBSET], y_test=fewer.y_test[:SUBSET])

    monkeypatch.setattr(Dataset, "subset", smaller)


def _capped(make, most: dict[str, int]):
    def capped(cls, *words, **given):
        asked = make(cls, *words, **given)
        small = {name: min(getattr(asked, name) or n, n) for name, n in most.items()}
        if hasattr(asked, "evidence_below"):
            small["evidence_below"] = 9.0  # so short a run has learned little
        return make(cls, *words, **{**given, **small})

    return capped
