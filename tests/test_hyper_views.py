"""Invariance groups as users write them, and the views that they stand for."""

import math

import pytest
import torch

from augury.core.errors import InputError
from augury.core.rng import generator
from augury.methods.hyper.groups import GROUPS, OPERATIONS, operation, parse_groups
from augury.methods.hyper.views import Views
from augury.transforms.vocabulary import WORDS, build
from refusal import refused

PAPER_C = {"ventral": 55459.5736, "dorsal": 55918.1533, "rotation": 48789.6415, "recolor": 55348.6521}


def images(n=6, channels=3, size=16):
    return torch.rand(n, channels, size, size, generator=generator(0))


def views_of(words, x, strength=1.0, seed=0):
    groups = parse_groups(words, x.shape[1:])
    return Views(groups)(x, [strength] * len(groups), generator(seed))


def test_groups_are_read_as_they_are_written():
    rotation, look = parse_groups("rotation:30, look = jitter@80+blur:2px")
    assert (rotation.name, str(rotation)) == ("rotation", "rotation:30deg")
    assert (look.name, str(look)) == ("look", "jitter:1.5x@80%+blur:2px")
    assert [str(g) for g in parse_groups(["ventral", "dorsal"])] == [
        "crop:20%+flip_x:50%",
        "jitter:1.5x@80%+greyscale:100%@20%+blur:1.5px@50%",
    ]
    assert str(parse_groups({"both": "ventral+hue"})[0]) == "crop:20%+flip_x:50%+hue:60deg"
    again = parse_groups({group.name: str(group) for group in (rotation, look)})
    assert again == (rotation, look)


@pytest.mark.parametrize("name", WORDS["image"])
def test_a_word_means_the_same_for_amortizing_and_for_learning(name):
    """The same single widths, in the same units, as the transformation that `learn` and `audit` build."""
    (group,) = parse_groups(name, (3, 20, 20))
    transform = build(name, "image", (3, 20, 20))
    amounts = {step.name: step.amount for step in group.steps}
    assert sorted(amounts) == sorted(transform.names)
    transform.set_widths(amounts)
    assert all(amount == pytest.approx(transform.describe()[name], rel=1e-6) for name, amount in amounts.items())
    assert {s.name: s.unit.symbol for s in transform.specs} == {n: operation(n).symbol for n in amounts}


def test_an_affine_group_is_drawn_as_learning_draws_it():
    """All widths of the group in one exponential, as in `Affine2d`; not one map after the other."""
    x = images(4, size=20)
    transform = build("affine", "image", (3, 20, 20))
    (group,) = parse_groups("affine", (3, 20, 20))
    transform.set_widths({step.name: step.amount for step in group.steps})
    eps = torch.rand(4, 6, generator=generator(0)) * 2 - 1
    assert torch.allclose(views_of("affine", x), transform.act(x, eps[:, None])[:, 0], atol=1e-5)


def test_the_views_of_paper_c_are_those_of_version_0_1():
    """Sums over views drawn by version 0.1 (commit 6a71386): the distributions of its groups did not change."""
    x = images(64, size=24)
    seen = {word: float(views_of(word, x, seed=3).double().sum()) for word in PAPER_C}
    assert seen == pytest.approx(PAPER_C, rel=1e-5)


def test_grey_images_keep_what_does_not_need_colour():
    assert str(parse_groups("color", (1, 8, 8))[0]) == "brightness:1.5x+contrast:1.5x+blur:1.5px"
    assert str(parse_groups("dorsal", (1, 8, 8))[0]) == "jitter:1.5x@80%+blur:1.5px@50%"
    assert views_of("dorsal", images(channels=1)).shape == (6, 1, 16, 16)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("", "at least one invariance group"),
        ("turn=", "at least one transformation"),
        ("=rotation", "must have a name"),
        ("rotaton", "Did you mean 'rotation'"),
        ("mine=rotation+swirl", "invariance group must be one of"),
        ("rotation,rotation", "comes twice"),
        ("rotation:much", "must be a number"),
        ("rotation:270", "at most 180"),
        ("scale:0.5", "above 1"),
        ("ventral:2", "give amounts to these"),
        ("color:2", "takes no amount: give amounts to brightness"),
        ("rotation:30px", "rotation is in deg; got '30px'"),
        ("blur@0", "chance of blur .* above 0"),
        ("a=blur:1@2@3", "name:amount@chance"),
        ("a=scale+scale_x", "scale_x twice"),
    ],
)
def test_groups_that_cannot_be_are_refused(words, says):
    refused(says, parse_groups, words)


