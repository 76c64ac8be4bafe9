"""Several runs side by side: as a page, as tables, as JSON, and what must be said before comparing."""

from collections.abc import Sequence
from typing import Any

from augury.records.results import Adaptation, Width
from augury.records.saved import Pretraining
from augury.report.curves import Series, curve_plots, width_plot
from augury.report.numbers import NOTHING, either_way, number, percent, seconds
from augury.report.plots import Bar, Line, bar_list, draw, legend, scale_end, width_bar
from augury.training.run_folder import Adapted, Audited, Found, Pretrained, Run


def compared_page(found: Sequence[Found]) -> dict[str, Any]:
    """Return all that the template of a comparison needs."""
    names = named(found)
    runs = [(name, one) for name, one in zip(names, found, strict=True) if isinstance(one, Run)]
    series = [Series(name, run.rows, k) for k, (name, run) in enumerate(runs)]
    plots = curve_plots(series)
    return {
        "title": " and ".join(names) if len(names) == 2 else f"{len(names)} runs",
        "remarks": remarks(found),
        "tables": tables(found),
        "widths": _widths(runs),
        "accuracy": _accuracy(runs),
        "curves": [(plot.title, draw(plot), legend(plot.lines)) for plot in plots],
        "trajectories": [
            (name, draw(plot), legend(plot.lines)) for name, plot in _trajectories(series, runs)
        ],
    }


def _widths(runs: Sequence[tuple[str, Run]]) -> list[tuple[str, list[tuple[str, str, Any, str]]]]:
    """Return every width with a bar for each run that has it, all to one scale."""
    by: dict[str, list[tuple[str, Width]]] = {}
    for name, run in runs:
        for generator, width in ({} if run.invariance is None else run.invariance.widths).items():
            by.setdefault(generator, []).append((name, width))
    out = []
    for generator, some in by.items():
        same = [(name, w) for name, w in some if w.unit == some[0][1].unit]
        end = scale_end([w for _, w in same])
        out.append((
            generator,
            [(n, either_way(w.value, w.unit), width_bar(w, end), w.verdict) for n, w in same],
        ))
    return out


def _accuracy(runs: Sequence[tuple[str, Run]]) -> Any:
    bars = []
    for k, (name, run) in enumerate(runs):
        accuracy = None if run.invariance is None else run.invariance.test_accuracy
        if accuracy is not None:
            bars.append(Bar(name, accuracy, percent(accuracy), k % 7))
    return bar_list(bars, 1.0) if len(bars) > 1 else None


def _trajectories(series: Sequence[Series], runs: Sequence[tuple[str, Run]]) -> list[tuple[str, Any]]:
    units = {n: w.unit for _, run in runs if run.invariance for n, w in run.invariance.widths.items()}
    out = []
    for name, unit in units.items():
        lines: list[Line] = [line for line in (one.width(name) for one in series) if len(line.x) > 1]
        if lines:
            out.append((name, width_plot(name, lines, unit)))
    return out


Table = tuple[str, list[str], list[list[str]]]
"""A title, the heads of the columns, and the rows."""


def named(found: Sequence[Found]) -> list[str]:
    """Return a name for each: its folder's, or its path where two folders have one name."""
    names = [one.name for one in found]
    return [name if names.count(name) == 1 else str(one.path) for one, name in zip(found, names, strict=True)]


def tables(found: Sequence[Found]) -> list[Table]:
    """Return a table for each kind of thing that was found: a column for each, a row for each figure."""
    names = dict(zip(map(id, found), named(found), strict=True))
    kinds = (
        ("What was learned", Run, _learned_rows),
        ("Audits", Audited, _audit_rows),
        ("Adaptations", Adapted, _adapted_rows),
        ("Extractors", Pretrained, _pretrained_rows),
    )
    out: list[Table] = []
    for title, kind, rows in kinds:
        some: list[Any] = [one for one in found if isinstance(one, kind)]
        if some:
            out.append((title, ["", *(names[id(one)] for one in some)], rows(some)))
    return out


def _learned_rows(runs: list[Run]) -> list[list[str]]:
    widths = list(dict.fromkeys(n for r in runs if r.invariance for n in r.invariance.widths))
    rows = [
        ["method", *(str(r.config.get("method")) for r in runs)],
        ["network", *(str(r.config.get("model")) for r in runs)],
        ["data", *(str(r.config.get("data", {}).get("source", NOTHING)) for r in runs)],
        ["training examples", *(f"{r.config.get('data', {}).get('train', 0):,}" for r in runs)],
        ["epochs done", *(f"{len(r.rows)} of {r.config.get('epochs')}" for r in runs)],
    ]
    rows += [[name, *(_width(r, name) for r in runs)] for name in widths]
    figures = {
        "test accuracy": lambda i: percent(i.test_accuracy),
        "test error (RMSE)": lambda i: number(i.test_error, 4),
        "log evidence": lambda i: number(i.log_evidence, 4),
        "log evidence without": lambda i: number(i.log_evidence_without, 4),
        "training time": lambda i: seconds(i.seconds),
    }
    for name, write in figures.items():
        row = [NOTHING if r.invariance is None else write(r.invariance) for r in runs]
        if any(cell != NOTHING for cell in row):
            rows.append([name, *row])
    return rows


