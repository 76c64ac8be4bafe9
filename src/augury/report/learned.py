"""The page of a learned run: result, training, transformed inputs, errors, settings."""

import json
from typing import Any

from augury.config.learn import LearnConfig
from augury.core.errors import AuguryError
from augury.report.confusion import confusion, mistakes, scatter
from augury.report.curves import curve_plots, kept_epoch, series, table, width_plots
from augury.report.headline import asides, headline, scores, width_rows
from augury.report.numbers import seconds, unfinished
from augury.report.orbit import Sheets, drawn_examples, orbit_data, origin
from augury.report.plots import draw, legend
from augury.training.run_folder import Run


def learned_page(run: Run) -> dict[str, Any]:
    sheets = Sheets(run.path)
    found = run.invariance
    curves, head = curve_plots(series(run), kept_epoch(run)), table(run)
    changed, unchanged = settings(run.config)
    left = run.exhibits
    matrices = [confusion(str(run.config.get("method")), left)]
    matrices += [] if run.baseline is None else [confusion("plain", run.baseline.exhibits)]
    return {
        "title": run.name,
        "facts_line": facts_line(run),
        "progress": None if found else unfinished(len(run.rows), run.config.get("epochs")),
        "headline": headline(found) if found else None,
        "asides": asides(found) if found else [],
        "widths": width_rows(found.widths) if found else [],
        "intervals": bool(found and any(w.low is not None for w in found.widths.values())),
        "planted": bool(found and any(w.planted is not None for w in found.widths.values())),
        "scores": scores(run) if found else [],
        "baseline": run.baseline is not None,
        "width_plots": [(plot.title, draw(plot)) for plot in width_plots(run)],
        "curve_plots": [(plot.title, draw(plot), legend(plot.lines)) for plot in curves],
        "sampled": run.config.get("evidence_images"),
        "epochs": head,
        "drawn": drawn_examples(left, sheets),
        "orbit": orbit_data(run, sheets),
        "origin": origin(run),
        "kind": left.kind if left else None,
        "part": left.part if left else None,
        "tested": left.tested if left else 0,
        "no_orbit": _no_orbit(run),
        "confusions": [matrix for matrix in matrices if matrices[0] and matrix],
        "mistakes": mistakes(left),
        "scatter": scatter(left),
        "changed": changed,
        "unchanged": unchanged,
        "facts": facts(run),
        "command": run.command.get("command"),
        "python": in_python(run),
        "sheets": sheets.css,
    }


def facts_line(run: Run) -> list[str]:
    data = run.config.get("data", {})
    words = [run.config.get("method"), run.config.get("model"), data.get("source", "unknown data")]
    time = [] if run.invariance is None else [seconds(run.invariance.seconds)]
    return [*map(str, words), f"{data.get('train', 0):,} training examples", *time]


def _no_orbit(run: Run) -> str | None:
    """Return why there is no orbit to show; None if there is one."""
    left = run.exhibits
    if left is None:
        return "This run has no pictures: it has not ended, or it was made by an older version of Augury."
    if left.kind == "features":
        return "The inputs are lists of numbers without a picture, so there is nothing to draw here."
    if not left.routes:
        return "This method has no distribution over transformations, so there is no orbit to show."
    return None


def changed_settings(config: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that are not the defaults of their method and network."""
    own = {key: value for key, value in config.items() if key != "data"}
    try:
        usual = LearnConfig.for_method(own.get("method", ""), model=own.get("model")).to_json()
    except AuguryError:
        return own
    usual = json.loads(json.dumps(usual))  # tuples become lists, as in the run's file
    return {key: value for key, value in own.items() if key not in usual or usual[key] != value}


def in_python(run: Run) -> str:
    """Return the call that repeats a run which was not started from the command line."""
    config = run.config
    extra = {k: v for k, v in changed_settings(config).items() if k not in ("method", "model")}
    source = config.get("data", {}).get("source", "data")
    model = config.get("model")
    lines = [f"data,  # {source}", f"model={'net' if model == 'custom' else repr(model)},"]
    lines += [f"{name}={value!r}," for name, value in {"method": config.get("method"), **extra}.items()]
    return "import augury\n\naugury.learn(\n" + "".join(f"    {line}\n" for line in lines) + ")"


def settings(config: dict[str, Any]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return settings as text: those that differ from the defaults, and the others."""
    new = changed_settings(config)
    own = {key: _text(value) for key, value in config.items() if key != "data"}
    return [(k, v) for k, v in own.items() if k in new], [(k, v) for k, v in own.items() if k not in new]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def facts(run: Run) -> list[tuple[str, str]]:
    data = run.config.get("data", {})
    rows = [
        ("data", str(data.get("source", "unknown"))),
        ("training examples", f"{data.get('train', 0):,}"),
        ("test examples", f"{data.get('test', 0):,}"),
        ("one input", " × ".join(map(str, data.get("input_shape", [])))),
        ("fingerprint of the data", str(data.get("fingerprint", ""))),
    ]
    return rows + [(key, _text(value)) for key, value in run.machine.items()]
