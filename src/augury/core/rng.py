"""Random generators: everything random takes an explicit `torch.Generator`."""

import torch


def generator(seed: int, device: torch.device | str = "cpu") -> torch.Generator:
    return torch.Generator(device=device).manual_seed(seed)


def spawn(rng: torch.Generator) -> torch.Generator:
    """Return a new generator seeded by one draw from `rng`, so that two uses do not share a stream."""
    seed = int(torch.randint(2**62, (), generator=rng, device=rng.device).item())
    return generator(seed, rng.device)
