"""Exported policies draw what Augury draws: kornia's by running it, the others also where they are not installed."""

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.stats import ks_2samp

from augury.core.rng import generator
from augury.export.albumentations import albumentations_code
from augury.export.kornia import kornia_code
from augury.export.policy import Policy
from augury.export.targets import TARGETS
from augury.export.torchvision import torchvision_code
from augury.records.results import Width
from augury.transforms.color import blur
from augury.transforms.warp import warp
from export_doubles import COLORS, FINITE, GEOMETRY, policy, run_code
from refusal import refused

INNER = (..., slice(6, -6), slice(6, -6))
WRITERS = {name: row.write for name, row in TARGETS.items() if row.write and name != "json"}


def smooth_images(n, shape):
    """Images without sharp edges, so that rounding of positions does not matter."""
    x = torch.rand(n, *shape, generator=generator(0), dtype=torch.float64)
    return blur(x, torch.full((n, 1), 4.0, dtype=torch.float64))[:, 0]


def geometry(shape):
    made = policy(GEOMETRY, shape=shape)
    return made, made.transform().double().requires_grad_(False)


@pytest.mark.parametrize("shape", [(1, 24, 24), (3, 20, 28)], ids=str)
def test_kornia_gives_the_views_that_augury_gives_for_the_same_noise(monkeypatch, shape):
    made, transform = geometry(shape)
    code = run_code(kornia_code(made).text, monkeypatch)
    x, eps = smooth_images(6, shape), torch.rand(6, 6, generator=generator(1), dtype=torch.float64) * 2 - 1
    module = code.LearnedAffine()
    module.generate_parameters = lambda shape: {"eps": eps}
    assert torch.allclose(module(x), transform.act(x, eps[:, None])[:, 0], atol=1e-6)


def test_kornia_draws_from_the_same_distribution(monkeypatch):
    made, transform = geometry((1, 24, 24))
    code, draws = run_code(kornia_code(made).text, monkeypatch), 3000
    x = smooth_images(1, (1, 24, 24)).float()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        theirs = code.policy(x.expand(draws, -1, -1, -1))[:, 0]
    ours = transform.float()(x, draws, generator(2))[0, :, 0]
    for i, j in ((3, 12), (12, 12), (20, 5), (12, 22)):
        assert ks_2samp(theirs[:, i, j].numpy(), ours[:, i, j].numpy()).pvalue > 0.01
    assert (theirs.mean(0) - ours.mean(0)).abs().max() < 5 * ours.std(0).max() * (2 / draws) ** 0.5
    narrow = transform
    narrow.set_widths({"rotation": 60.0})
    other = narrow(x, draws, generator(3))[0, :, 0]
    assert min(ks_2samp(theirs[:, i, 12].numpy(), other[:, i, 12].numpy()).pvalue for i in range(24)) < 1e-6


def test_kornia_changes_colours_as_augury_does(monkeypatch):
    made = policy(COLORS)
    transform = made.transform().double().requires_grad_(False)
    code = run_code(kornia_code(made).text, monkeypatch)
    x = smooth_images(5, (3, 24, 24))
    eps = torch.rand(5, 6, generator=generator(1), dtype=torch.float64) * 2 - 1
    module = code.LearnedColors()
    module.generate_parameters = lambda shape: {"eps": eps}
    without_blur, sharp = {**COLORS}, transform.act(x, eps[:, None])[:, 0]
    # A sampled Gaussian is not quite diffusion on the grid.
    assert (module(x) - sharp)[INNER].abs().max() < 2e-3
    without_blur.pop("blur")
    exact = run_code(kornia_code(policy(without_blur)).text, monkeypatch).LearnedColors()
    exact.generate_parameters = lambda shape: {"eps": eps[:, :5]}
    ours = policy(without_blur).transform().double().act(x, eps[:, None, :5])[:, 0]
    assert torch.allclose(exact(x), ours, atol=1e-6)


def test_kornia_moves_by_finite_groups_as_often_as_was_learned(monkeypatch):
    code = run_code(kornia_code(policy({"flip_x": FINITE["flip_x"]})).text, monkeypatch)
    x = torch.rand(1, 3, 24, 24, generator=generator(0)).expand(2000, -1, -1, -1)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        moved = (code.policy(x) != x).flatten(1).any(1).double().mean()
    assert abs(float(moved) - 0.4) < 0.04
    quarter = run_code(kornia_code(policy({"C4": FINITE["C4"]})).text, monkeypatch).policy[0]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        views = quarter(x)
    orbit = [torch.rot90(x[0], k, (-2, -1)) for k in range(4)]
    shares = [float(((views - g).abs().amax((1, 2, 3)) < 1e-4).double().mean()) for g in orbit]
    assert shares == pytest.approx([0.4, 0.2, 0.2, 0.2], abs=0.04)


