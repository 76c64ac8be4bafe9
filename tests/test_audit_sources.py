"""Models from files and import paths; files that could run code are refused before anything in them runs."""

import io
import json
import os
import pickle
import zipfile

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from augury.auditing.audit import audit
from augury.auditing.exported import _clean_copy, _is_arithmetic
from augury.auditing.model_source import load_source
from augury.core.errors import InputError, RunError
from augury.core.rng import generator
from augury.models.networks import build
from augury.training.saved_model import Recipe, save_model

SHAPE = (1, 8, 8)


def images(N=12):
    return torch.rand(N, *SHAPE, generator=generator(1))


def network():
    return build("mlp5", SHAPE, 4, generator(0))


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The same network, exported for any batch size and for batches of three."""
    folder = tmp_path_factory.mktemp("programs")
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4)).eval()
    any_size = torch.export.export(net, (images(4),), dynamic_shapes=({0: torch.export.Dim("batch")},))
    torch.export.save(any_size, folder / "any.pt2")
    torch.export.save(torch.export.export(net, (images(3),)), folder / "three.pt2")
    return folder, net


class Bomb:
    """A pickle that would leave a folder behind if anybody loaded it."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


def rewritten(source, target, change):
    """Copy an archive, with some of its members changed."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            new.writestr(name, change(name.partition("/")[2], old.read(name)))
    return target


def graph_with(edit):
    def change(name, content):
        if not name.startswith("models/"):
            return content
        graph = json.loads(content)
        edit(graph)
        return json.dumps(graph).encode()

    return change


class TestSafeWays:
    @pytest.mark.parametrize("name", ["any.pt2", "three.pt2"])
    def test_an_exported_program_gives_what_the_module_gives(self, programs, name):
        folder, net = programs
        program = load_source(str(folder / name), SHAPE, 4)
        for N in (1, 3, 7):
            torch.testing.assert_close(program(images(N)), net(images(N)))
        found = audit(str(folder / name), images(), "C4", corruptions=False)
        expected = audit(net, images(), "C4", corruptions=False)
        assert found.LI.value == pytest.approx(expected.LI.value, rel=1e-5)
        assert found.SI.value == pytest.approx(expected.SI.value, rel=1e-5)
        assert found.sigma_max_jacobian == pytest.approx(expected.sigma_max_jacobian, rel=1e-3)

    def test_weights_with_a_named_architecture(self, tmp_path):
        net = network()
        save_file(net.state_dict(), tmp_path / "weights.safetensors")
        loaded = load_source(str(tmp_path / "weights.safetensors"), SHAPE, 4, "mlp5")
        assert torch.equal(loaded(images()), net(images())) and not loaded.training
        with pytest.raises(InputError, match=r"holds weights only.*--architecture.*mlp5"):
            load_source(str(tmp_path / "weights.safetensors"), SHAPE, 4)
        with pytest.raises(InputError, match="are not those of 'mlp'"):
            load_source(str(tmp_path / "weights.safetensors"), SHAPE, 4, "mlp")
        with pytest.raises(InputError, match="Did you mean 'mlp5'"):
            load_source(str(tmp_path / "weights.safetensors"), SHAPE, 4, "mlp55")

    def test_a_run_folder_and_its_model_file(self, tmp_path):
        net = network()
        recipe = Recipe("mlp5", list(SHAPE), 4, "image", None, "independent", 1, 1, False)
        save_model(tmp_path / "model.safetensors", net, recipe)
        for source in (tmp_path, tmp_path / "model.safetensors"):
            assert torch.equal(load_source(str(source), SHAPE, 4)(images()), net(images()))

    def test_an_import_path_from_the_folder_one_stands_in(self, tmp_path, monkeypatch):
        (tmp_path / "my_models_for_audit.py").write_text(
            "import torch\n"
            "def pixels(x):\n    return x.flatten(1)[:, :4]\n"
            "def make():\n    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 4))\n"
            "class Holder:\n    net = torch.nn.Flatten()\n"
            "number = 3\n"
        )
        monkeypatch.chdir(tmp_path)
        import sys

        before = list(sys.path)
        assert torch.equal(
            load_source("my_models_for_audit:pixels", SHAPE, 4)(images()), images().flatten(1)[:, :4]
        )
        assert isinstance(load_source("my_models_for_audit:make", SHAPE, 4), nn.Sequential)
        assert isinstance(load_source("my_models_for_audit:Holder.net", SHAPE, 4), nn.Flatten)
        assert sys.path == before
        for name in ("number", "Holder"):
            with pytest.raises(InputError, match="must be a module, a function"):
                load_source(f"my_models_for_audit:{name}", SHAPE, 4)
        with pytest.raises(InputError, match="could not be imported"):
            load_source("my_models_for_audit:nothing", SHAPE, 4)
        with pytest.raises(InputError, match="could not be imported"):
            load_source("no_such_package:model", SHAPE, 4)


class TestRefusals:
    @pytest.mark.parametrize("ending", [".pt", ".pth", ".pkl", ".bin", ".ckpt", ""])
    def test_a_pickle_is_refused_and_never_loaded(self, tmp_path, ending):
        path, trace = tmp_path / f"model{ending}", tmp_path / "trace"
        path.write_bytes(pickle.dumps(Bomb(trace)))
        with pytest.raises(InputError, match=r"is a pickle.*refused.*safe way.*save_file.*torch.export.save"):
            audit(str(path), images(), "C4")
        assert not trace.exists()

    @pytest.mark.parametrize("ending", [".pt2", ".safetensors"])
    def test_a_pickle_under_another_ending_is_refused_too(self, tmp_path, ending):
        trace = tmp_path / "trace"
        (tmp_path / f"plain{ending}").write_bytes(pickle.dumps(Bomb(trace)))
        torch.save({"model": Bomb(trace)}, tmp_path / f"zipped{ending}")
        for name in ("plain", "zipped"):
            with pytest.raises(InputError, match=r"refused|not a safetensors file"):
                load_source(str(tmp_path / f"{name}{ending}"), SHAPE, 4)
        assert not trace.exists()

    def test_example_inputs_of_a_program_are_not_unpickled(self, programs, tmp_path):
        trace, buffer = tmp_path / "trace", io.BytesIO()
        torch.save(Bomb(trace), buffer)

        def change(name, content):
            return buffer.getvalue() if name.startswith("data/sample_inputs") else content

        path = rewritten(programs[0] / "any.pt2", tmp_path / "bomb.pt2", change)
        torch.testing.assert_close(load_source(str(path), SHAPE, 4)(images()), programs[1](images()))
        assert not trace.exists()
        with pytest.raises(Exception):  # noqa: B017 torch itself would have run it, whatever it says afterwards
            torch.export.load(path)
        assert trace.exists(), "the bomb works, or this test would show nothing"

    def test_pickled_weights_in_a_program_are_refused(self, programs, tmp_path):
        def change(name, content):
            if not name.endswith("weights_config.json"):
                return content
            config = json.loads(content)
            next(iter(config["config"].values()))["use_pickle"] = True
            return json.dumps(config).encode()

        path = rewritten(programs[0] / "any.pt2", tmp_path / "pickled.pt2", change)
        with pytest.raises(InputError, match="weights or constants are pickles"):
            load_source(str(path), SHAPE, 4)

    @pytest.mark.parametrize(
        ("target", "allowed"),
        [
            ("torch.ops.aten.relu.default", True),
            ("torch.os.system", False),
            ("torch.ops.load_library", False),
            ("_operator.methodcaller", False),
            ("#custom:thing", False),
        ],
    )
    def test_a_graph_may_call_operators_only(self, programs, tmp_path, target, allowed):
        def edit(graph):
            for node in graph["graph_module"]["graph"]["nodes"]:
                if "relu" in node["target"]:
                    node["target"] = target

        path = rewritten(programs[0] / "any.pt2", tmp_path / "graph.pt2", graph_with(edit))
        if allowed:
            load_source(str(path), SHAPE, 4)
            return
        with pytest.raises(InputError, match="which is no operator"):
            load_source(str(path), SHAPE, 4)

    def test_sizes_are_arithmetic_and_guards_are_dropped(self, programs, tmp_path):
        trace = tmp_path / "trace"
        evil = f"open({str(trace)!r}, 'w')"

        def guards(graph):
            graph["guards_code"] = [evil]

        path = rewritten(programs[0] / "any.pt2", tmp_path / "guards.pt2", graph_with(guards))
        with zipfile.ZipFile(_clean_copy(path)) as clean:
            (graph,) = (json.loads(clean.read(name)) for name in clean.namelist() if "/models/" in name)
        assert graph["guards_code"] == []

        def sizes(graph):
            text = json.dumps(graph).replace("Symbol('s", f"{evil} or Symbol('s".replace('"', "'"))
            graph.update(json.loads(text))

        path = rewritten(programs[0] / "any.pt2", tmp_path / "sizes.pt2", graph_with(sizes))
        with pytest.raises(InputError, match="no arithmetic of sizes"):
            load_source(str(path), SHAPE, 4)
        assert not trace.exists()

    @pytest.mark.parametrize(
        ("text", "harmless"),
        [
            ("Symbol('s31', positive=True, integer=True)", True),
            ("2*Symbol('s0', integer=True) + Max(1, s1)", True),
            ("FloorDiv(s0, 4)", True),
            ("exec(chr(112))", False),
            ("Symbol('s0').__class__", False),
            ("(lambda: 1)()", False),
            ("s0[0]", False),
            ("__import__('os')", False),
            ("Symbol('s0', **{})", False),
            ("s0 +", False),
        ],
    )
    def test_what_counts_as_arithmetic(self, text, harmless):
        assert _is_arithmetic(text) is harmless

    def test_a_damaged_program_and_files_of_other_kinds(self, tmp_path):
        (tmp_path / "model.pt2").write_bytes(b"nothing of the kind")
        (tmp_path / "model.onnx").write_bytes(b"something else")
        (tmp_path / "empty").mkdir()
        with pytest.raises(InputError, match="refused: it is not an archive"):
            load_source(str(tmp_path / "model.pt2"), SHAPE, 4)
        with pytest.raises(InputError, match=r"ending '\.onnx' is none of these"):
            load_source(str(tmp_path / "model.onnx"), SHAPE, 4)
        with pytest.raises((InputError, RunError), match="no trained model"):
            load_source(str(tmp_path / "empty"), SHAPE, 4)
        with pytest.raises(InputError, match="no such file or folder"):
            load_source("nowhere", SHAPE, 4)

    def test_a_program_of_two_inputs_is_refused(self, tmp_path):
        class Two(nn.Module):
            def forward(self, x, y):
                return x + y

        torch.export.save(torch.export.export(Two(), (images(2), images(2))), tmp_path / "two.pt2")
        with pytest.raises(InputError, match="must take one tensor of inputs; it takes 2"):
            load_source(str(tmp_path / "two.pt2"), SHAPE, 4)
