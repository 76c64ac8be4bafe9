"""Damaged and nonsensical files for every reader: only an `AuguryError` may come out, in bounded time and memory.

    python tests/fuzzing.py --inputs 100000      the long run (make fuzz); it resumes where it was stopped
    python tests/fuzzing.py npz 17               input 17 of the reader npz again

An input is a reader and a number, from which everything random follows. Files are mutated as bytes, JSON also by
structure; `structures.py` builds files with hypothesis.
"""

import argparse
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch

from adapt_doubles import extractor
from augury.auditing.model_source import load_source
from augury.cli.settings import merge
from augury.core.errors import AuguryError
from augury.core.rng import generator
from augury.data.load import load
from augury.export.policy import Policy
from augury.export.targets import TARGETS
from augury.methods.hyper.adapt import load_extractor
from augury.models.networks import build
from augury.records.saved import SavedModel
from augury.report.page import render
from augury.training.checkpoint import digest, load_checkpoint, load_tensors, save_checkpoint, save_tensors
from augury.training.run_folder import open_run, read_run
from augury.training.saved_model import describe_extractor, load_model, save_model
from data_doubles import four_arrays, image_folder, picture
from export_doubles import COLORS, FINITE, GEOMETRY, policy
from report_doubles import adapted_folder, audit_folder, learned_run

SECONDS, MEMORY = 20, 2 * 2**30
"""Most processor seconds for one input, by the clock ten times as many; most memory beyond what the process has."""
MEMORY_DISK = next((place for place in ("/dev/shm",) if os.access(place, os.W_OK)), None)
"""Where the damaged files go, if there is such a place: writes are synced, which a disk takes long for."""
CHUNK = 250
"""Inputs of one child process."""
NONSENSE: tuple[Any, ...] = (
    None, True, -1, 0, 1, 3, 0.5, -2.5, 1e300, -1e300, 1e-320, 10**400, 2**70, float("nan"), float("inf"), "", "x",
    '"""\n',    "\x00", "\\", "../../x", "{{ 7 * 7 }}", "\ud800", [], [1], [[]], {}, {"x": 1},
)  # fmt: skip


