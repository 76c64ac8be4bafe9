"""Several runs side by side: the page, tables, JSON, and remarks on what cannot be compared."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from augury.records.results import Invariance, Width
from augury.report.curves import Series, curve_plots, width_plot
from augury.report.numbers import NOTHING, either_way, number, percent, seconds
from augury.report.plots import Bar, bar_list, draw, legend, scale_end, width_bar
from augury.training.run_folder import Adapted, Audited, Found, Pretrained, Run


def compared_page(found: Sequence[Found]) -> dict[str, Any]:
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
        "trajectories": [(name, draw(plot), legend(plot.lines)) for name, plot in _trajectories(series, runs)],
    }


def _widths(runs: Sequence[tuple[str, Run]]) -> list[tuple[str, list[tuple[str, str, Any, str]]]]:
    """Return every width with a bar for each run that has it, on one scale."""
    by: dict[str, list[tuple[str, Width]]] = {}
    for name, run in runs:
        for generator, width in ({} if run.invariance is None else run.invariance.widths).items():
            by.setdefault(generator, []).append((name, width))
    out = []
    for generator, some in by.items():
        same = [(name, w) for name, w in some if w.unit == some[0][1].unit]
        end = scale_end([w for _, w in same])
        out.append((generator, [(n, either_way(w.value, w.unit), width_bar(w, end), w.verdict) for n, w in same]))
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
    lines = {name: [line for one in series if len((line := one.width(name)).x) > 1] for name in units}
    return [(name, width_plot(name, some, units[name])) for name, some in lines.items() if some]


Table = tuple[str, list[str], list[list[str]]]  # title, column heads, rows


def named(found: Sequence[Found]) -> list[str]:
    """Return a name for each: its folder's, or its path if two folders have the same name."""
    names = [one.name for one in found]
    return [name if names.count(name) == 1 else str(one.path) for one, name in zip(found, names, strict=True)]


def tables(found: Sequence[Found]) -> list[Table]:
    """Return a table for each kind of run: a column for each run, a row for each figure that some of them have."""
    names = dict(zip(map(id, found), named(found), strict=True))
    kinds = (
        ("What was learned", Run, _learned_figures),
        ("Audits", Audited, _audit_figures),
        ("Adaptations", Adapted, _adapted_figures),
        ("Extractors", Pretrained, _pretrained_figures),
    )
    out: list[Table] = []
    for title, kind, figures in kinds:
        some: list[Any] = [one for one in found if isinstance(one, kind)]
        if some:
            rows = [[name, *(write(one) for one in some)] for name, write in figures(some).items()]
            rows = [row for row in rows if any(cell != NOTHING for cell in row[1:])]
            out.append((title, ["", *(names[id(one)] for one in some)], rows))
    return out


Figures = dict[str, Callable[[Any], str]]  # name of a figure, and how to write it for one run


def _learned_figures(runs: list[Run]) -> Figures:
    def of_result(write: Callable[[Any], str]) -> Callable[[Any], str]:
        return lambda r: NOTHING if r.invariance is None else write(r.invariance)

    widths = list(dict.fromkeys(n for r in runs if r.invariance for n in r.invariance.widths))
    return {
        "method": lambda r: str(r.config.get("method")),
        "network": lambda r: str(r.config.get("model")),
        "data": lambda r: str(r.config.get("data", {}).get("source", NOTHING)),
        "training examples": lambda r: f"{r.config.get('data', {}).get('train', 0):,}",
        "epochs done": lambda r: f"{len(r.rows)} of {r.config.get('epochs')}",
        **{name: of_result(partial(_width, name=name)) for name in widths},
        "test accuracy": of_result(lambda i: percent(i.test_accuracy)),
        "test error (RMSE)": of_result(lambda i: number(i.test_error, 4)),
        "log evidence": of_result(lambda i: number(i.log_evidence, 4)),
        "log evidence, baseline": of_result(lambda i: number(i.log_evidence_without, 4)),
        "training time": of_result(lambda i: seconds(i.seconds)),
    }


def _width(found: Invariance, name: str) -> str:
    width = found.widths.get(name)
    if width is None:
        return NOTHING
    planted = "" if width.planted is None else f", planted {either_way(width.planted, width.unit)}"
    return f"{either_way(width.value, width.unit)} ({width.verdict}{planted})"