def test_groups_without_transformations_or_strengths_are_refused():
    refused("no transformation of images with 1 channels", parse_groups, "tone=hue+grey", (1, 8, 8))
    with pytest.raises(InputError, match="one strength for each of 2 groups"):
        Views(parse_groups("rotation,color"))(images(), [1.0], generator(0))


@pytest.mark.parametrize("word", [*GROUPS, *OPERATIONS, "C6", "T2_x"])
def test_every_group_moves_images_and_leaves_their_shape(word):
    x, word = images(40), f"{word}@50" if word == "greyscale" else word
    view = views_of(word, x)
    assert view.shape == x.shape and view.dtype == x.dtype and x.equal(images(40))
    assert (view - x).abs().amax() > 0.05
    assert view.min() >= 0 and view.max() <= 1 + 1e-6
    assert torch.equal(view, views_of(word, x)) and not torch.equal(view, views_of(word, x, seed=1))
    assert views_of(word, x, strength=0.0) is x


@pytest.mark.parametrize("word", ["rotation", "translation", "scale", "shear", "crop", "hue", "brightness", "blur"])
def test_a_weaker_group_moves_images_less(word):
    ramp = torch.linspace(0.2, 0.6, 16)
    colours = torch.tensor([1.0, 0.8, 0.5])[:, None, None]
    x = (ramp[:, None] * ramp * colours).expand(60, 3, 16, 16).contiguous()
    x = x + 0.1 * (torch.arange(16) % 4 == 0)  # some detail to blur
    far = [float((views_of(word, x, s) - x).abs().mean()) for s in (0.1, 0.4, 1.0)]
    assert 0 < far[0] < far[1] < far[2]


def test_rotations_reach_as_far_as_they_were_asked_to():
    x = torch.zeros(400, 1, 33, 33)
    x[:, :, 16, 28] = 1.0  # a point on the right
    places = views_of("rotation:30", x)[:, 0].flatten(1).argmax(1)
    dy, dx = 16 - places // 33, places % 33 - 16
    degrees = torch.atan2(dy.float(), dx.float()) * 180 / math.pi
    assert 25 < degrees.max() <= 34 and -34 <= degrees.min() < -25  # within the width of a pixel
    assert degrees.abs().mean() == pytest.approx(15, abs=1.5)  # uniform


def test_flips_quarter_turns_and_channels_permute():
    x = images(50)
    flipped = views_of("flip", x)
    same, mirrored = (torch.isclose(flipped, y, atol=1e-5).flatten(1).all(1) for y in (x, x.flip(-1)))
    assert (same ^ mirrored).all() and 10 < int(mirrored.sum()) < 40
    turned = views_of("C4", x)
    hits = [torch.isclose(turned, x.rot90(k, (-2, -1)), atol=1e-5).flatten(1).all(1) for k in range(4)]
    assert torch.stack(hits).sum(0).eq(1).all() and all(int(hit.sum()) > 2 for hit in hits)
    x = images(60)
    rolled = views_of("recolor", x)
    hits = [torch.isclose(rolled, x.roll(k, 1)).flatten(1).all(1) for k in range(3)]
    assert torch.stack(hits).sum(0).eq(1).all() and all(int(hit.sum()) > 8 for hit in hits)


def test_crops_show_windows_of_the_image():
    yy, xx = torch.meshgrid(torch.linspace(0, 1, 32), torch.linspace(0, 1, 48), indexing="ij")
    x = torch.stack([yy, xx, torch.ones_like(xx)]).expand(200, 3, 32, 48)
    view = views_of("crop:25", x)
    assert view[:, 2].min() > 0.999 - 0.51  # no window goes beyond the border by more than interpolation does
    inner = view[:, :, 1:-1, 1:-1]
    assert inner[:, 2].min() > 0.999
    height, width = view[:, 0, -1, 16] - view[:, 0, 0, 16], view[:, 1, 16, -1] - view[:, 1, 16, 0]
    area = height * width
    assert 0.25 <= area.min() < 0.3 and 0.9 < area.max() <= 1.0001 and area.std() > 0.15
    assert 1.2 < (height / width).max() < 4 / 3 + 1e-4
    assert view[:, 1, 16, -1].max() > 0.99 and view[:, 1, 16, 0].min() < 0.01  # both ends of the longer side


def test_greyscale_takes_all_colour_or_none():
    view = views_of("greyscale@20", images(200))
    grey = (view.amax(1) - view.amin(1)).flatten(1).amax(1) < 1e-5
    untouched = torch.isclose(view, images(200)).flatten(1).all(1)
    assert (grey ^ untouched).all() and 0.1 < float(grey.float().mean()) < 0.3
