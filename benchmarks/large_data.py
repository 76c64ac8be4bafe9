"""Data larger than memory: peak of resident memory and time per image, from disk and in memory.

    python benchmarks/large_data.py [--images 200000] [--cases files cache memory]

Real photographs (the two of scikit-learn) are cut into tiles of 32 x 32 pixels, in two classes; their files are
repeated until there are enough. `augury learn FOLDER --epochs 1` reads them, in a process of its own: files (decodes
them into the cache), cache (finds them there), memory (decodes them and holds them in memory as floats). Seconds are
those of the processor: other load on the machine does not count, nor does waiting for the disk.
"""

import argparse
import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

SIDE = 32
CASES = ("files", "cache", "memory")


def tiles() -> dict[str, list[bytes]]:
    """Return the tiles of each photograph as PNG files."""
    from sklearn.datasets import load_sample_images

    sample, found = load_sample_images(), {}
    for path, pixels in zip(sample.filenames, sample.images, strict=True):
        rows, columns = pixels.shape[0] // SIDE, pixels.shape[1] // SIDE
        files = []
        for k in range(rows * columns):
            top, left = SIDE * (k // columns), SIDE * (k % columns)
            Image.fromarray(pixels[top : top + SIDE, left : left + SIDE]).save(file := io.BytesIO(), "png")
            files.append(file.getvalue())
        found[Path(path).stem] = files
    return found


def repeated(folder: Path, images: int) -> None:
    for name, files in tiles().items():
        (folder / name).mkdir(parents=True)
        for i in range(images // 2):
            (folder / name / f"{i:06d}.png").write_bytes(files[i % len(files)])


def learn(folder: Path, scratch: Path, case: str) -> dict[str, float]:
    """Learn for one epoch in a process of its own."""
    cache = scratch / ("empty" if case == "memory" else "cache")
    words = ["learn", str(folder), "--epochs", "1", "-g", "rotation", "--no-baseline", "-q", "--json", "--overwrite"]
    words += ["--run", str(scratch / f"run_{case}"), "--set", "samples_eval=2", "--set", "evidence_every=1"]
    limit = {"AUGURY_IN_MEMORY": "1000000"} if case == "memory" else {}
    process = subprocess.Popen(
        [sys.executable, "-c", "from augury.cli.main import main; main()", *words],
        env={**os.environ, "AUGURY_CACHE": str(cache), **limit},
        stdout=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(words)} failed")
    return {"seconds": usage.ru_utime + usage.ru_stime, "peak": 1024 * usage.ru_maxrss}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=200_000)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--scratch", type=Path, help="folder for images and cache; default: a temporary one")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        scratch = asked.scratch or Path(temporary)
        folder = scratch / "images"
        if not folder.exists():
            repeated(folder, asked.images)
        found = {}
        for name in asked.cases:
            found[name] = case = learn(folder, scratch, name)
            per_image = 1e3 * case["seconds"] / asked.images
            line = f"{name:7s} {case['peak'] / 1e9:6.2f} GB  {case['seconds']:7.1f} s  {per_image:6.3f} ms per image"
            print(line, flush=True)


if __name__ == "__main__":
    main()
