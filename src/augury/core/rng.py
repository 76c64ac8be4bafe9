"""Everything random takes an explicit `torch.Generator`; this is where they come from."""

import torch


def generator(seed: int, device: torch.device | str = "cpu") -> torch.Generator:
    """Return a fresh generator.

    Parameters
    ----------
    seed
        Any integer; equal seeds give equal draws on one machine.
    device
        Where the draws are made.

    Returns
    -------
    torch.Generator
        The generator.
    """
    return torch.Generator(device=device).manual_seed(seed)


def spawn(rng: torch.Generator) -> torch.Generator:
    """Return a new generator seeded by one draw from `rng`, so that two uses do not share a stream.

    Parameters
    ----------
    rng
        The parent; it advances by one draw.

    Returns
    -------
    torch.Generator
        The child, on the same device.
    """
    seed = int(torch.randint(2**62, (), generator=rng, device=rng.device).item())
    return generator(seed, rng.device)
