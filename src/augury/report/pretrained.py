"""The page of an extractor: how invariant it can be made to each group, and how it was pre-trained."""

import json
from typing import Any

from augury.report.curves import Series, curve_plots
from augury.report.numbers import number, seconds, unfinished
from augury.report.plots import draw, legend
from augury.training.run_folder import Pretrained

COSINES = {
    "at_0": "at 0 (sensitive)",
    "at_1": "at 1 (invariant)",
    "random_at_0": "two images, at 0",
    "random_at_1": "two images, at 1",
}
"""What is measured of each group: see `augury.methods.hyper.measured.summarise`."""


def pretrained_page(run: Pretrained) -> dict[str, Any]:
    """Return all that the template of an extractor needs."""
    known = None if run.extractor is None else run.extractor.pretraining
    config, data = run.config, run.config.get("data", {})
    line = [config.get("method"), config.get("encoder"), data.get("source"), f"{data.get('train', 0):,} images"]
    line += [] if known is None else [seconds(known.seconds)]
    settings = {**{f"data: {k}": v for k, v in data.items()}, **config, **run.command}
    rows = {} if known is None else known.invariance
    plots = curve_plots([Series("pre-training", run.rows)])
    return {
        "title": run.name,
        "facts_line": list(map(str, line)),
        "progress": unfinished(len(run.rows), config.get("epochs")),
        "groups": None if run.extractor is None else ", ".join(run.extractor.groups),
        "head": ["group", "transformations", *COSINES.values()],
        "rows": [
            [name, known.transformations.get(name, ""), *(number(found.get(key), 2) for key in COSINES)]
            for name, found in rows.items()
            if known is not None
        ],
        "curves": [(plot.title, draw(plot), legend(plot.lines)) for plot in plots],
        "command": run.command.get("command"),
        "facts": [
            (k, v if isinstance(v, str) else json.dumps(v))
            for k, v in settings.items()
            if k not in ("command", "data") and v != ""
        ],
    }
