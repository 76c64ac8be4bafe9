"""A flat table of settings as TOML text, and back."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from augury.core.errors import InputError


def dumps(values: Mapping[str, Any]) -> str:
    """Write values as TOML; None is left out, and tables come last."""
    plain = {name: value for name, value in values.items() if value is not None}
    lines = [f"{name} = {_value(v)}" for name, v in plain.items() if not isinstance(v, Mapping)]
    for name, table in plain.items():
        if isinstance(table, Mapping) and table:
            lines += ["", f"[{name}]", *(f"{key} = {_value(v)}" for key, v in table.items())]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    # JSON's escapes are TOML's, save that it leaves the delete character alone.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def read(path: Path) -> dict[str, Any]:
    """Read a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise InputError(f"--config must name a TOML file; {path} cannot be read: {reason}.") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} must be TOML, such as epochs = 20; it is not: {error}.") from error
