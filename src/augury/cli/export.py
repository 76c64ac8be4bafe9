"""`augury export`: the learned policy as code or JSON, the trained model as a program."""

from pathlib import Path
from typing import Annotated, Any

import typer

from augury.cli.console import err, print_json
from augury.core.errors import InputError, choose
from augury.core.files import write_text
from augury.export.card import exportable, policy_of_run
from augury.export.targets import TARGETS, Target

HELP = f"""
Write what a run learned in the words of other libraries.

{"; ".join(f"{name}: {row.what}" for name, row in TARGETS.items())}.
Code and JSON go to standard output unless --out names a file.

\b
augury export runs/a --to kornia > policy.py         code to paste
augury export runs/a --to json --out policy.json     for augury learn DATA -m augmented --policy policy.json
augury export runs/a --to torchvision --sure         only widths with the verdict "invariant"
augury export runs/a --to torch --out shipped/       model.pt2, model.safetensors, MODEL_CARD.md
"""


def _complete(incomplete: str) -> list[tuple[str, str]]:
    return [(name, row.what) for name, row in TARGETS.items() if name.startswith(incomplete)]


def export(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="The folder of a run of learn or adapt that has ended.")
    ],
    to: Annotated[
        str, typer.Option("--to", help=f"{', '.join(TARGETS)}.", show_default=False, autocompletion=_complete)
    ],
    output: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File to write, or folder for --to torch (default: RUN/exported)."),
    ] = None,
    sure: Annotated[
        bool, typer.Option("--sure", help="Leave out widths whose verdict is not 'invariant' or 'given'.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object that says what was written (needs --out).")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No remarks.")] = False,
) -> None:
    """Check what was asked, then do it; see `HELP`."""
    target = TARGETS[choose("--to", to, TARGETS)]
    if as_json and output is None and target.write is not None:
        raise InputError("--json says what was written where, so it needs a file to write: add --out FILE.")
    if target.write is None:
        if sure:
            raise InputError("--sure is for policies; the model is exported as it is. Leave it out.")
        written = _model(run, output, quiet)
    else:
        written = _policy(run, target, output, sure, quiet)
    if as_json:
        print_json(written)


def _policy(run: str, target: Target, output: Path | None, sure: bool, quiet: bool) -> dict[str, Any]:
    policy = policy_of_run(run)
    code = target.write(policy.sure() if sure else policy)  # type: ignore[misc]
    if output is None:
        print(code.text, end="")
    else:
        if output.is_dir():
            raise InputError(
                f"--out must name a file; {output} is a folder. Try --out {output / target.file}."
            )
        write_text(output, code.text)
    if not quiet:
        for note in code.left_out:
            err.print(f"left out: {note}", style="yellow", soft_wrap=True, markup=False)
        if output is not None:
            err.print(f"Written to {output}", highlight=False, soft_wrap=True)
    return {"file": str(output), "left_out": list(code.left_out)}


def _model(run: str, output: Path | None, quiet: bool) -> dict[str, Any]:
    folder = output or exportable(run).path / TARGETS["torch"].file
    from augury.export.program import export_model

    written = export_model(run, folder)
    if written.reason:
        err.print(written.reason, style="yellow", soft_wrap=True, markup=False)
    if not quiet:
        err.print(f"Written to {folder}", highlight=False, soft_wrap=True)
    if written.program is None:
        raise typer.Exit(2)
    return {name: str(getattr(written, name)) for name in ("program", "weights", "card")}
