"""`augury learn`: all that can be refused is refused before torch is loaded."""

from pathlib import Path
from typing import Any

import typer

from augury.cli import learn_options as o
from augury.cli.asked import Asked, asked, setting, width
from augury.cli.console import err
from augury.core.errors import InputError
from augury.training.run_folder import check_run, new_folder

HELP = """
Learn which transformations leave the labels alone, and how far.

The widths are learned from the training data while the network trains:
no validation set, no search. A run leaves config.json, metrics.jsonl,
checkpoint/, model.safetensors, invariance.json, views/ and report.html,
a page that shows all of it, in its folder.

\b
augury learn mnist5k --variant rotated              real digits with a planted rotation
augury learn my_photos/ --model resnet_8_16         your own images, one sub-folder per class
augury learn data.npz -g rotation,flip_x            only some transformations
augury learn mnist5k -m augmented -w rotation=30    widths that you fix
augury learn mnist5k --policy runs/a                widths that another run learned
augury learn mnist5k --run runs/a --resume          go on where a run was stopped
augury learn my_photos/ --dry-run                   how much memory, about how long
augury learn --config run.toml --epochs 50          settings from a file; flags win
augury learn mnist5k --print-config > run.toml      and back into one
augury learn mnist5k --json > result.json           for a script
"""


def learn(
    data: o.Source = None,
    variant: o.Variant = None,
    subset: o.Subset = None,
    test: o.Test = None,
    test_fraction: o.TestFraction = None,
    size: o.Size = None,
    task: o.Task = None,
    skip_bad: o.SkipBad = None,
    method: o.Method = None,
    model: o.Model = None,
    generators: o.Generators = None,
    width_: o.Widths = None,
    policy: o.Policy = None,
    samples: o.Samples = None,
    epochs: o.Epochs = None,
    batch: o.Batch = None,
    seed: o.Seed = None,
    device: o.Device = None,
    set_: o.Set = None,
    run: o.Run = None,
    overwrite: o.Overwrite = False,
    resume: o.Resume = False,
    baseline: o.Baseline = None,
    tensorboard: o.Tensorboard = None,
    config: o.Config = None,
    print_config: o.PrintConfig = False,
    dry_run: o.DryRun = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """Check what was asked, then do it; see `HELP`."""
    flags: dict[str, Any] = {
        "data": data, "variant": variant, "subset": subset, "test": test, "test_fraction": test_fraction,
        "size": size, "task": task, "skip_bad": skip_bad, "method": method, "model": model, "samples": samples,
        "epochs": epochs, "batch": batch, "seed": seed, "device": device, "baseline": baseline,
    }  # fmt: skip
    flags |= {
        "policy": policy and str(policy),
        "run": run and str(run),
        "tensorboard": tensorboard and str(tensorboard),
    }
    words = [word for part in generators or [] for word in part.split(",") if word]
    flags |= {"generators": words or None, "widths": dict(map(width, width_ or [])) or None}
    request = asked(flags | dict(map(setting, set_ or [])), config)
    if print_config:
        print(request.as_toml(), end="")
        return
    folder = _folder(request, overwrite=overwrite, resume=resume)
    if dry_run:
        from augury.cli.dry_run import show_forecast

        show_forecast(request, folder, as_json=json, quiet=quiet)
        return
    _carry_out(request, folder, overwrite=overwrite, resume=resume, as_json=json, quiet=quiet)


def _carry_out(
    request: Asked, folder: Path, *, overwrite: bool, resume: bool, as_json: bool, quiet: bool
) -> None:
    from augury.cli.learning import carry_out

    try:
        carry_out(request, folder, overwrite=overwrite, resume=resume, as_json=as_json, quiet=quiet)
    except KeyboardInterrupt:
        err.print(
            f"Interrupted. The same command with --run {folder} --resume goes on from the last checkpoint.",
            style="yellow",
            soft_wrap=True,
        )
        raise typer.Exit(130) from None


def _folder(request: Asked, *, overwrite: bool, resume: bool) -> Path:
    """Return the run's folder: the one that was named, or a new one."""
    if request.run is not None:
        check_run(request.run, overwrite=overwrite, resume=resume)
        return request.run
    if resume:
        raise InputError("--resume must know which run to continue. Name its folder: --run runs/NAME.")
    parts = (Path(request.data).stem or "data", request.reading.get("variant"), request.method)
    return new_folder("-".join(word for word in parts if word))