def mutated(values: Any, rng: random.Random) -> Any:
    """Change one thing somewhere: another value, a key less, an entry more or less."""
    if isinstance(values, dict) and values and rng.random() < 0.9:
        key = rng.choice(list(values))
        if rng.random() < 0.1:
            return {k: v for k, v in values.items() if k != key}
        return {**values, key: mutated(values[key], rng)}
    if isinstance(values, list) and values and rng.random() < 0.9:
        k, step = rng.randrange(len(values)), rng.random()
        middle = [] if step < 0.1 else [values[k]] * 2 if step < 0.2 else [mutated(values[k], rng)]
        return [*values[:k], *middle, *values[k + 1 :]]
    if isinstance(values, int | float) and not isinstance(values, bool) and rng.random() < 0.5:
        return rng.choice([values * -1, values * 1000, values / 1000, int(values), float(values)])
    return rng.choice(NONSENSE)


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Flip bits, change, cut, repeat, insert bytes; once or several times."""
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        if not content:
            return b"\x00"
        k, n = rng.randrange(len(content)), rng.choice((1, 1, 2, 4, 8, 40))
        middle = content[k : k + n]
        change = rng.randrange(7)
        if change == 0:
            middle = bytes([middle[0] ^ (1 << rng.randrange(8))]) + middle[1:]
        elif change == 1:
            middle = rng.randbytes(n)
        elif change == 2:
            middle = rng.choice((b"\xff", b"\x00", b"\x7f", b"\x80")) * n
        elif change == 3:
            middle = b""
        elif change == 4:
            middle = middle * rng.choice((2, 3, 50))
        elif change == 5:
            middle = rng.choice((b'"', b"{", b"[", b",", b"\n", b"=", b"9" * 30, "é".encode())) + middle
        else:
            return content[:k]
        content = content[:k] + middle + content[k + n :]
    return content


def damage_file(path: Path, rng: random.Random) -> None:
    """Mutate a file in place: its structure where it is JSON, or its bytes."""
    content = path.read_bytes()
    if path.suffix in (".json", ".jsonl") and rng.random() < 0.7:
        lines = content.decode().splitlines() if path.suffix == ".jsonl" else [content.decode()]
        k = rng.randrange(len(lines))
        lines[k] = json.dumps(mutated(json.loads(lines[k]), rng))
        path.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="surrogatepass")
    elif path.suffix == ".safetensors" and rng.random() < 0.5:
        size = int.from_bytes(content[:8], "little")
        header = json.dumps(mutated(json.loads(content[8 : 8 + size]), rng)).encode()
        path.write_bytes(len(header).to_bytes(8, "little") + header + content[8 + size :])
    else:
        path.write_bytes(damaged(content, rng))


def any_file(folder: Path, rng: random.Random) -> None:
    damage_file(rng.choice(sorted(p for p in folder.rglob("*") if p.is_file())), rng)


def other_arrays(folder: Path, rng: random.Random) -> None:
    """Write an .npz whose arrays have other types and shapes, or damage its bytes."""
    path = folder / "a.npz"
    if rng.random() < 0.4:
        return damage_file(path, rng)
    arrays: dict[str, Any] = dict(four_arrays())
    for name in rng.sample(list(arrays), rng.choice((1, 1, 2))):
        kind = rng.choice(["f2", "f8", "g", "c8", "?", "i1", "u8", "U3", "S2", "M8[D]", "m8[s]", "V4", "f4,i4", "i8"])
        shape = rng.choice([(), (0,), (20,), (10,), (20, 1), (20, 6, 6), (20, 6, 6, 3), (10, 0, 6), (2, 2)])
        raw = np.frombuffer(rng.randbytes(int(np.prod(shape)) * np.dtype(kind).itemsize), kind).reshape(shape)
        arrays[name] = raw if rng.random() < 0.7 else np.zeros(shape, kind)
    arrays = {k: v for k, v in arrays.items() if rng.random() < 0.95}
    np.savez(path, **arrays)
    return None


def resigned(folder: Path, rng: random.Random) -> None:
    """Change the record of a saved model and give the file the right checksum, or damage its bytes."""
    path = folder / "model.safetensors"
    if rng.random() < 0.5:
        return damage_file(path, rng)
    tensors, metadata = load_tensors(path)
    changed = mutated(json.loads(metadata["augury"]), rng)
    if rng.random() < 0.3 and tensors:
        tensors.pop(rng.choice(sorted(tensors)))
    try:
        text = json.dumps(changed)
        save_tensors(path, tensors, {"augury": text, "sha256": digest(text, tensors)})
    except (ValueError, TypeError, UnicodeEncodeError):
        damage_file(path, rng)
    return None


def a_config(folder: Path) -> None:
    request = merge({"data": "a.npz", "widths": {"rotation": 3.0}, "generators": ["rotation", "flip_x"]})
    (folder / "run.toml").write_text(request.as_toml())


def a_policy(folder: Path) -> None:
    policy(GEOMETRY, COLORS, FINITE).write(folder / "policy.json")


def read_policy(folder: Path) -> None:
    found = Policy.read(folder / "policy.json")
    found.widths_for((3, 30, 30))
    for name in ("torchvision", "kornia", "albumentations", "json"):
        written = TARGETS[name].write(found).text
        if name != "json":
            compile(written, name, "exec")
    found.sure().transform()


def read_folder(folder: Path) -> None:
    found = read_run(folder)
    html = render([found])
    render([found, found])
    if bad := re.search(r"(?<!\w)(nan|NaN|inf|Infinity)(?!\w)", html):
        raise AssertionError(f"the page says {bad[0]}")


def a_checkpoint(folder: Path) -> None:
    tensors = {"modules/model/w": torch.ones(3), "rng/views": torch.Generator().get_state()}
    facts = {"seconds": 0.0, "best": None, "rows": [{"epoch": 1, "loss": 1.0}], "optimizers": {}}
    save_checkpoint(folder, 1, tensors, facts)
    save_checkpoint(folder, 2, tensors, facts)


def a_config_to_resume(folder: Path) -> None:
    open_run(folder, {"epochs": 3, "data": {"source": "x", "train": 3}})


def images(folder: Path) -> None:
    image_folder(folder / "images", {"cat": 2, "dog": 2})
    for k, ending in enumerate(("jpg", "png", "bmp", "gif", "tiff", "webp", "ppm")):
        picture(8, 8, "L" if k % 2 else "RGB").save(folder / "images" / "cat" / f"{k}.{ending}")


def labelled(folder: Path) -> None:
    (folder / "images").mkdir()
    for k in range(4):
        picture(8, 8, "L").save(folder / "images" / f"{k}.png")
    (folder / "labels.csv").write_text("file,label\n" + "".join(f"images/{k}.png,{'ab'[k % 2]}\n" for k in range(4)))


def a_model(folder: Path) -> None:
    saved = SavedModel("network", "mlp5", [1, 8, 8], 4, data_kind="image", task="classification")
    save_model(folder / "model.safetensors", build("mlp5", (1, 8, 8), 4, generator(0)), saved)


def bare_weights(folder: Path) -> None:
    save_tensors(folder / "weights.safetensors", build("mlp5", (1, 8, 8), 4, generator(0)).state_dict())


def an_extractor(folder: Path) -> None:
    net = extractor()
    save_model(folder / "model.safetensors", net, describe_extractor(net))


def arrays_alone(folder: Path) -> None:
    (folder / "arrays").mkdir()
    for name, array in four_arrays().items():
        np.save(folder / "arrays" / f"{name}.npy", array)


def from_disk(name: str) -> Callable[[Path], None]:
    """Return a reader of data that count as too large for memory; some rows are read, too."""

    def read(folder: Path) -> None:
        with mock.patch.dict(os.environ, AUGURY_IN_MEMORY="0", AUGURY_CACHE=str(folder / "cache")):
            load(folder / name).x_train[torch.arange(2)]

    return read


@dataclass(frozen=True)
class Reader:
    """A valid sample, how it is damaged, and what reads it."""

    make: Callable[[Path], Any]
    read: Callable[[Path], Any]
    damage: Callable[[Path, random.Random], None] = any_file
    weight: int = 1


READERS = {
    "config": Reader(a_config, lambda f: merge({}, f / "run.toml").as_toml(), weight=3),
    "policy": Reader(a_policy, read_policy),
    "run": Reader(learned_run, read_folder),
    "audit": Reader(audit_folder, read_folder),
    "adaptation": Reader(adapted_folder, read_folder),
    "resume": Reader(a_config_to_resume, lambda f: open_run(f, {"epochs": 3}, resume=True)),
    "checkpoint": Reader(a_checkpoint, load_checkpoint, weight=3),
    "npz": Reader(lambda f: np.savez(f / "a.npz", **four_arrays()), lambda f: load(f / "a.npz"), other_arrays, 3),
    "npz on disk": Reader(lambda f: np.savez(f / "a.npz", **four_arrays()), from_disk("a.npz"), other_arrays, 2),
    "compressed npz on disk": Reader(lambda f: np.savez_compressed(f / "a.npz", **four_arrays()), from_disk("a.npz")),
    "npy on disk": Reader(arrays_alone, from_disk("arrays"), weight=2),
    "images": Reader(images, lambda f: load(f / "images"), weight=2),
    "images on disk": Reader(images, from_disk("images")),
    "labels": Reader(labelled, load, lambda f, rng: damage_file(f / "labels.csv", rng), 2),
    "model": Reader(a_model, load_model, resigned, 2),
    "weights": Reader(
        bare_weights, lambda f: load_source(str(f / "weights.safetensors"), (1, 8, 8), 4, "mlp5"), weight=2
    ),
    "extractor": Reader(an_extractor, load_extractor, resigned),
}


def sample(name: str, place: Path) -> Path:
    whole = place / f"{name}-whole"
    if not whole.exists():
        whole.mkdir(parents=True)
        READERS[name].make(whole)
    return whole


def attempt(name: str, number: int, place: Path) -> str | None:
    """Read one damaged input; return a finding, if there is one."""
    whole, folder = sample(name, place), place / name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole, folder)
    READERS[name].damage(folder, random.Random(f"{name}:{number}"))
    return outcome(lambda: READERS[name].read(folder))


def outcome(read: Callable[[], Any]) -> str | None:
    """Return what is wrong with how a reader ended: None if it read or refused."""
    timers = ((signal.ITIMER_PROF, signal.SIGPROF, SECONDS), (signal.ITIMER_REAL, signal.SIGALRM, 10 * SECONDS))
    before = [signal.signal(number, _too_long) for _, number, _ in timers]
    for timer, _, seconds in timers:
        signal.setitimer(timer, seconds)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read()
    except AuguryError as error:
        return None if len(str(error)) > 20 else f"says too little: {error}"
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {error!s:.150} at {Path(last.filename).name}:{last.lineno}"
    finally:
        for (timer, number, _), handler in zip(timers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)
    return None


def _too_long(number: int, frame: Any) -> None:
    raise TimeoutError(f"more than {SECONDS} s")


def bounded() -> None:
    """Let this process have little more memory than it has; a hang where no Python runs ends it."""
    resource.setrlimit(resource.RLIMIT_CPU, (CHUNK * SECONDS, CHUNK * SECONDS))
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))


def chunk(name: str, k: int, place: Path) -> dict[str, Any]:
    """Read one chunk of inputs in a child process, whose death is a finding."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        bounded()
        found: list[Any] = []
        if name in READERS:
            numbers = range(k * CHUNK, (k + 1) * CHUNK)
            found = [(n, said) for n in numbers if (said := attempt(name, n, place)) is not None]
        else:
            from structures import examples

            found = [(k, said) for said in examples(name, k, CHUNK, place)]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        os.write(write_end, json.dumps({"found": found[:5], "findings": len(found), "peak": peak}).encode())
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    return json.loads(text) if text else {"found": [(k, f"died: {status}")], "findings": 1, "peak": 0}


