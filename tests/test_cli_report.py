"""`augury report` and `augury compare` as a user meets them, and the reports that learn and audit leave."""

import json
import subprocess
import sys
import webbrowser

import pytest

from report_doubles import NASTY, adapted_folder, audit_folder, learned_run
from test_report_page import parsed


@pytest.fixture
def augury(augury, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return augury


def test_runs_get_their_reports_and_say_where(augury, tmp_path):
    learned_run(tmp_path / "runs" / "a")
    code, out, _ = augury("report", "runs/a")
    assert code == 0 and out.strip() == "runs/a/report.html"
    assert "The labels of most inputs do not change under" in (tmp_path / "runs/a/report.html").read_text()
    for make, name in ((learned_run, "a"), (audit_folder, "b"), (adapted_folder, "c")):
        make(tmp_path / name)
    assert augury("report", "a", "b", "c")[1].strip() == "comparison.html"
    assert augury("report", "a", "b", "--out", "d/both.html")[0] == 0
    assert "Side by side" in (tmp_path / "d" / "both.html").read_text()


def test_it_opens_where_asked_and_says_where_it_cannot(augury, tmp_path, monkeypatch):
    learned_run(tmp_path / "a")
    shown = []
    monkeypatch.setattr(webbrowser, "open", lambda url: shown.append(url) or len(shown) == 1)
    code, _, err = augury("report", "a", "--open")
    assert code == 0 and err == "" and shown == [(tmp_path / "a" / "report.html").as_uri()]
    assert "open the file by hand" in augury("report", "a", "--open")[2]


def test_compare_shows_a_table_json_and_a_page(augury, tmp_path):
    learned_run(tmp_path / "a"), learned_run(tmp_path / "[red]")
    learned_run(tmp_path / "b", test_accuracy=0.5)
    assert "[red]" in augury("compare", "a", "[red]")[1]
    code, out, _ = augury("compare", "a", "b")
    assert code == 0 and "86.7 %" in out and "50.0 %" in out and "rotation" in out and NASTY[:8] in out
    code, out, err = augury("compare", "a", "b", "--json", "--out", "both.html")
    found = json.loads(out)
    assert [run["record"]["test_accuracy"] for run in found["runs"]] == [0.8667, 0.5]
    assert found["remarks"] == []
    assert "both.html" in err and (tmp_path / "both.html").is_file()


APART = """
import sys
from augury.cli.main import main
for arguments in sys.argv[1:]:
    sys.argv = ["augury", *arguments.split()]
    try:
        main()
    except SystemExit as end:
        assert not end.code, arguments
    assert "torch" not in sys.modules, arguments
"""


def test_neither_loads_torch(tmp_path):
    learned_run(tmp_path / "a"), audit_folder(tmp_path / "b")
    asked = "report a", "report b", "compare a b --out c.html", "report --help"
    process = subprocess.run(
        [sys.executable, "-c", APART, *asked], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert process.returncode == 0, process.stderr


QUICK = [
    "--epochs",
    "2",
    "--samples",
    "2",
    "--batch",
    "10",
    "--set",
    "samples_eval=2",
    "--model",
    "mlp5",
    "-g",
    "rotation",
]
FEW = ("-g", "C4", "--no-corruptions", "--images", 6)


def test_learn_and_audit_leave_their_reports(augury, npz, tmp_path):
    code, out, _ = augury("learn", npz, *QUICK, "--run", "runs/a", "--overwrite", "--json", "-q")
    assert code == 0 and json.loads(out)["report"] == "runs/a/report.html"
    html = (tmp_path / "runs/a/report.html").read_text()
    text = parsed(html).text
    for words in ("without:", "Explore an orbit", "most often", "Test accuracy", "Log evidence"):
        assert words in text
    assert "augury learn digits.npz --epochs 2" in text and "--overwrite" not in text
    assert '"name": "plain"' in html and (tmp_path / "runs/a/views/beside.json").is_file()
    code, out, err = augury("audit", "runs/a", npz, *FEW)
    assert code == 0 and "runs/audit-a-C4/report.html" in err
    text = parsed((tmp_path / "runs/audit-a-C4/report.html").read_text()).text
    for words in ("saliency of the input", "Worst cases", "Spectrum", "augury audit runs/a digits.npz -g C4"):
        assert words in text
    code, _, err = augury("audit", "runs/a", npz, *FEW, "-q", "--out", "runs/audit-a-C4")
    assert code == 2 and "already exists" in err
    again = ("audit", "runs/a", npz, *FEW, "-q", "--json", "--out", "runs/audit-a-C4", "--overwrite")
    code, out, _ = augury(*again)
    assert code == 0 and json.loads(out)["report"] == "runs/audit-a-C4/report.html"
