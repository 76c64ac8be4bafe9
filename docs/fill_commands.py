"""Every command with its options, from the objects that `--help` is printed from."""

import re
from typing import Any

OPTION = re.compile(r"(?<!\S)(--[a-z-]+)")


def commands() -> str:
    """Return every command with its options, as Markdown."""
    from typer.main import get_command

    from augury.cli.main import app

    flat: dict[str, Any] = {}
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        flat |= {name: command} if inner is None else {f"{name} {n}": c for n, c in inner.items()}
    return "\n\n".join(_command(name, command) for name, command in flat.items())


def _command(name: str, command: Any) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and "--help" not in p.opts]
    usage = " ".join([f"augury {name}", *(_metavar(p) for p in arguments), *(["[OPTIONS]"] if options else [])])
    parts = [f"## {name}", f"```text\n{usage}\n```", _help(command.help or "")]
    parts += [f"`{_metavar(p)}`\n: {p.help or ''}" for p in arguments]
    for panel in dict.fromkeys(p.rich_help_panel for p in options):
        parts.append(f"**{panel or 'Options'}**")
        parts += [f"{_names(p)}\n: {_meaning(p)}" for p in options if p.rich_help_panel == panel]
    return "\n\n".join(parts)


def _metavar(argument: Any) -> str:
    shown = (argument.metavar or argument.name.upper()).strip("[]")
    return shown if argument.required else f"[{shown}]"


def _names(option: Any) -> str:
    return ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))


def _meaning(option: Any) -> str:
    plain = isinstance(option.default, str | int | float) and not isinstance(option.default, bool)
    default = f" Default: {option.default}." if plain and option.show_default else ""
    return OPTION.sub(r"`\1`", f"{option.help or ''}{default}")


def _help(text: str) -> str:
    """Return the paragraphs of a help text; examples as they stand."""
    parts = [part.strip("\b\n") for part in re.split(r"\n\s*\n", text.strip())]
    words = [f"```text\n{p}\n```" if p.startswith("augury ") else OPTION.sub(r"`\1`", p) for p in parts if p]
    return "\n\n".join(words)
