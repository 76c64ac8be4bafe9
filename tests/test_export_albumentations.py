"""An exported policy in the real albumentations and AlbumentationsX, each in a venv of its own, where they are there.

python -m venv $AUGURY_VENVS/albumentations-2.0.8
$AUGURY_VENVS/albumentations-2.0.8/bin/pip install albumentations==2.0.8 opencv-python-headless scipy
python -m venv $AUGURY_VENVS/albumentationsx-2.5
$AUGURY_VENVS/albumentationsx-2.5/bin/pip install "albumentationsx[headless]==2.5.*" torch scipy
"""

import os
import subprocess
from pathlib import Path

import pytest

from augury.export.albumentations import albumentations_code
from export_doubles import COLORS, FINITE, GEOMETRY, policy

VENVS = Path(os.environ.get("AUGURY_VENVS", "/tmp/augury-venvs"))
SCRIPT = Path(__file__).parent / "albumentations_real.py"


@pytest.mark.parametrize("name", ["albumentations-2.0.8", "albumentationsx-2.5"])
def test_the_policy_moves_masks_boxes_and_keypoints_and_keeps_its_widths(name, tmp_path):
    python = VENVS / name / "bin" / "python"
    if not python.exists():
        pytest.skip(f"no {python}; the head of this file says how to make it")
    (tmp_path / "policy.py").write_text(albumentations_code(policy(GEOMETRY, COLORS, FINITE)).text)
    own = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "NO_ALBUMENTATIONS_UPDATE": "1"}
    done = subprocess.run(
        [python, SCRIPT, tmp_path / "policy.py"], capture_output=True, text=True, env=own, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count(" ok") == 3
