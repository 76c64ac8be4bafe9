"""From words to transformations."""

import pytest
import torch

from augury.core.rng import generator
from augury.transforms.vocabulary import WORDS, build
from refusal import refused

SHAPES = {"image": (3, 12, 12), "signal": (2, 16), "points": (7, 3), "coordinates": (2,)}


@pytest.mark.parametrize(("kind", "word"), [(kind, word) for kind, words in WORDS.items() for word in words])
def test_every_word_builds_and_acts(kind, word):
    transform = build(word, kind, SHAPES[kind])
    x = torch.rand(2, *SHAPES[kind], generator=generator(0))
    assert transform.kind == kind
    assert transform(x, 2, generator(0)).shape == (2, 2, *SHAPES[kind])


def test_words_of_one_family_share_a_transformation_families_compose_and_numbers_count():
    transform = build("hue, rotation, flip_x, blur,translation", "image", (3, 8, 8), "stratified")
    assert transform.names == ("flip_x", "translate_x", "translate_y", "rotation", "hue", "blur")
    assert [type(part).__name__ for part in transform.parts] == ["Flip", "Affine2d", "Color"]
    assert transform.sampling == "stratified"
    assert type(build(["rotation", "shear"], "image", (1, 8, 8))).__name__ == "Affine2d"
    assert build("C7", "image", (1, 9, 12)).order == 7
    assert build("T5_y", "image", (1, 9, 12)).order == 5
    assert build("T2", "image", (1, 9, 12)).order == 4
    assert build("color", "image", (1, 8, 8)).names == ("brightness", "contrast", "blur")
    assert len(build("color", "image", (3, 8, 8)).names) == 6


@pytest.mark.parametrize(
    ("words", "kind", "shape", "message"),
    [
        ("rotatoin", "image", (1, 8, 8), "Did you mean 'rotation'"),
        ("time_shift", "image", (1, 8, 8), "'time_shift' acts on data of kind signal. For data of kind image"),
        ("rotation", "signal", (1, 8), "kind image or coordinates. .* time_shift, time_stretch, amplitude"),
        ("hue", "image", (1, 8, 8), "hue need images with 3 channels; yours have 1. .*brightness"),
        ("C4", "image", (1, 8, 9), "C4 needs square images; yours are 8 x 9"),
        ("T9", "image", (1, 8, 9), "T9 needs at least 9 pixels"),
        ("C1", "image", (1, 8, 8), "at least 2 elements"),
        ("", "points", (5, 3), "got none. For data of kind points"),
        ("scale", "features", (5,), "got kind 'features'"),
    ],
)
def test_mistakes_are_told(words, kind, shape, message):
    refused(message, build, words, kind, shape)
