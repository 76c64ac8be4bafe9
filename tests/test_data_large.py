"""Data larger than memory: read from disk, learned from bit for bit as in memory, written whole or not at all."""

import os
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset as TorchDataset

import augury
from augury.core.errors import AuguryError, InputError, RunError
from augury.core.rng import generator
from augury.data import folder as folder_reader
from augury.data import stored
from augury.data.load import load
from augury.data.rows import Rows, fingerprint, in_memory, limits
from augury.data.unlabelled import load_images, load_inputs
from augury.models.standardised import Standardised

QUICK = {
    "epochs": 2, "batch": 16, "evidence_images": 20, "samples_eval": 2, "evidence_below": 9.0,
    "generators": ("rotation",),
}  # fmt: skip


@pytest.fixture
def on_disk(monkeypatch, tmp_path):
    """A switch: nothing is small enough for memory."""
    monkeypatch.setenv("AUGURY_CACHE", str(tmp_path / "cache"))
    return lambda on=True: monkeypatch.setenv("AUGURY_IN_MEMORY", "0" if on else "256")


def pixels(n=40, shape=(8, 8), dtype=np.uint8):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    return (rng.integers(0, 256, (n, *shape)) // (1 + y.reshape(-1, *[1] * len(shape)))).astype(dtype), y


def folder_of(root, shape=(8, 8)):
    x, y = pixels(shape=shape)
    for i, (image, label) in enumerate(zip(x, y, strict=True)):
        (root / "ab"[label]).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(root / "ab"[label] / f"{i:02d}.png")
    return root


def resident():
    """Bytes of mapped files that count as memory of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("RssFile"))


def both(read, on_disk):
    on_disk(False)
    memory = read()
    on_disk()
    disk = read()
    assert isinstance(memory.x_train, torch.Tensor) and isinstance(disk.x_train, Rows)
    return memory, disk


def assert_same(memory, disk):
    for part in ("x_train", "x_test", "y_train", "y_test"):
        assert torch.equal(getattr(memory, part)[:], getattr(disk, part)[:]), part
    assert memory.class_names == disk.class_names
    assert memory.describe().replace(", read from disk", "") == disk.describe().replace(", read from disk", "")


class Pairs(TorchDataset):
    def __init__(self, *parts):
        self.parts = parts

    def __len__(self):
        return len(self.parts[0])

    def __getitem__(self, i):
        return self.parts[0][i], int(self.parts[1][i])


@pytest.mark.parametrize("kind", ["<f4", ">f4"])
def test_targets_that_torch_cannot_share_are_copied(kind):
    """Read-only ones, as of a mapped file or a data frame, of which it warns; another byte order, which it refuses."""
    x, y = pixels()
    y = y.astype(kind)
    x.flags.writeable = y.flags.writeable = False
    data = load((x, y), test=(x, y), task="regression")
    data.y_train.add_(1.0)
    assert torch.equal(data.y_test + 1.0, data.y_train) and y.max() == 1.0


class TestReaders:
    def test_folder(self, tmp_path, on_disk):
        folder = folder_of(tmp_path / "pets")
        assert_same(*both(lambda: load(folder), on_disk))

    def test_folder_of_colours_with_a_test_set(self, tmp_path, on_disk):
        folder_of(tmp_path / "p" / "train", (8, 8, 3))
        folder_of(tmp_path / "p" / "test", (8, 8, 3))
        assert_same(*both(lambda: load(tmp_path / "p"), on_disk))

    @pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
    @pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32, np.float64])
    def test_npz(self, tmp_path, on_disk, save, dtype):
        x, y = pixels(shape=(6, 8, 3))
        x = x / 255 if dtype == np.float64 else x.astype(dtype) * (257 if dtype == np.uint16 else 1)
        save(tmp_path / "d.npz", x=x, y=y)
        assert_same(*both(lambda: load(tmp_path / "d.npz"), on_disk))

    def test_folder_of_npy(self, tmp_path, on_disk):
        x, y = pixels()
        (tmp_path / "d").mkdir()
        np.save(tmp_path / "d" / "x.npy", np.asfortranarray(x))
        np.save(tmp_path / "d" / "y.npy", y)
        assert_same(*both(lambda: load(tmp_path / "d"), on_disk))

    def test_signals_in_a_mapped_array(self, tmp_path, on_disk):
        x = np.random.default_rng(0).normal(size=(30, 20, 2))
        np.save(tmp_path / "x.npy", x)
        pair = np.load(tmp_path / "x.npy", mmap_mode="r"), np.arange(30) % 3
        assert_same(*both(lambda: load(pair, kind="signal"), on_disk))

    def test_map_style_data_set_is_read_once(self, on_disk):
        x, y = pixels()
        calls = []

        class Noisy(Pairs):
            def __getitem__(self, i):
                calls.append(i)
                return torch.from_numpy(x[i]).float() / 255 + 0.01 * len(calls), int(y[i])

        on_disk()
        data = load(Noisy(x, y))
        seen = len(calls)
        assert seen <= len(x) + 2 and torch.equal(data.x_train[:], data.x_train[:]) and len(calls) == seen

    def test_data_sets_of_tensors_and_of_pictures(self, on_disk):
        x, y = pixels(shape=(8, 8, 3))
        assert_same(*both(lambda: load(Pairs(torch.from_numpy(x).permute(0, 3, 1, 2) / 255, y)), on_disk))
        assert_same(*both(lambda: load(Pairs([Image.fromarray(image) for image in x], y)), on_disk))

    def test_inputs_without_labels(self, tmp_path, on_disk):
        x, _ = pixels()
        np.save(tmp_path / "x.npy", x)
        on_disk()
        assert torch.equal(load_inputs(tmp_path / "x.npy").x[:], torch.from_numpy(x)[:, None] / 255)
        images = load_images(folder_of(tmp_path / "pets"), subset=5)
        assert isinstance(images.x, Rows) and images.x.shape == (5, 1, 8, 8)

    def test_resized_pixels_are_rounded_to_bytes(self, tmp_path, on_disk):
        folder = folder_of(tmp_path / "pets", (12, 12))
        memory, disk = both(lambda: load(folder, size=8), on_disk)
        assert (memory.x_train - disk.x_train[:]).abs().max() <= 0.5 / 255 + 1e-6
        assert torch.equal((disk.x_train[:] * 255).round() / 255, disk.x_train[:])
        arrays = both(lambda: load(stored_pair(tmp_path), size=6), on_disk)
        assert_same(*arrays)

    def test_sixteen_bits_and_floats_keep_their_values(self, tmp_path, on_disk):
        for mode, scale in (("I;16", 257), ("F", 1 / 255)):
            root = tmp_path / mode.replace(";", "")
            for i, image in enumerate(pixels()[0]):
                (root / "ab"[i % 2]).mkdir(parents=True, exist_ok=True)
                values = (image.astype(float) * scale).astype(np.uint16 if mode == "I;16" else np.float32)
                Image.fromarray(values).save(root / "ab"[i % 2] / f"{i:02d}.tif")
            assert_same(*both(lambda root=root: load(root), on_disk))

    def test_bad_data_are_refused_on_disk_too(self, tmp_path, on_disk):
        x, y = pixels(dtype=np.float32)
        on_disk()
        for values, words in ((x, "look like bytes"), (x + np.where(y == 1, np.nan, 0)[:, None, None], "finite")):
            np.savez(tmp_path / "d.npz", x=values, y=y)
            with pytest.raises(InputError, match=words):
                load(tmp_path / "d.npz")
        np.savez(tmp_path / "d.npz", x=(x * 10).astype(np.uint16), y=y)
        with pytest.raises(InputError, match="12 bits"):
            load(tmp_path / "d.npz")


def stored_pair(folder):
    x, y = pixels()
    np.save(folder / "pair.npy", x)
    return np.load(folder / "pair.npy", mmap_mode="r"), y


class TestCache:
    def kept(self, tmp_path):
        return sorted((tmp_path / "cache" / "streams").glob("*"))

    def test_images_are_decoded_once(self, tmp_path, on_disk, monkeypatch):
        folder = folder_of(tmp_path / "pets")
        on_disk()
        first = load(folder)
        monkeypatch.setattr(Image, "open", lambda *_: pytest.fail("decoded again"))
        assert_same(first, load(folder))
        assert len(self.kept(tmp_path)) == 1

    def test_processes_that_start_together_decode_once(self, tmp_path, on_disk, monkeypatch):
        folder, decoded = folder_of(tmp_path / "pets"), []
        on_disk()
        read = folder_reader._decoded
        monkeypatch.setattr(folder_reader, "_decoded", lambda *args: decoded.append(1) or read(*args))
        held, other = stored.missing, []

        @contextmanager
        def late(place):  # another process is between its look at the cache and its lock while this one decodes
            if not other:
                other.append(None)
                other.append(load(folder))
            with held(place) as needed:
                yield needed

        monkeypatch.setattr(folder_reader, "missing", late)
        assert_same(load(folder), other[1])
        assert len(decoded) == 1 and len(self.kept(tmp_path)) == 1

    def test_a_changed_file_is_read_anew(self, tmp_path, on_disk):
        folder = folder_of(tmp_path / "pets")
        on_disk()
        before = load(folder)
        file = next((folder / "a").glob("*.png"))
        Image.fromarray(np.full((8, 8), 77, np.uint8)).save(file)
        os.utime(file, (time.time() + 9, time.time() + 9))
        assert fingerprint(load(folder).x_train, before.y_train) != fingerprint(before.x_train, before.y_train)

    def test_whole_or_not_at_all(self, tmp_path, on_disk):
        folder = folder_of(tmp_path / "pets")
        last = sorted(folder.rglob("*.png"))[-1]
        last.write_bytes(last.read_bytes()[:60])  # its header is good, its pixels are cut off
        on_disk()
        with pytest.raises(InputError, match="cannot read image"):
            load(folder)
        assert self.kept(tmp_path) == []
        for _ in range(2):  # from the files, then from the cache
            data = load(folder, skip_bad=True)
            assert len(data.x_train) + len(data.x_test) == 39 and data.skipped == (str(last),)

    def test_twelve_bits_are_refused_from_the_cache_too(self, tmp_path, on_disk):
        for name in ("a", "b"):
            (tmp_path / "p" / name).mkdir(parents=True)
            Image.fromarray(np.full((8, 8), 900, np.uint16)).save(tmp_path / "p" / name / "0.tif")
        on_disk()
        for _ in range(2):
            with pytest.raises(InputError, match="12 bits"):
                load(tmp_path / "p")

    def test_a_full_disk_and_a_wrong_limit_are_said(self, tmp_path, on_disk, monkeypatch):
        folder = folder_of(tmp_path / "pets")
        on_disk()
        usage = type("Usage", (), {"free": 10})
        monkeypatch.setattr(stored.shutil, "disk_usage", lambda _: usage)
        with pytest.raises(RunError, match="AUGURY_CACHE"):
            load(folder)
        monkeypatch.setenv("AUGURY_IN_MEMORY", "much")
        with pytest.raises(InputError, match="AUGURY_IN_MEMORY must be a whole number"):
            load(folder)


class TestRows:
    rows = Rows(np.arange(60, dtype=np.uint8).reshape(10, 2, 3), 255.0)

    def test_indexed_as_a_tensor(self):
        x = torch.arange(60).reshape(10, 2, 3) / 255
        some = torch.tensor([7, 1, 1])
        for index in (slice(2, 5), slice(None, None, 3), some):
            assert torch.equal(self.rows[index], x[index])
            assert torch.equal(self.rows.take(index)[:], x[index])
        assert torch.equal(self.rows.take(some).take(slice(1))[:], x[7:8])
        assert self.rows.shape == x.shape and self.rows.min() == 0 and self.rows.max() == x.max()
        assert [len(part) for part in self.rows.split(4)] == [4, 4, 2]

    def test_limits_keep_nan(self):
        assert np.isnan(limits(np.array([[1.0], [np.nan], [2.0]]))).all()

    def test_too_much_for_memory_is_refused(self):
        x = Rows(np.broadcast_to(np.zeros((), np.uint8), (10**6, 3, 64, 64)))
        with pytest.raises(InputError, match="46 GiB"):
            in_memory(x)

    @pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells how much is resident")
    def test_resident_memory_does_not_grow_with_the_rows_read(self, tmp_path):
        np.save(tmp_path / "x.npy", np.ones((2**14, 64, 64), np.uint8))  # 64 MiB
        rows = Rows(np.load(tmp_path / "x.npy", mmap_mode="r"), 255.0)
        before = most = resident()
        for part in rows.split(256):
            assert part[0, 0, 0] == np.float32(1) / 255
            most = max(most, resident())
        assert most - before < 8 * 2**20

    def test_statistics_by_chunks(self, monkeypatch):
        x = torch.rand(50, 3, 4, 4, generator=generator(0)) * torch.tensor([1.0, 2.0, 0.0])[:, None, None]
        whole = Standardised.by(torch.nn.Identity(), x)
        monkeypatch.setattr("augury.data.rows.CHUNK", 7 * 48)
        parts = Standardised.by(torch.nn.Identity(), x)
        assert torch.allclose(whole.input_mean, parts.input_mean, atol=1e-7)
        assert torch.allclose(whole.input_scale, parts.input_scale, atol=1e-7)
        assert parts.input_scale[2] == 1


def tiny():
    torch.manual_seed(0)
    layers = torch.nn.Flatten(), torch.nn.Linear(144, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)
    return torch.nn.Sequential(*layers)


@pytest.mark.parametrize(
    ("method", "model", "settings"),
    [("lila", tiny, QUICK), ("augerino", tiny, QUICK), ("plain", lambda: "mlp", {"epochs": 2, "batch": 16})],
)
@pytest.mark.usefixtures("short_runs")
def test_learned_bit_for_bit_as_in_memory(tmp_path, on_disk, method, model, settings):
    folder = folder_of(tmp_path / "pets", (12, 12))
    found = {}
    for on in (False, True):
        on_disk(on)
        found[on] = augury.learn(folder, model(), method, run=tmp_path / f"run{on}", **settings)
    a, b = found.values()
    for name, value in a.model.state_dict().items():
        assert torch.equal(value, b.model.state_dict()[name]), name
    assert a.invariance.widths == b.invariance.widths
    assert [row["loss"] for row in a.metrics] == [row["loss"] for row in b.metrics]
    assert a.invariance.log_evidence == b.invariance.log_evidence
    assert a.invariance.test_accuracy == b.invariance.test_accuracy
    on_disk(False)  # data that were on disk may be in memory when the run resumes
    resumed = augury.learn(folder, model(), method, run=tmp_path / "runTrue", resume=True, **settings)
    assert len(resumed.metrics) == 2


def test_audit_doctor_and_variants_take_them(tmp_path, on_disk):
    folder = folder_of(tmp_path / "pets", (12, 12))
    on_disk()
    data = load(folder)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(144, 2))
    assert augury.audit(net, data, transforms="rotation", images=6).data.startswith("folder")
    assert isinstance(load(folder, variant="rotated").x_train, torch.Tensor)
    with pytest.raises(AuguryError):
        load(tmp_path / "x.npy")
