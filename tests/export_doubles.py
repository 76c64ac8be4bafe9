"""Policies to export, and stand-ins for libraries that need not be installed here.

The stand-ins do the real work where a wrong convention would show: torchvision's `perspective` is PIL's own, and
OpenCV's warp and blur are scipy's. Where a library is installed, the library itself is used.
"""

import sys
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace

import numpy as np
from PIL import Image
from scipy import ndimage

from augury.export.policy import Policy
from augury.records.results import Width

GEOMETRY = {
    "translate_x": Width(2.0, "px", 1.5, 2.5, "invariant"),
    "translate_y": Width(1.0, "px", verdict="undecided"),
    "rotation": Width(100.0, "deg", 90.0, 110.0, "invariant"),
    "scale_x": Width(1.3, "factor", verdict="given"),
    "scale_y": Width(1.1, "factor", verdict="not invariant"),
    "shear": Width(0.2, "", verdict="invariant"),
}
COLORS = {name: Width(value, "factor") for name, value in (("brightness", 1.3), ("contrast", 1.2), ("saturation", 1.5))}
COLORS |= {"hue": Width(40.0, "deg"), "grey": Width(50.0, "%"), "blur": Width(1.5, "px")}
FINITE = {"flip_x": Width(40.0, "%"), "C4": Width(60.0, "%"), "T3": Width(20.0, "%")}
LEARNED = {"method": "lila", "model": "cnn", "data": "photos"}


def policy(*families, shape=(3, 24, 24)) -> Policy:
    widths = {name: width for family in families for name, width in family.items()}
    return Policy(widths, "image", list(shape), learned=LEARNED)


def run_code(text, monkeypatch):
    """Execute exported code; what is not installed is stood in for."""
    for name, make in (("torchvision", torchvision), ("albumentations", albumentations), ("cv2", cv2)):
        if name in text and find_spec(name) is None:
            for module, value in make().items():
                monkeypatch.setitem(sys.modules, module, value)
    names = {"__name__": "exported"}
    exec(compile(text, "exported.py", "exec"), names)
    return SimpleNamespace(**names)


def module(name, **values) -> ModuleType:
    made = ModuleType(name)
    made.__dict__.update(values)
    return made


class Recorded:
    """Stands for a class of the library: remembers how it was made, changes nothing."""

    def __init__(self, name):
        self.name = name

    def __call__(self, *args, **kwargs):
        made = Recorded(self.name)
        made.args, made.kwargs = args, kwargs
        return made


class Transform:
    """The way of torchvision's v2.Transform: parameters from the inputs, then every input by itself."""

    def __call__(self, image):
        return self.transform(image, self.make_params([image]))

    def _call_kernel(self, functional, inpt, *args, **kwargs):
        return functional(inpt, *args, **kwargs)


def perspective(image, startpoints, endpoints, fill=None, coefficients=None):
    assert startpoints is None and endpoints is None
    return image.transform(
        image.size, Image.Transform.PERSPECTIVE, coefficients, Image.Resampling.BILINEAR, fillcolor=fill
    )


def query_size(inputs):
    width, height = inputs[0].size if isinstance(inputs[0], Image.Image) else inputs[0].shape[:-3:-1]
    return height, width


def torchvision() -> dict[str, ModuleType]:
    def gaussian_blur(x, kernel_size, sigma):
        import torch

        return torch.from_numpy(ndimage.gaussian_filter(x.numpy(), (0, sigma[1], sigma[0]), mode="mirror"))

    functional = module(
        "functional", perspective=perspective, gaussian_blur=gaussian_blur, is_pure_tensor=lambda inpt: True
    )
    names = ["HorizontalFlip", "VerticalFlip", "Rotation", "Choice", "Apply", "Affine"]
    recorded = {name: Recorded(name) for name in ("Compose", "Identity", *(f"Random{name}" for name in names))}
    v2 = module(
        "v2",
        Transform=Transform,
        query_size=query_size,
        functional=functional,
        InterpolationMode=SimpleNamespace(BILINEAR="bilinear"),
        **recorded,
    )
    tv_tensors = module("tv_tensors", Image=object)
    transforms = module("transforms", v2=v2)
    top = module("torchvision", transforms=transforms, tv_tensors=tv_tensors)
    return {
        "torchvision": top,
        "torchvision.tv_tensors": tv_tensors,
        "torchvision.transforms": transforms,
        "torchvision.transforms.v2": v2,
        "torchvision.transforms.v2.functional": functional,
    }


class AnyTransform:
    """The way of albumentations: parameters from the data, then the image."""

    def __init__(self, p=0.5):
        self.p, self.random_generator = p, np.random.default_rng(0)

    def __call__(self, image):
        params = {"shape": image.shape}
        params |= self.get_params_dependent_on_data(params, {"image": image})
        return {"image": self.apply(image, **params)}


def albumentations() -> dict[str, ModuleType]:
    names = ("Compose", "HorizontalFlip", "VerticalFlip", "Rotate", "OneOf", "Affine", "NoOp")
    recorded = {name: Recorded(name) for name in names}
    bases = {"ImageOnlyTransform": AnyTransform, "DualTransform": AnyTransform}
    return {
        "albumentations": module("albumentations", **bases, **recorded),
        "albumentations.core": module("albumentations.core"),
        "albumentations.core.type_definitions": module("type_definitions", ALL_TARGETS=()),
    }


def warp_affine(img, matrix, size, flags, borderMode, borderValue):
    assert flags == 17 and borderMode == 0 and borderValue == 0
    ys, xs = np.mgrid[: size[1], : size[0]].astype(float)
    at = np.einsum("ij,jhw->ihw", matrix, np.stack([xs, ys, np.ones_like(xs)]))
    channels = [img] if img.ndim == 2 else list(np.moveaxis(img, -1, 0))
    out = [ndimage.map_coordinates(c, at[::-1], order=1, mode="grid-constant") for c in channels]
    return out[0] if img.ndim == 2 else np.stack(out, -1)


def gaussian_blur(x, size, sigma, borderType):
    assert size == (0, 0) and borderType == 2
    return ndimage.gaussian_filter(x, (sigma, sigma, 0)[: x.ndim], mode="reflect")


def cv2() -> dict[str, ModuleType]:
    constants = {
        "INTER_LINEAR": 1,
        "INTER_NEAREST": 0,
        "WARP_INVERSE_MAP": 16,
        "BORDER_CONSTANT": 0,
        "BORDER_REFLECT": 2,
    }
    return {"cv2": module("cv2", warpAffine=warp_affine, GaussianBlur=gaussian_blur, **constants)}
