"""Parts of the pages that are generated from the package.

A page marks their place by `<!-- fill: commands -->`, or `<!-- fill: items lila -->`; `FILLS` has the functions that
return Markdown. Loads no torch.
"""

import ast
import inspect
import re
from collections.abc import Callable
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from fill_commands import commands
from markdown_tables import table

RESULTS = Path(__file__).parent / "results"
MARK = re.compile(r"<!-- fill: (\w+)(?: (\w+))? -->")


def filled(page: str) -> str:
    """Return a page with every mark replaced."""
    return MARK.sub(lambda match: FILLS[match[1]](*filter(None, [match[2]])), page)


TITLES = {
    "data": "Data",
    "methods": "Learning",
    "transforms": "Transformations",
    "models": "Models",
    "evidence": "Evidence",
    "auditing": "Audit",
    "export": "Export",
    "report": "Report",
    "training": "Callbacks and saved models",
    "records": "Results",
    "core": "Errors and units",
}
"""Title of each section of public names, by room, in order."""


def api() -> str:
    """Return the public names by room, for autodoc."""
    from augury import PUBLIC

    rooms = {name: module.split(".")[1] for name, module in PUBLIC.items()}
    titles = dict.fromkeys([*TITLES.values(), *(TITLES.get(room, room) for room in rooms.values())])
    parts = []
    for title in titles:
        names = [name for name, room in rooms.items() if TITLES.get(room, room) == title]
        if names:
            parts += [f"## {title}", *(_documented(name, PUBLIC[name]) for name in names)]
    return "\n\n".join(parts)


def _documented(name: str, home: str) -> str:
    """Return a directive that shows a name; functions have small letters, and the home of a module is a package."""
    if home.count(".") == 1:
        return f"### {name}\n\n```{{eval-rst}}\n.. automodule:: {home}.{name}\n   :members:\n```"
    kind = "autofunction" if name.islower() else "autoclass"
    members = "" if kind == "autofunction" else "\n   :members:\n   :exclude-members: forward"
    return f"### {name}\n\n```{{eval-rst}}\n.. {kind}:: augury.{name}{members}\n```"


def settings() -> str:
    """Return every setting of a run with its default."""
    from augury.config.learn import EvidenceConfig, LearnConfig

    docs = _field_docs(LearnConfig) | _field_docs(EvidenceConfig)
    known = {f.name: f for f in fields(LearnConfig)}
    rows = [[f"`{name}`", f"`{_default(known[name])}`", doc] for name, doc in docs.items()]
    return table(["setting", "default", "what it is"], rows)


def _default(field: Any) -> str:
    return repr(field.default_factory() if field.default is MISSING else field.default)


def _field_docs(cls: type) -> dict[str, str]:
    """Return the docstrings under the fields of a dataclass."""
    (body,) = ast.parse(inspect.getsource(cls)).body
    pairs = zip(body.body, body.body[1:], strict=False)  # type: ignore[attr-defined]
    return {
        node.target.id: " ".join(ast.literal_eval(after.value).split())  # type: ignore[attr-defined, union-attr]
        for node, after in pairs
        if isinstance(node, ast.AnnAssign) and isinstance(after, ast.Expr)
    }


def differences() -> str:
    """Return where the defaults of a method differ."""
    from augury.config.learn import METHOD_DEFAULTS

    rows = [
        [f"`{name}`", ", ".join(f"`{k}={v!r}`" for k, v in own.items())] for name, own in METHOD_DEFAULTS.items() if own
    ]
    return table(["method", "its own defaults"], rows)


def methods() -> str:
    """Return every method."""
    from augury.methods.registry import METHODS

    return table(["method", "what chooses the widths"], [[f"`{n}`", row.summary] for n, row in METHODS.items()])


def networks() -> str:
    """Return every network that has a name."""
    from augury.models.networks import NETWORKS

    rows = [[f"`{name}`", row.description, row.takes] for name, row in NETWORKS.items()]
    return table(["model", "what it is", "takes"], rows)


def words() -> str:
    """Return the words for transformations by kind of data."""
    from augury.transforms.vocabulary import WORDS

    return "\n\n".join(
        f"**{kind}**\n\n"
        + table(
            ["word", "what it means", "unit"], [[f"`{name}`", word.what, word.symbol] for name, word in known.items()]
        )
        for kind, known in WORDS.items()
    )


def named() -> str:
    """Return the data sets that have a name."""
    from augury.data.named import NAMED

    return table(["name", "what"], [[f"`{name}`", row.what] for name, row in NAMED.items()])


def items(paper: str) -> str:
    """Return the items of a paper, with links to their results."""
    from papers.catalog import PAPERS, item

    rows = []
    for name in PAPERS[paper].items:
        there = (RESULTS / f"{paper}_{name}.md").is_file()
        ours = f"[ours beside the paper](../results/{paper}_{name}.md)" if there else "not run yet"
        rows.append([f"`python -m papers {paper} {name}`", item(paper, name).what, ours])
    return table(["command", "what it shows", "results"], rows)


FILLS: dict[str, Callable[..., str]] = {
    f.__name__: f for f in (api, commands, differences, items, methods, named, networks, settings, words)
}
"""What a page can be filled with."""
