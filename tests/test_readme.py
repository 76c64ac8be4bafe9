"""What the README says runs: every Python block, and every command that it shows, as far as its options go."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

README = Path(__file__).parents[1] / "README.md"


def blocks(kind: str) -> list[str]:
    """The fenced blocks of one kind; every other piece between fences is one."""
    fenced = re.split(r"^```", README.read_text(), flags=re.MULTILINE)[1::2]
    return [text.partition("\n")[2] for text in fenced if text.partition("\n")[0] == kind]


BLOCKS = blocks("python")
COMMANDS = [line for block in blocks("") for line in block.splitlines() if line.startswith("augury ")]


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
