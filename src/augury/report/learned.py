"""The page of a learned run.

Settings, and how to do it again.
"""

import json
from typing import Any

from augury.config.learn import LearnConfig
from augury.core.errors import AuguryError
from augury.report.confusion import confusion, mistakes, scatter
from augury.report.curves import run_curves, table, width_plots
from augury.report.headline import asides, headline, rows, scores
from augury.report.numbers import seconds
from augury.report.orbit import orbit_data, strip, word
from augury.report.pictures import Sheets
from augury.report.plots import draw, legend
from augury.training.run_folder import Run

NOT_DRAWN = {
    "features": "The inputs are lists of numbers without a picture, so there is nothing to draw here.",
}
"""What is said of data that cannot be shown."""


def learned_page(run: Run) -> dict[str, Any]:
    """Return all that the template of a learned run needs."""
    sheets = Sheets(run.path)
    found = run.invariance
    curves, head = run_curves(run), table(run)
    usual = shown(run.config)
    return {
        "title": run.name,
        "facts_line": facts_line(run),
        "progress": None if found else _progress(run),
        "headline": headline(found) if found else None,
        "asides": asides(found) if found else [],
        "widths": rows(found.widths) if found else [],
        "intervals": bool(found and any(w.low is not None for w in found.widths.values())),
        "planted": bool(found and any(w.planted is not None for w in found.widths.values())),
        "scores": scores(run) if found else [],
        "baseline": run.baseline is not None,
        "width_plots": [(plot.title, draw(plot)) for plot in width_plots(run)],
        "curve_plots": [(plot.title, draw(plot), legend(plot.lines)) for plot in curves],
        "sampled": run.config.get("evidence_images"),
        "epochs": head,
        "strip": strip(run.exhibits, sheets),
        "orbit": orbit_data(run, sheets),
        "word": word(run),
        "kind": run.exhibits.kind if run.exhibits else None,
        "part": run.exhibits.part if run.exhibits else None,
        "tested": run.exhibits.tested if run.exhibits else 0,
        "unseen": _unseen(run),
        "confusions": _confusions(run),
        "mistakes": mistakes(run.exhibits),
        "scatter": scatter(run.exhibits),
        "changed": usual[0],
        "usual": usual[1],
        "facts": facts(run),
        "command": run.command.get("command"),
        "python": in_python(run),
        "sheets": sheets.css,
    }


def facts_line(run: Run) -> list[str]:
    """Return what a run was, in a few words each."""
    data = run.config.get("data", {})
    words = [
        str(run.config.get("method")),
        str(run.config.get("model")),
        str(data.get("source", "unknown data")),
    ]
    words.append(f"{data.get('train', 0):,} training examples")
    if run.invariance is not None:
        words.append(seconds(run.invariance.seconds))
    return words


def _progress(run: Run) -> str:
    done, asked = len(run.rows), run.config.get("epochs", "?")
    return f"This run has not ended: {done} of {asked} epochs are done. What follows is how far it has come."


def _unseen(run: Run) -> str | None:
    """Say why there is no orbit to show; None where there is one."""
    left = run.exhibits
    if left is None:
        return (
            "This run has left no pictures: it has not ended, or it was made by an older version of Augury."
        )
    if left.kind in NOT_DRAWN:
        return NOT_DRAWN[left.kind]
    if not left.routes:
        return "This method has no distribution over transformations, so there is no orbit to walk through."
    return None


def _confusions(run: Run) -> list[Any]:
    own = confusion(str(run.config.get("method")), run.exhibits)
    if own is None:
        return []
    plain = None if run.baseline is None else confusion("plain", run.baseline.exhibits)
    return [own] if plain is None else [own, plain]


def changed(config: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that are not the defaults of their method and network."""
    own = {key: value for key, value in config.items() if key != "data"}
    try:
        usual = LearnConfig.for_method(own.get("method", ""), model=own.get("model")).to_json()
    except AuguryError:
        return own
    usual = json.loads(json.dumps(usual))
    return {key: value for key, value in own.items() if key not in usual or usual[key] != value}


def in_python(run: Run) -> str:
    """Return the call that repeats a run which was not started from the command line."""
    config = run.config
    extra = {k: v for k, v in changed(config).items() if k not in ("method", "model")}
    source = config.get("data", {}).get("source", "data")
    model = config.get("model")
    lines = [
        f"data,  # {source}",
        f"model={'net' if model == 'custom' else repr(model)},",
        f"method={config.get('method')!r},",
        *(f"{name}={value!r}," for name, value in extra.items()),
    ]
    return "import augury\n\naugury.learn(\n" + "".join(f"    {line}\n" for line in lines) + ")"


def shown(config: dict[str, Any]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return settings as text: those that were changed, and all others."""
    new = changed(config)
    own = {key: _text(value) for key, value in config.items() if key != "data"}
    return [(k, v) for k, v in own.items() if k in new], [(k, v) for k, v in own.items() if k not in new]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def facts(run: Run) -> list[tuple[str, str]]:
    """Return where the data came from and what the run was made with."""
    data = run.config.get("data", {})
    rows = [
        ("data", str(data.get("source", "unknown"))),
        ("training examples", f"{data.get('train', 0):,}"),
        ("test examples", f"{data.get('test', 0):,}"),
        ("one input", " × ".join(map(str, data.get("input_shape", [])))),
        ("fingerprint of the data", str(data.get("fingerprint", ""))),
    ]
    return rows + [(key, _text(value)) for key, value in run.command.items() if key != "command"]
