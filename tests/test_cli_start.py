"""The command line starts at once: what needs no training never loads torch."""

import subprocess
import sys

import pytest

CODE = """
import sys
from augury.cli.main import main
sys.argv = ["augury", *sys.argv[1:]]
try:
    main()
    code = 0
except SystemExit as end:
    code = end.code or 0
print("loaded torch" if "torch" in sys.modules else "without torch", file=sys.stderr)
sys.exit(code)
"""


def run(*arguments: str, cwd=None) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", CODE, *arguments], capture_output=True, text=True, cwd=cwd, check=False
    )


@pytest.mark.parametrize(
    ("arguments", "code", "shows"),
    [
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
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_no_torch_where_none_is_needed(tmp_path, arguments, code, shows):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "config.json").write_text("{}")
    process = run(*arguments, cwd=tmp_path)
    assert process.returncode == code, process.stderr
    assert shows in process.stdout + process.stderr
    assert process.stderr.endswith("without torch\n") and "Traceback" not in process.stderr


def test_what_is_imported_for_words_and_lists_loads_no_torch():
    modules = ["config.learn", "models.networks", "transforms.vocabulary", "data.named", "data.fetch"]
    code = "import sys, augury; from augury.data.named import listing; listing()\n"
    code += "".join(f"import augury.{name}\n" for name in modules)
    code += "sys.exit(any(name in sys.modules for name in ('torch', 'mlxtend', 'pandas')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