def _width(run: Run, name: str) -> str:
    width = None if run.invariance is None else run.invariance.widths.get(name)
    if width is None:
        return NOTHING
    planted = "" if width.planted is None else f", planted {either_way(width.planted, width.unit)}"
    return f"{either_way(width.value, width.unit)} ({width.verdict}{planted})"


def _audit_rows(audits: list[Audited]) -> list[list[str]]:
    figures = {
        "model": lambda a: a.model,
        "data": lambda a: a.data,
        "inputs": lambda a: f"{a.images:,}",
        "asked about": lambda a: a.group,
        "verdict": lambda a: a.verdict,
        "LI": lambda a: number(a.LI.value),
        "LI relative": lambda a: number(a.LI_relative),
        "DI": lambda a: NOTHING if a.DI is None else number(a.DI.value),
        "SI": lambda a: NOTHING if a.SI is None else number(a.SI.value),
        "agreement": lambda a: NOTHING if a.agreement is None else percent(a.agreement.value),
        "accuracy": lambda a: percent(a.accuracy),
        "accuracy on views": lambda a: percent(a.accuracy_moved),
    }
    return [[name, *(write(one.audit) for one in audits)] for name, write in figures.items()]


def _adapted_rows(found: list[Adapted]) -> list[list[str]]:
    records = [one.adaptation for one in found]
    rows = [["data", *(r.data for r in records)], ["extractor", *(r.extractor for r in records)]]
    for name in dict.fromkeys(name for r in records for name in r.descriptor):
        rows.append([name, *(number(r.descriptor.get(name)) for r in records)])
    rows.append(["score", *(_score(r) for r in records)])
    rows.append(["bound", *(number(r.bound.total) for r in records)])
    rows.append(["time", *(seconds(r.seconds) for r in records)])
    return rows


def _score(record: Adaptation) -> str:
    write = percent if record.score_name == "accuracy" else number
    return f"{write(record.score)} {record.score_name} ({record.scored_on})"


def _pretrained_rows(found: list[Pretrained]) -> list[list[str]]:
    known = [None if one.extractor is None else one.extractor.pretraining for one in found]
    figures = {
        "method": lambda one: str(one.config.get("method")),
        "encoder": lambda one: str(one.config.get("encoder")),
        "data": lambda one: str(one.config.get("data", {}).get("source", NOTHING)),
        "images": lambda one: f"{one.config.get('data', {}).get('train', 0):,}",
        "epochs done": lambda one: f"{len(one.rows)} of {one.config.get('epochs')}",
        "loss": lambda one: number(one.rows[-1].get("loss"), 4) if one.rows else NOTHING,
    }
    rows = [[name, *(write(one) for one in found)] for name, write in figures.items()]
    for name in dict.fromkeys(name for k in known if k for name in k.invariance):
        rows.append([f"cosine at 1: {name}", *(number(_cosine(k, name)) for k in known)])
    return [*rows, ["time", *(seconds(k.seconds if k else None) for k in known)]]


def _cosine(known: Pretraining | None, name: str) -> float | None:
    return None if known is None else known.invariance.get(name, {}).get("at_1")


def remarks(found: Sequence[Found]) -> list[str]:
    """Say what must be known before these are compared."""
    runs = [one for one in found if isinstance(one, Run)]
    audits = [one.audit for one in found if isinstance(one, Audited)]
    said = []
    if len({str(r.config.get("data", {}).get("fingerprint")) for r in runs}) > 1:
        said.append(
            "These runs did not learn from the same data: their evidence cannot be compared, "
            "nor, as a rule, their accuracy."
        )
    ways = {
        tuple(str(r.config.get(k)) for k in ("evidence", "structure", "output", "positions")) for r in runs
    }
    if len(ways) > 1:
        said.append("These runs approximate the evidence in different ways: its values cannot be compared.")
    said += [f"{r.name} has not ended." for r in runs if r.invariance is None]
    said += [
        f"{one.name} has not ended." for one in found if isinstance(one, Pretrained) and not one.extractor
    ]
    if len({a.group for a in audits}) > 1:
        said.append("These audits ask about different transformations.")
    if len({a.data for a in audits}) > 1:
        said.append("These audits ask on different data.")
    return said


def as_object(found: Sequence[Found]) -> dict[str, Any]:
    """Return what was found as plain data."""
    return {
        "runs": [
            {"name": name, "path": str(one.path), **_object(one)}
            for one, name in zip(found, named(found), strict=True)
        ],
        "remarks": remarks(found),
    }


def _object(one: Found) -> dict[str, Any]:
    if isinstance(one, Audited):
        return {"kind": "audit", "record": one.audit.to_json()}
    if isinstance(one, Adapted):
        return {"kind": "adaptation", "record": one.adaptation.to_json()}
    assert isinstance(one, Run | Pretrained)
    kind, found = ("learned", one.invariance) if isinstance(one, Run) else ("extractor", one.extractor)
    record = None if found is None else found.to_json()
    return {"kind": kind, "record": record, "settings": one.config, "epochs_done": len(one.rows)}