def _audit_figures(audits: list[Audited]) -> Figures:
    return {
        "model": lambda a: a.audit.model,
        "data": lambda a: a.audit.data,
        "inputs": lambda a: f"{a.audit.images:,}",
        "transformation": lambda a: a.audit.group,
        "verdict": lambda a: a.audit.verdict,
        "LI": lambda a: number(a.audit.LI.value),
        "LI relative": lambda a: number(a.audit.LI_relative),
        "DI": lambda a: NOTHING if a.audit.DI is None else number(a.audit.DI.value),
        "SI": lambda a: NOTHING if a.audit.SI is None else number(a.audit.SI.value),
        "agreement": lambda a: NOTHING if a.audit.agreement is None else percent(a.audit.agreement.value),
        "accuracy": lambda a: percent(a.audit.accuracy),
        "accuracy on views": lambda a: percent(a.audit.accuracy_moved),
    }


def _adapted_figures(found: list[Adapted]) -> Figures:
    def entry(name: str) -> Callable[[Any], str]:
        return lambda a: number(a.adaptation.descriptor.get(name))

    groups = dict.fromkeys(name for one in found for name in one.adaptation.descriptor)
    return {
        "data": lambda a: a.adaptation.data,
        "extractor": lambda a: a.adaptation.extractor,
        **{name: entry(name) for name in groups},
        "score": _score,
        "bound": lambda a: number(a.adaptation.bound.total),
        "time": lambda a: seconds(a.adaptation.seconds),
    }


def _score(found: Adapted) -> str:
    record = found.adaptation
    write = percent if record.score_name == "accuracy" else number
    return f"{write(record.score)} {record.score_name} ({record.scored_on})"


def _pretrained_figures(found: list[Pretrained]) -> Figures:
    def of_known(write: Callable[[Any], str]) -> Callable[[Any], str]:
        return lambda one: write(one.extractor.pretraining) if one.extractor and one.extractor.pretraining else NOTHING

    def cosine(name: str) -> Callable[[Any], str]:
        return of_known(lambda k: number(k.invariance.get(name, {}).get("at_1")))

    known = [one.extractor.pretraining for one in found if one.extractor and one.extractor.pretraining]
    groups = dict.fromkeys(name for pretraining in known for name in pretraining.invariance)
    return {
        "method": lambda one: str(one.config.get("method")),
        "encoder": lambda one: str(one.config.get("encoder")),
        "data": lambda one: str(one.config.get("data", {}).get("source", NOTHING)),
        "images": lambda one: f"{one.config.get('data', {}).get('train', 0):,}",
        "epochs done": lambda one: f"{len(one.rows)} of {one.config.get('epochs')}",
        "loss": lambda one: number(one.rows[-1].get("loss"), 4) if one.rows else NOTHING,
        **{f"cosine at 1: {name}": cosine(name) for name in groups},
        "time": of_known(lambda k: seconds(k.seconds)),
    }


def remarks(found: Sequence[Found]) -> list[str]:
    """Return warnings about what cannot be compared."""
    runs = [one for one in found if isinstance(one, Run)]
    audits = [one.audit for one in found if isinstance(one, Audited)]
    said = []
    if len({str(r.config.get("data", {}).get("fingerprint")) for r in runs}) > 1:
        said.append(
            "These runs did not learn from the same data: their evidence cannot be compared, "
            "nor, as a rule, their accuracy."
        )
    ways = {tuple(str(r.config.get(k)) for k in ("evidence", "structure", "output", "positions")) for r in runs}
    if len(ways) > 1:
        said.append("These runs approximate the evidence in different ways: its values cannot be compared.")
    said += [f"{r.name} has not ended." for r in runs if r.invariance is None]
    said += [f"{one.name} has not ended." for one in found if isinstance(one, Pretrained) and not one.extractor]
    if len({a.group for a in audits}) > 1:
        said.append("These audits test different transformations.")
    if len({a.data for a in audits}) > 1:
        said.append("These audits are on different data.")
    return said


RECORDS = {
    Run: ("learned", "invariance"),
    Pretrained: ("extractor", "extractor"),
    Audited: ("audit", "audit"),
    Adapted: ("adaptation", "adaptation"),
}  # what each is called, and where its record is


def as_object(found: Sequence[Found]) -> dict[str, Any]:
    runs = []
    for one, name in zip(found, named(found), strict=True):
        kind, place = RECORDS[type(one)]
        record = getattr(one, place)
        written = {"kind": kind, "record": None if record is None else record.to_json()}
        trained = {"settings": one.config, "epochs_done": len(one.rows)} if isinstance(one, Run | Pretrained) else {}
        runs.append({"name": name, "path": str(one.path), **written, **trained})
    return {"runs": runs, "remarks": remarks(found)}
