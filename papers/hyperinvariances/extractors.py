"""Extractors that the cells of a grid share: pre-trained once for each seed, and kept in the cache."""

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from augury.config.hyper import AmortizeConfig
from augury.data.named import cache_dir

if TYPE_CHECKING:
    from torch import Tensor

    from augury.data.dataset import Dataset
    from augury.models.hypernetwork import HyperExtractor
    from augury.records.saved import Pretraining

OURS = ("data", "images", "side", "corner")
"""Settings that are not fields of `AmortizeConfig`."""


def pretrained(settings: Mapping[str, Any], seed: int) -> "tuple[HyperExtractor, Pretraining]":
    """Return an extractor: from the cache, or pre-trained now and put there."""
    return _pretrained(json.dumps(dict(settings), sort_keys=True), seed)


@lru_cache(maxsize=6)
def _pretrained(text: str, seed: int) -> "tuple[HyperExtractor, Pretraining]":
    from augury.core.errors import InputError
    from augury.methods.hyper.adapt import load_extractor
    from augury.records.saved import read_saved
    from augury.training.run_folder import model_file

    folder = place(json.loads(text), seed)
    try:
        file = model_file(folder)
    except InputError:
        _pretrain(json.loads(text), seed, folder)
        file = model_file(folder)
    known = read_saved(file).pretraining
    assert known is not None
    return load_extractor(file), known


def place(settings: Mapping[str, Any], seed: int) -> Path:
    """Return where an extractor is kept."""
    ours = {name: value for name, value in settings.items() if name in OURS}
    everything = {**_config(settings, seed).to_json(), **ours}
    digest = hashlib.sha256(json.dumps(everything, sort_keys=True).encode()).hexdigest()[:16]
    return cache_dir() / "extractors" / digest


def _config(settings: Mapping[str, Any], seed: int) -> AmortizeConfig:
    fields = {name: value for name, value in settings.items() if name not in OURS}
    return AmortizeConfig.for_method(fields.pop("method", "contrastive"), **fields, seed=seed)


def _pretrain(settings: dict[str, Any], seed: int, folder: Path) -> None:
    from augury.data.load import load
    from augury.methods.hyper.amortize import amortize

    fields = {name: value for name, value in settings.items() if name not in OURS}
    method = fields.pop("method", "contrastive")
    common = {"out": folder, "resume": True, "seed": seed, **fields}
    if method == "multitask":
        amortize(load(settings["data"], subset=settings["images"], seed=seed), method=method, **common)
        return
    data = load(settings["data"], subset=settings["images"], seed=seed)
    corner = settings.get("corner")
    amortize(
        sized(coloured(data.x_train), settings["side"]),
        "ventral,dorsal",
        descriptors=None if corner is None else [corner],
        **common,
    )


def untrained(settings: Mapping[str, Any], input_shape: tuple[int, ...], seed: int) -> "HyperExtractor":
    """Return an extractor as it is before any training: a random convolution."""
    from augury.core.rng import generator
    from augury.models.hypernetwork import HyperExtractor

    encoder = settings.get("encoder", "conv16")
    return HyperExtractor(encoder, ("rotation", "color"), input_shape, generator(seed + 1000))


def coloured(x: "Tensor") -> "Tensor":
    """Return images with three channels."""
    return x.expand(-1, 3, -1, -1).contiguous() if x.shape[1] == 1 else x


def sized(x: "Tensor", side: int) -> "Tensor":
    """Return images of another size, smoothed where they shrink."""
    import torch.nn.functional as F

    if x.shape[-1] == side:
        return x
    return F.interpolate(x, (side, side), mode="bilinear", antialias=True, align_corners=False)


def per_class(data: "Dataset", n: int, seed: int) -> "Dataset":
    """Return a data set with n training examples of every class, drawn at random."""
    from dataclasses import replace

    import torch

    from augury.core.rng import generator

    order = torch.randperm(len(data.y_train), generator=generator(seed))
    keep = torch.cat([order[data.y_train[order] == c][:n] for c in range(data.n_outputs)])
    return replace(data, x_train=data.x_train[keep], y_train=data.y_train[keep])
