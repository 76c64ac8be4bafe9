"""`augury export`: the learned policy as code or JSON, the trained model as a program."""

from pathlib import Path
from typing import Annotated, Any

import typer

from augury.cli import options as o
from augury.cli.console import note, print_json
from augury.core.errors import InputError, choose
from augury.core.files import write_text
from augury.export.card import exportable, policy_of_run
from augury.export.targets import TARGETS

HELP = f"""
Export what a run learned, for use in other code.

{"; ".join(f"{name}: {row.what}" for name, row in TARGETS.items())}.
Code and JSON go to standard output unless --out names a file.

\b
augury export runs/a --to kornia > policy.py      code to paste
augury export runs/a --to json --out policy.json  for augury learn --policy
augury export runs/a --to torchvision --sure      only sure widths
augury export runs/a --to torch --out shipped/    .pt2, safetensors, model card
"""


def export(
    run: Annotated[str, o.argument("RUN", "The folder of a run that has ended.")],
    to: Annotated[str, o.option("--to", f"{', '.join(TARGETS)}.", complete=TARGETS)],
    output: Annotated[
        Path | None,
        o.option(
            "--out -o", "The file to write. Default: standard output. For --to torch a folder; default: RUN/exported."
        ),
    ] = None,
    sure: Annotated[bool, o.option("--sure", "Leave out widths whose verdict is not 'invariant' or 'given'.")] = False,
    json: Annotated[
        bool, o.option("--json", "Print one JSON object that says what was written (needs --out).")
    ] = False,
    quiet: o.Quiet = False,
) -> None:
    """Check the options, export, and report where."""
    target = TARGETS[choose("--to", to, TARGETS)]
    if target.write is None:
        if sure:
            raise InputError("--sure is for policies; the model is exported as it is. Leave it out.")
        written = _model(run, output, quiet)
    else:
        if json and output is None:
            raise InputError("--json says what was written where, so it needs a file to write: add --out FILE.")
        if output is not None and output.is_dir():
            raise InputError(f"--out must name a file; {output} is a folder. Try --out {output / target.file}.")
        policy = policy_of_run(run)
        code = target.write(policy.sure() if sure else policy)
        if output is None:
            print(code.text, end="")
        else:
            write_text(output, code.text)
        if not quiet:
            for left_out in code.left_out:
                note(f"left out: {left_out}")
            if output is not None:
                note(f"Written to {output}", style="default")
        written = {"file": str(output), "left_out": list(code.left_out)}
    if json:
        print_json(written)


def _model(run: str, output: Path | None, quiet: bool) -> dict[str, Any]:
    folder = output or exportable(run).path / TARGETS["torch"].file
    from augury.export.program import export_model

    written = export_model(run, folder)
    if not quiet:
        if written.reason:
            note(written.reason)
        note(f"Written to {folder}", style="default")
    if written.program is None:
        raise typer.Exit(2)
    return {name: str(getattr(written, name)) for name in ("program", "weights", "card")}
