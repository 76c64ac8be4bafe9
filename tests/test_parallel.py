"""Several processes give the answer of one."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from lightning_fabric import Fabric
from torch import nn

from augury import amortize, learn
from augury.cli import processes
from augury.config.hyper import METHODS as PRETRAINING
from augury.core.errors import InputError
from augury.core.rng import generator, rows
from augury.core.world import Processes
from augury.methods.registry import METHODS
from augury.models.batchnorm import refuse_coupled
from parallel_cases import CASES, FEW, images, net

HERE = Path(__file__).parent
PYTHONPATH = os.pathsep.join([str(HERE), str(HERE.parent), str(HERE.parent / "src"), *sys.path])


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """The answers of two processes to every case."""
    path = tmp_path_factory.mktemp("two") / "answers"
    environment = {**os.environ, "PYTHONPATH": PYTHONPATH, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(HERE / "parallel_cases.py"), str(path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return [torch.load(f"{path}.{rank}") for rank in range(2)]


def test_every_method_has_a_case():
    assert set(CASES) >= {*METHODS, *PRETRAINING}


@pytest.mark.parametrize("name", CASES)
def test_two_processes_give_the_answer_of_one(name, answers):
    one, *two = CASES[name](None), *(found[name] for found in answers)
    exact, rough = ({"rtol": 1e-6, "atol": 1e-9}, {"rtol": 1e-2 if name == "last_layer" else 1e-3, "atol": 1e-4})
    tolerance = exact if name.startswith(("climb", "contrastive", "own loop")) else rough  # float64, float32
    for found in two:
        assert found.keys() == one.keys()
        for key, value in one.items():
            torch.testing.assert_close(
                found[key], value, **tolerance, msg=f"{name}, {key}: {found[key]} is not {value}"
            )
    for key, value in two[0].items():
        assert torch.equal(value, two[1][key]), key  # the processes have not drifted apart


ENVIRONMENT = {**os.environ, "PYTHONPATH": PYTHONPATH, "OMP_NUM_THREADS": "1"}
QUICK = ("-g", "rotation", "--epochs", 3, "--batch", 25, "--model", "mlp", "--no-baseline", "--json", "-q")
SETTINGS = {"evidence_images": 40, "eta_images": 10, "evidence_below": 9.0, "samples_eval": 4, "checkpoint_seconds": 0}


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    """The words of a quick run."""
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("data") / "d.npz"
    x = (rng.random((120, 10, 10)) * 255).astype("uint8")
    y = (x[:, :5].mean((1, 2)) > x[:, 5:].mean((1, 2))).astype(int)
    np.savez(path, x_train=x[:100], y_train=y[:100], x_test=x[100:], y_test=y[100:])
    settings = [word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}")]
    return [str(word) for word in ("learn", path, *QUICK, *settings)]


def result(text: str) -> tuple[float, ...]:
    found = json.loads(text)
    width = found["widths"]["rotation"]
    return width["value"], width["low"], width["high"], found["log_evidence"], found["test_accuracy"]


@pytest.fixture(scope="module")
def alone(command, tmp_path_factory):
    done = subprocess.run(
        [sys.executable, "-m", "augury", *command], env=ENVIRONMENT, capture_output=True, text=True,
        cwd=tmp_path_factory.mktemp("alone"), check=True,
    )  # fmt: skip
    return result(done.stdout)


def wait_for(process: subprocess.Popen, event: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 240
    while not event():
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.01)


def started(process: subprocess.Popen) -> list[int]:
    """The processes of this run that one has started."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(pid) for pid in children if b"--devices" in Path(f"/proc/{pid}/cmdline").read_bytes()]