@pytest.mark.parametrize("shape", [(1, 24, 24), (1, 20, 28)], ids=str)
def test_torchvision_maps_pixels_as_augury_does(monkeypatch, shape):
    made, transform = geometry(shape)
    code = run_code(torchvision_code(made).text, monkeypatch)
    x = smooth_images(1, shape)
    for seed in range(5):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            theirs = np.asarray(code.LearnedAffine()(Image.fromarray(x[0, 0].float().numpy())))
            torch.manual_seed(seed)
            eps = torch.rand(6, dtype=torch.float64) * 2 - 1
        T = transform.matrices(eps[None, None])
        ours, inside = warp(x, T)[0, 0, 0].numpy(), warp(torch.ones_like(x), T)[0, 0, 0].numpy() > 1 - 1e-9
        assert inside.mean() > 0.2  # PIL repeats the outermost half pixel: only the inner part is comparable
        assert np.abs(ours - theirs)[inside].max() < 1e-5


def test_torchvision_changes_colours_as_augury_does(monkeypatch):
    made = policy(COLORS)
    code = run_code(torchvision_code(made).text, monkeypatch)
    x = smooth_images(1, (3, 24, 24))
    eps = torch.rand(6, generator=generator(1), dtype=torch.float64) * 2 - 1
    e = {name: eps[k] * eta for k, (name, eta) in enumerate(code.COLORS.items())}
    ours = made.transform().double().act(x, eps[None, None])[0, 0]
    assert (code.LearnedColors().transform(x[0], e) - ours)[INNER].abs().max() < 5e-3
    drawn = [code.LearnedColors().make_params([x[0]])["hue"].item() for _ in range(200)]
    assert max(map(abs, drawn)) <= code.COLORS["hue"] and max(drawn) > 0.5 and min(drawn) < -0.5


@pytest.mark.parametrize("shape", [(24, 24, 3), (20, 28)], ids=str)
def test_albumentations_maps_pixels_as_augury_does(monkeypatch, shape):
    C, H, W = (shape[2], *shape[:2]) if len(shape) == 3 else (1, *shape)
    made, transform = geometry((C, H, W))
    code = run_code(albumentations_code(made).text, monkeypatch)
    x = smooth_images(1, (C, H, W))
    learned = code.LearnedAffine(p=1.0)
    eps = np.random.default_rng(0).uniform(-1, 1, 6)
    learned.random_generator = type("Fixed", (), {"uniform": lambda self, low, high, n: eps})()
    image = x[0].permute(1, 2, 0).numpy().reshape(shape)
    matrix = learned.draw(image.shape, learned.random_generator)["matrix"]
    theirs = learned.apply(image, matrix=matrix)
    ours = transform.act(x, torch.from_numpy(eps)[None, None])[0, 0].permute(1, 2, 0).numpy().reshape(shape)
    assert theirs.shape == shape and np.abs(ours - theirs).max() < 0.02
    assert np.abs(ours - theirs).mean() < 2e-3 < np.abs(image - theirs).mean()


def test_albumentations_changes_colours_as_augury_does(monkeypatch):
    made = policy(COLORS)
    code = run_code(albumentations_code(made).text, monkeypatch)
    x = smooth_images(1, (3, 24, 24))
    eps = torch.rand(6, generator=generator(1), dtype=torch.float64) * 2 - 1
    e = {name: float(eps[k]) * eta for k, (name, eta) in enumerate(code.COLORS.items())}
    ours = made.transform().double().act(x, eps[None, None])[0, 0].permute(1, 2, 0).detach().numpy()
    image = x[0].permute(1, 2, 0).numpy()
    learned = code.LearnedColors(p=1.0)
    assert np.abs(learned.apply(image, e=e) - ours).max() < 5e-3
    as_bytes = learned.apply(np.rint(255 * image).astype(np.uint8), e=e)
    assert as_bytes.dtype == np.uint8 and np.abs(as_bytes / 255 - ours.clip(0, 1)).max() < 0.02


@pytest.mark.parametrize("library", WRITERS)
@pytest.mark.parametrize("families", [(GEOMETRY,), (COLORS,), (FINITE,), (FINITE, GEOMETRY, COLORS), ()], ids=len)
def test_code_of_every_kind_of_policy_runs_and_says_what_it_cannot(monkeypatch, library, families):
    code = WRITERS[library](policy(*families))
    names = run_code(code.text, monkeypatch)
    assert names.policy is not None and hasattr(names, "nearest") is (GEOMETRY in families)
    assert code.text.startswith('"""') and "cannot express" in code.text
    assert (FINITE in families) is ("T3" in "".join(code.left_out)) is ("Left out here" in code.text)
    for family in families:
        assert all(name in code.text for name in family)


@pytest.mark.parametrize("library", WRITERS)
def test_the_nearest_of_the_librarys_own_has_the_learned_ranges(library):
    text = WRITERS[library](policy(GEOMETRY)).text.partition("nearest = ")[2]
    assert "100.0" in text and "0.083333" in text and "11.30993" in text  # degrees, 2 px of 24, atan 0.2
    factor = "1.1958261" if library == "torchvision" else "1.3"  # one factor for both axes, or two
    assert factor in text


@pytest.mark.parametrize("library", WRITERS)
def test_signals_have_no_place_in_libraries_for_images(library):
    signals = Policy({"time_shift": Width(3.0, "samples")}, "signal", [1, 32])
    refused("--to json", WRITERS[library], signals)


def test_widths_of_nothing_are_left_out_of_the_code():
    text = kornia_code(policy({**GEOMETRY, "rotation": Width(0.0, "deg")})).text
    assert '"rotation": [[' not in text and '"shear": [[' in text
