"""Models from files and import paths; files that can run code are refused unless they are trusted."""

import io
import json
import os
import pickle
import sys
import warnings
import zipfile
from contextlib import suppress

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from augury.auditing.audit import audit
from augury.auditing.model_source import load_source
from augury.core.errors import InputError
from augury.core.rng import generator
from augury.models.networks import build
from augury.records.saved import SavedModel
from augury.training.saved_model import save_model
from refusal import refused

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


class TestSafeWays:
    def test_weights_with_a_named_architecture(self, tmp_path):
        net = network()
        save_file(net.state_dict(), tmp_path / "weights.safetensors")
        loaded = load_source(str(tmp_path / "weights.safetensors"), SHAPE, 4, "mlp5")
        assert torch.equal(loaded(images()), net(images())) and not loaded.training
        with pytest.raises(InputError, match=r"holds weights only.*--architecture.*mlp5"):
            load_source(str(tmp_path / "weights.safetensors"), SHAPE, 4)
        refused("are not those of 'mlp'", load_source, str(tmp_path / "weights.safetensors"), SHAPE, 4, "mlp")
        refused("Did you mean 'mlp5'", load_source, str(tmp_path / "weights.safetensors"), SHAPE, 4, "mlp55")

    def test_a_run_folder_and_its_model_file(self, tmp_path):
        net = network()
        save_model(tmp_path / "model.safetensors", net, SavedModel("network", "mlp5", list(SHAPE), 4))
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
        before = list(sys.path)
        assert torch.equal(load_source("my_models_for_audit:pixels", SHAPE, 4)(images()), images().flatten(1)[:, :4])
        assert isinstance(load_source("my_models_for_audit:make", SHAPE, 4), nn.Sequential)
        assert isinstance(load_source("my_models_for_audit:Holder.net", SHAPE, 4), nn.Flatten)
        assert sys.path == before
        for name in ("number", "Holder"):
            refused("must be a module, a function", load_source, f"my_models_for_audit:{name}", SHAPE, 4)
        refused("could not be imported", load_source, "my_models_for_audit:nothing", SHAPE, 4)
        refused("could not be imported", load_source, "no_such_package:model", SHAPE, 4)


def program(net):
    """The members of a program of torch.export, and its description."""
    made = io.BytesIO()
    torch.export.save(torch.export.export(net, (images(3),)), made)
    with zipfile.ZipFile(made) as archive:
        members = {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}
    return members, json.loads(members["models/model.json"])


def pickled(trace):
    made = io.BytesIO()
    torch.save({"model": Bomb(trace)}, made)
    return made.getvalue()


def importing(module):
    """A program whose inputs are described by an enum of a module."""
    members, facts = program(nn.Flatten())
    signature = facts["graph_module"]["module_call_graph"][0]["signature"]
    spec = json.loads(signature["in_spec"])
    spec[1]["children_spec"][1]["context"] = json.dumps([{"__enum__": True, "fqn": f"{module}:A", "name": "B"}])
    signature["in_spec"] = json.dumps(spec)
    return {**members, "models/model.json": json.dumps(facts)}


def writing(path):
    """A program that maps a file into memory, and writes to it."""

    class Fill(nn.Module):
        def forward(self, x):
            return x.flatten(1) + torch.zeros(64).fill_(0.0)

    members, facts = program(Fill())
    (node,) = (n for n in facts["graph_module"]["graph"]["nodes"] if n["target"] == "torch.ops.aten.zeros.default")
    given = {"filename": {"as_string": str(path)}, "shared": {"as_bool": True}, "size": {"as_int": 64}}
    node["target"] = "torch.ops.aten.from_file.default"
    node["inputs"] = [{"name": name, "arg": arg, "kind": 1} for name, arg in given.items()]
    return {**members, "models/model.json": json.dumps(facts)}


def archives(trace, module):
    """One archive of each kind that was found; all of them leave a trace if torch loads and calls them."""
    (members, facts), bomb = program(nn.Flatten()), pickled(trace)
    second = {name.replace("/model", "/b_config"): content for name, content in members.items() if "/model" in name}
    version = facts["schema_version"]
    return {
        "legacy layout at the root": {
            "version": f"{version['major']}.{version['minor']}",
            "serialized_exported_program.json": members["models/model.json"],
            **{f"serialized_{name}.pt": bomb for name in ("state_dict", "constants", "example_inputs")},
        },
        "a second program by another name": {**members, **second, "data/sample_inputs/b_config.pt": bomb},
        "an enum that imports": importing(module),
        "a file as a tensor": writing(trace),
        "pickled example inputs": {**members, "data/sample_inputs/model.pt": bomb},
    }


