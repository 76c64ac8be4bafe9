"""Fetch a named data set by the first of its routes that works; verified, then written whole or not at all."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from augury.core.errors import AuguryError, InputError, choose
from augury.core.files import Progress, silent, written_whole
from augury.data.named import NAMED, cache_dir, find
from augury.data.recipes import ORDER, RECIPES, Recipe
from augury.data.routes import FetchError, Official


@dataclass(frozen=True)
class Fetched:
    """What fetching a data set did."""

    name: str
    path: str
    """The `.npz` that holds it."""
    route: str
    """Where it came from; "already there" if nothing had to be done."""
    failed: tuple[str, ...] = ()
    """Why the routes before that one failed."""


def content_sha256(arrays: Mapping[str, np.ndarray]) -> str:
    """Return the sha256 of the bytes of the four arrays, in order."""
    total = hashlib.sha256()
    for key in ORDER:
        total.update(np.ascontiguousarray(arrays[key]).data)
    return total.hexdigest()


def fetch(name: str, *, progress: Progress = silent, url: str | None = None, force: bool = False) -> Fetched:
    """Fetch a named data set into the cache; `url` replaces the address of the official download."""
    recipe = recipe_of(name)
    target, there = cache_dir() / recipe.file, find(name)
    if there is not None and there.name == recipe.file and not force:
        return Fetched(name, str(there), "already there")
    routes = recipe.routes
    if url is not None:
        routes = tuple((replace(r, base_url=url), parse) for r, parse in routes if isinstance(r, Official))
    failed = []
    for route, parse in routes:
        try:
            files = route.obtain(progress)
            progress("unpacking", 0, 0)
            arrays = parse(files)
            if recipe.sha256 is not None and (found := content_sha256(arrays)) != recipe.sha256:
                raise FetchError(
                    f"{recipe.file}: content must have sha256 {recipe.sha256}; got {found}. It was thrown away."
                )
        except AuguryError as error:
            failed.append(f"{route.label}: {error}")
            continue
        progress("writing", 0, 0)
        with written_whole(target) as temporary, temporary.open("wb") as file:
            np.savez(file, **{key: arrays[key] for key in ORDER})  # type: ignore[arg-type]
        return Fetched(name, str(target), route.label, tuple(failed))
    raise FetchError(f"data set '{name}' cannot be fetched:\n" + "\n".join(f"  {line}" for line in failed))


def recipe_of(name: str) -> Recipe:
    """Return how a named set is obtained, or say why it cannot be."""
    entry = NAMED[choose("data set", name, NAMED)]
    if name not in RECIPES:
        there = entry.how or "it is part of the package, so there is nothing to fetch"
        raise InputError(f"data set to fetch must be one of {', '.join(RECIPES)}; got '{name}': {there}.")
    return RECIPES[name]