@pytest.mark.slow  # several processes load torch
def test_a_process_ends_if_the_one_that_started_it_is_killed_before_they_have_met(command, tmp_path):
    words = [sys.executable, "-m", "augury", *command, "--run", "a", "--devices", "2"]
    with subprocess.Popen(words, env=ENVIRONMENT, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as first:
        wait_for(first, lambda: started(first))
        (child,) = started(first)
        first.kill()
        try:
            _, err = first.communicate(timeout=100)  # until the other process, too, has closed it
        except subprocess.TimeoutExpired:
            os.kill(child, signal.SIGKILL)
            raise
    assert "another process of this run ended" in err and "--resume" in err, err


@pytest.mark.slow  # several processes load torch
def test_a_killed_process_ends_the_others_with_a_message_and_the_run_resumes(command, alone, tmp_path):
    words = [sys.executable, "-m", "augury", *command, "--run", "a"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    first = subprocess.Popen([*words, "--devices", "2"], env=ENVIRONMENT, cwd=tmp_path, **pipes)
    wait_for(first, lambda: list((tmp_path / "a" / "checkpoint").glob("epoch-*")))
    (child,) = started(first)
    os.kill(child, signal.SIGKILL)
    out, err = first.communicate(timeout=120)
    assert first.returncode == 2 and out == "", (first.returncode, out, err)
    assert "another process of this run ended" in err and "--resume" in err
    done = subprocess.run([*words, "--resume"], env=ENVIRONMENT, cwd=tmp_path, check=True, **pipes)
    assert result(done.stdout) == pytest.approx(alone, rel=1e-3)


TORCHRUN = ("torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "augury")
FABRIC_RUN = ("lightning_fabric.cli", "--devices", "2", str(HERE.parent / "src" / "augury" / "__main__.py"))


@pytest.mark.slow  # several processes load torch
@pytest.mark.parametrize("launcher", [TORCHRUN, FABRIC_RUN], ids=["torchrun", "fabric run"])
def test_launchers_give_the_answer_of_one_process_and_only_the_first_speaks(launcher, command, alone, tmp_path):
    words = [sys.executable, "-m", *launcher, *command, "--out", "a"]
    done = subprocess.run(words, env=ENVIRONMENT, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert result(done.stdout) == pytest.approx(alone, rel=1e-3)


@pytest.mark.slow  # several processes load torch
@pytest.mark.parametrize("name", ["fabric_loop", "lightning_trainer"])
def test_examples_with_two_processes(name, tmp_path):
    words = [sys.executable, "-W", "ignore", str(HERE.parent / "examples" / f"{name}.py"), "1", "40", "2"]
    done = subprocess.run(words, env=ENVIRONMENT, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("test accuracy") == 1 and "rotation" in done.stdout


FIRST = """
import os, subprocess, sys, time
os.environ["AUGURY_LAUNCHER"] = str(os.getpid())
other = subprocess.Popen([sys.executable, "-m", "augury", *sys.argv[1:]], stderr=subprocess.PIPE)
print(other.stderr.readline().decode(), end="")
time.sleep(1)
print(other.poll())
"""


@pytest.mark.parametrize("words", [["learn", "no.npz"], ["no_such_command"]])
def test_a_process_with_an_error_ends_after_the_first_which_would_be_killed(words, tmp_path):
    words = [sys.executable, "-c", FIRST, *words]
    found = subprocess.run(words, env=ENVIRONMENT, cwd=tmp_path, capture_output=True, text=True)
    said, code = found.stdout.splitlines()
    assert said.startswith(("error: data must be", "Usage:")) and code == "None"


@pytest.mark.parametrize(("platform", "watches"), [("linux", 1), ("win32", 0)])
def test_on_windows_no_process_watches_the_first(platform, watches, monkeypatch):
    """Its parent may be the starter of a virtual environment there, and keeps its number after its end."""
    monkeypatch.setenv("AUGURY_LAUNCHER", str(os.getppid()))
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(processes.threading, "Thread", made := Mock())
    processes._launch(fabric := Mock())
    assert made.call_count == watches and fabric.launch.call_count == 1


def test_what_several_processes_need_is_said(augury, command, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    code, _, err = augury(*command, "--devices", 0)
    assert code == 2 and "--devices must be at least 1; got 0" in err
    monkeypatch.setitem(sys.modules, "lightning_fabric", None)
    for words in (command, ["amortize", command[1], "-g", "flip"], ["audit", "m.safetensors", command[1]]):
        code, out, err = augury(*words, "--devices", 2)
        assert code == 2 and out == "" and "pip install -e '.[fabric]'" in err


def test_a_command_for_one_process_is_refused_where_several_were_started(augury, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    for words in (["adapt", "e.safetensors", "d.npz"], ["doctor", "d.npz"], ["report", "a"]):
        code, out, err = augury(*words)
        assert (
            code == 2 and out == "" and f"augury {words[0]} takes one process; 2 were started" in " ".join(err.split())
        )


def test_steps_on_the_weights_in_bf16_and_nothing_else():
    fabric, seen = Fabric(accelerator="cpu", devices=1, precision="bf16-mixed"), {True: set(), False: set()}
    model = net().float()
    model[-1].register_forward_hook(lambda layer, _, out: seen[layer.training].add(out.dtype))
    found = learn(images(), model, "lila", fabric=fabric, generators=("rotation",), **FEW)
    assert seen == {True: {torch.bfloat16}, False: {torch.float32}}
    assert {p.dtype for p in found.model.parameters()} == {torch.float32}
    for call in (
        lambda: learn(images(), "rff_256", "invariant_weights", fabric=fabric),
        lambda: amortize(images().x_train.expand(-1, 3, -1, -1), "rotation", fabric=fabric),
        lambda: learn(images(), net().float(), fabric=Fabric(accelerator="cpu", devices=1, precision="64-true")),
    ):
        with pytest.raises(InputError, match="precision must be 32-true"):
            call()


def test_batch_normalisation_by_parts_of_a_batch_is_refused():
    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    with pytest.raises(InputError, match=r"layer '1' \(BatchNorm\).*swap_batchnorm"):
        refuse_coupled(net)
    refuse_coupled(nn.Sequential(net[0], net[1].requires_grad_(False)))


def test_noise_of_a_part_is_that_of_the_whole_batch():
    whole = torch.rand(7, 2, generator=generator(0))
    parts = []
    for rank in range(3):
        part = Processes(rank, 3, torch.device("cpu")).part(7)
        rng = generator(0, part=part)
        parts.append(rows(lambda B, rng=rng: torch.rand(B, 2, generator=rng), part.n, rng))
    assert torch.equal(torch.cat(parts), whole)
    assert Processes(5, 9, torch.device("cpu")).part(3).weight in (0.0, 1 / 3)
