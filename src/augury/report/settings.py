"""Settings, and how to do it again."""

import json
from typing import Any

from augury.core.errors import AuguryError
from augury.report.read import Run
from augury.training.config import LearnConfig


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
