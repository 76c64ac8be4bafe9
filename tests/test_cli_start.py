"""The command line starts at once: what needs no training never loads torch."""

import json
import subprocess
import sys

import pytest

CODE = """
import contextlib, io, json, sys
found = []
for words in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        from augury.cli.main import main
        sys.argv = ["augury", *words]
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code or 0
    found.append([code, out.getvalue(), "torch" in sys.modules])
print(json.dumps(found))
"""

COMMANDS = [
    (["--help"], 0, "129, 130, 143"),
    (["--version"], 0, "augury 0."),
    (["learn", "--help"], 0, "augury learn mnist5k --variant rotated"),
    (["data", "list"], 0, "mnist5k"),
    (["learn", "mnist5k", "--method", "augerin"], 2, "Did you mean 'augerino'"),
    (["learn", "mnist5k", "--model", "resnet_8_88"], 2, "Did you mean 'resnet_8_8'"),
    (["learn", "mnist5k", "--set", "epoch=3"], 2, "Did you mean 'epochs'"),
    (["learn", "mnist5k", "--samples", "0"], 2, "samples must be at least 1; got 0"),
    (["learn", "mnist5k", "--run", "taken"], 2, "already exists"),
    (["learn", "mnist5k", "--resume"], 2, "--run"),
    (["learn"], 2, "DATA"),
    (["audit", "--help"], 0, "--fail-above"),
    (["amortize", "--help"], 0, "--groups"),
    (["amortize", "mnist5k", "-g", "flip", "--epochs", "0"], 2, "epochs must be at least 1"),
    (["adapt", "--help"], 0, "--levels"),
    (["adapt", "e", "d", "--levels", "0"], 2, "at least 2"),
]


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Exit code, output, and whether torch is loaded by now: of every command, one after the other in one process."""
    place = tmp_path_factory.mktemp("start")
    (place / "taken").mkdir()
    (place / "taken" / "config.json").write_text("{}")
    words = json.dumps([arguments for arguments, _, _ in COMMANDS])
    done = subprocess.run([sys.executable, "-c", CODE, words], capture_output=True, text=True, cwd=place, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("k", range(len(COMMANDS)), ids=[" ".join(words) for words, _, _ in COMMANDS])
def test_no_torch_where_none_is_needed(answers, k):
    _, code, shows = COMMANDS[k]
    ended, said, torch_is_loaded = answers[k]
    assert ended == code, said
    assert shows in said and "Traceback" not in said and not torch_is_loaded


def test_what_is_imported_for_words_and_lists_loads_no_torch():
    modules = ["config.learn", "models.networks", "transforms.vocabulary", "data.named", "data.fetch"]
    code = "import sys, augury; from augury.data.named import listing; listing()\n"
    code += "".join(f"import augury.{name}\n" for name in modules)
    code += "sys.exit(any(name in sys.modules for name in ('torch', 'mlxtend', 'pandas')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