@pytest.fixture
def crafted(tmp_path, monkeypatch):
    """Files that run code if they are loaded."""
    folder, trace = tmp_path / "files", tmp_path / "trace"
    folder.mkdir()
    (tmp_path / "leaves_a_trace.py").write_text(f"import os\nos.mkdir({str(trace)!r})\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "leaves_a_trace", raising=False)
    for name, members in archives(trace, "leaves_a_trace").items():
        with zipfile.ZipFile(folder / f"{name}.pt2", "w") as archive:
            for member, content in members.items():
                archive.writestr(member if name.startswith("legacy") else f"a/{member}", content)
    (folder / "zipped.pt").write_bytes(pickled(trace))
    for ending in (".pt", ".pth", ".pkl", ".bin", ".ckpt", ""):
        (folder / f"plain{ending}").write_bytes(pickle.dumps(Bomb(trace)))
    return folder


class TestTrust:
    def test_what_can_run_code_is_refused_and_never_opened(self, tmp_path, crafted, programs, augury, monkeypatch):
        sources = [*crafted.iterdir(), programs[0] / "any.pt2"]
        for module, name in ((torch, "load"), (torch.jit, "load"), (torch.export, "load")):
            monkeypatch.setattr(module, name, lambda *a, **k: pytest.fail("it was opened"))
        for path in sources:
            says = r"is refused.*can run any code.*trust=True.*safe ways.*save_file"
            refused(says, audit, str(path), images(), "C4")
            code, _, err = augury("audit", path, "toy", "-g", "rotation", "--out", tmp_path / "out")
            assert code == 2 and "--trust" in err and not (tmp_path / "out").exists()
        assert len(sources) == 13 and not (tmp_path / "trace").exists()

    def test_the_bombs_are_real(self, tmp_path, crafted):
        """Or the refusals would show nothing."""
        trace = tmp_path / "trace"
        for path in (*crafted.glob("*.pt2"), crafted / "zipped.pt", crafted / "plain"):
            with suppress(InputError):
                load_source(str(path), SHAPE, 4, trust=True)(images(3))
            assert trace.exists(), path
            trace.rmdir() if trace.is_dir() else trace.unlink()

    @pytest.mark.parametrize("ending", [".safetensors", ".onnx"])
    def test_another_ending_does_not_help(self, tmp_path, ending):
        trace = tmp_path / "trace"
        (tmp_path / f"plain{ending}").write_bytes(pickle.dumps(Bomb(trace)))
        torch.save({"model": Bomb(trace)}, tmp_path / f"zipped{ending}")
        for name in ("plain", "zipped"):
            with pytest.raises(InputError, match=r"refused|not a safetensors file|none of these"):
                load_source(str(tmp_path / f"{name}{ending}"), SHAPE, 4)
        assert not trace.exists()

    @pytest.mark.parametrize("name", ["any.pt2", "three.pt2"])
    def test_an_exported_program_gives_what_the_module_gives(self, programs, name):
        folder, net = programs
        program = load_source(str(folder / name), SHAPE, 4, trust=True)
        for N in (1, 3, 7):
            torch.testing.assert_close(program(images(N)), net(images(N)))
        found = audit(str(folder / name), images(), "C4", corruptions=False, trust=True)
        expected = audit(net, images(), "C4", corruptions=False)
        assert found.LI.value == pytest.approx(expected.LI.value, rel=1e-5)
        assert found.SI.value == pytest.approx(expected.SI.value, rel=1e-5)
        assert found.sigma_max_jacobian == pytest.approx(expected.sigma_max_jacobian, rel=1e-3)

    def test_pickled_modules_and_weights_are_taken_if_trusted(self, tmp_path):
        net = network()
        torch.save(net, tmp_path / "module.pt")
        torch.save(net.state_dict(), tmp_path / "weights.pth")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            torch.jit.save(torch.jit.trace(net, images()), tmp_path / "script.pt")
        for name, architecture in (("module.pt", None), ("weights.pth", "mlp5"), ("script.pt", None)):
            model = load_source(str(tmp_path / name), SHAPE, 4, architecture, trust=True)
            assert torch.equal(model(images()), net(images()))
        refused("holds weights only", load_source, str(tmp_path / "weights.pth"), SHAPE, 4, trust=True)

    def test_a_program_of_two_inputs_is_refused(self, tmp_path):
        class Two(nn.Module):
            def forward(self, x, y):
                return x + y

        torch.export.save(torch.export.export(Two(), (images(2), images(2))), tmp_path / "two.pt2")
        with pytest.raises(InputError, match="must take one tensor of inputs; it takes 2"):
            load_source(str(tmp_path / "two.pt2"), SHAPE, 4, trust=True)


def test_damaged_and_other_files(tmp_path):
    (tmp_path / "model.pt2").write_bytes(b"nothing of the kind")
    (tmp_path / "model.onnx").write_bytes(b"something else")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="not a model that this torch can read"):
        load_source(str(tmp_path / "model.pt2"), SHAPE, 4, trust=True)
    refused(r"ending '\.onnx' is none of these", load_source, str(tmp_path / "model.onnx"), SHAPE, 4)
    refused("no trained model", load_source, str(tmp_path / "empty"), SHAPE, 4)
    refused("no such file or folder", load_source, "nowhere", SHAPE, 4)
