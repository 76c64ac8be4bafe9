"""Several processes give the answer of one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from parallel_cases import CASES

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


@pytest.mark.parametrize("name", CASES)
def test_two_processes_give_the_answer_of_one(name, answers):
    one, *two = CASES[name](None), *(found[name] for found in answers)
    tolerance = {"rtol": 1e-6, "atol": 1e-9} if name.startswith("climb") else {"rtol": 1e-3, "atol": 1e-4}
    for found in two:
        assert found.keys() == one.keys()
        for key, value in one.items():
            torch.testing.assert_close(
                found[key], value, **tolerance, msg=f"{name}, {key}: {found[key]} is not {value}"
            )
    for key, value in two[0].items():
        assert torch.equal(value, two[1][key]), key  # the processes have not drifted apart