def campaign(total: int, out: Path, first: int = 0) -> int:
    """Run chunks of every reader until so many inputs are done; return the number of findings."""
    from structures import STRUCTURES

    state = json.loads(out.read_text()) if out.is_file() else {"chunks": {}, "findings": {}, "seconds": 0.0}
    weights = {name: reader.weight for name, reader in READERS.items()} | dict.fromkeys(STRUCTURES, 2)
    place = Path(tempfile.mkdtemp(prefix="fuzz-", dir=MEMORY_DISK))
    for name in READERS:
        sample(name, place)
    while CHUNK * sum(state["chunks"].values()) < total:
        name = min(weights, key=lambda n: state["chunks"].get(n, 0) / weights[n])
        k, started = state["chunks"].get(name, 0), time.monotonic()
        said = chunk(name, first + k, place)
        state["chunks"][name] = k + 1
        state["peak"] = max(state.get("peak", 0), said["peak"])
        state["seconds"] += time.monotonic() - started
        if said["found"]:
            state["findings"][name] = [*state["findings"].get(name, []), *said["found"]][:20]
            print(name, said["found"][:2], flush=True)
        out.parent.mkdir(parents=True, exist_ok=True)
        out.with_suffix(".part").write_text(json.dumps(state, indent=1))
        out.with_suffix(".part").replace(out)
    shutil.rmtree(place, ignore_errors=True)
    found = sum(map(len, state["findings"].values()))
    inputs = {name: CHUNK * n for name, n in state["chunks"].items()}
    print(f"{sum(inputs.values()):,} inputs, {found} findings, {state['seconds']:.0f} s, peak {state['peak']} MB")
    print(json.dumps(inputs))
    return found


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("again", nargs="*", help="a reader and a number: that input once more")
    asked.add_argument("--inputs", type=int, default=100_000)
    asked.add_argument("--first", type=int, default=0, help="the first chunk: another one gives other inputs")
    asked.add_argument("--out", type=Path, default=Path("runs/fuzz.json"))
    given = asked.parse_args()
    if given.again:
        print(attempt(given.again[0], int(given.again[1]), Path(tempfile.mkdtemp(prefix="fuzz-", dir=MEMORY_DISK))))
        return
    sys.exit(1 if campaign(given.inputs, given.out, given.first) else 0)


if __name__ == "__main__":
    main()
