"""What the README says runs: every Python block, and every command that it shows, as far as its options go."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
COMMANDS = [
    line
    for block in re.findall(r"```\n(.*?)```", README.read_text(), re.DOTALL)
    for line in block.splitlines()
    if line.startswith("augury ")
]


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_python_blocks_run(block):
    exec(compile(block, str(README), "exec"), {})


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_are_understood(command, tmp_path, monkeypatch):
    """The data of these examples are the reader's own, so a command must get as far as not finding them."""
    from augury.cli.main import app

    monkeypatch.chdir(tmp_path)
    words = shlex.split(command.split(">")[0])[1:]
    result = CliRunner().invoke(app, words)
    assert "No such option" not in result.output
    assert any(word in str(result.exception) for word in ("my_photos", "data.npz"))


def test_the_readme_shows_commands_and_code():
    assert len(COMMANDS) >= 3
    assert len(BLOCKS) >= 2
