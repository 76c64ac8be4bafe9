"""Runs in a venv that has a real albumentations, not in that of the tests: `python albumentations_real.py policy.py`.

Prints "ok" after every check of an exported policy with geometry, colours, a flip and quarter turns.
"""

import importlib.util
import inspect
import json
import sys
import warnings

import albumentations as A
import numpy as np
from albumentations.core import transforms_interface

warnings.simplefilter("error")
spec = importlib.util.spec_from_file_location("policy", sys.argv[1])
code = importlib.util.module_from_spec(spec)
sys.modules["policy"] = code
spec.loader.exec_module(code)
FORMAT = next(name for name in inspect.signature(A.BboxParams).parameters if name.endswith("format"))
BOXES = A.BboxParams(**{FORMAT: "pascal_voc"}, label_fields=["labels"])
POINTS = A.KeypointParams(**{FORMAT: "xyas"}, remove_invisible=False)
H, W = 48, 64
assert "sample_parameters" in dir(transforms_interface.BasicTransform) or A.__version__ < "2.1"


def square(y, x, half=4, dtype=np.uint8):
    image = np.zeros((H, W), dtype)
    image[y - half : y + half + 1, x - half : x + half + 1] = 200
    return image


def moved(transform, seed, y=26, x=36):
    """Move a square, its mask, its box and its centre together."""
    image = square(y, x)
    box = [x - 4, y - 4, x + 5, y + 5]
    pipeline = A.Compose([transform], bbox_params=BOXES, keypoint_params=POINTS, seed=seed)
    keypoints = np.array([[x, y, 0.0, 1.0], [x + 3, y, 0.0, 1.0]])
    return pipeline(
        image=np.dstack([image] * 3),
        mask=(image > 0).astype(np.int32) * 7,
        masks=np.stack([image > 0] * 2).astype(np.uint8),
        bboxes=np.array([box], dtype=float),
        labels=[1],
        keypoints=keypoints,
    )


for seed in range(8):
    out = moved(code.LearnedAffine({"rotation": 0.6, "translate_x": 0.2, "scale_x": 0.2}), seed)
    image, mask = out["image"], out["mask"]
    assert image.shape == (H, W, 3) and image.dtype == np.uint8
    assert mask.shape == (H, W) and mask.dtype == np.int32 and set(np.unique(mask)) == {0, 7}
    assert np.mean((image[..., 0] > 100) != (mask == 7)) < 0.02
    assert np.array_equal(np.squeeze(out["masks"][0]) > 0, mask > 0)
    ys, xs = np.nonzero(mask)
    (x, y, angle, scale), (x2, y2, *_) = out["keypoints"]
    assert abs(x - xs.mean()) < 0.6 and abs(y - ys.mean()) < 0.6, "the centre moves with the square"
    turned = np.degrees(np.arctan2(-(y2 - y), x2 - x)) % 360
    assert min(abs(angle - turned), 360 - abs(angle - turned)) < 0.1, "the angle is that of a neighbour"
    assert 0.7 < scale < 1.4
    (x0, y0, x1, y1) = out["bboxes"][0][:4]
    assert x0 - 0.6 <= xs.min() and xs.max() + 1 <= x1 + 0.6 and y0 - 0.6 <= ys.min() and ys.max() + 1 <= y1 + 0.6
    assert (x1 - x0) * (y1 - y0) < 3.5 * (mask > 0).sum(), "the box is not much larger than it must be"
print("masks, boxes and keypoints ok")

for step in (code.LearnedAffine({"rotation": 0.3}), code.LearnedColors({"hue": 0.4})):
    text = json.dumps(A.to_dict(A.Compose([step])))
    again = A.from_dict(json.loads(text)).transforms[0]
    assert type(again) is type(step) and again.eta == step.eta and again.p == step.p == 1.0
whole = json.loads(json.dumps(A.to_dict(code.policy)))
again = A.from_dict(whole)
assert [getattr(t, "eta", None) for t in again.transforms] == [getattr(t, "eta", None) for t in code.policy.transforms]
assert again.transforms[-2].eta == code.ETA and again.transforms[-1].eta == code.COLORS
print("to_dict and from_dict ok")

picture = np.random.default_rng(0).integers(0, 256, (H, W, 3), dtype=np.uint8)
for data in (picture, (picture / 255).astype(np.float32)):
    assert code.policy(image=data)["image"].dtype == data.dtype
    assert code.nearest(image=data)["image"].shape == data.shape
many = np.random.default_rng(0).random((H, W, 7), dtype=np.float32)
assert code.LearnedAffine()(image=many)["image"].shape == many.shape
first, second = (A.Compose([code.LearnedAffine()], seed=3)(image=picture)["image"] for _ in range(2))
assert np.array_equal(first, second), "one seed, one draw"
draws = [code.LearnedAffine().draw((H, W), np.random.default_rng(k))["matrix"] for k in range(300)]
angles = [np.arctan2(m[1, 0], m[0, 0]) for m in draws]
assert max(angles) > 0.8 * code.ETA["rotation"] and min(angles) < -0.8 * code.ETA["rotation"]
print("images ok")
