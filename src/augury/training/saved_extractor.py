"""A hyper-extractor as one safetensors file: its tensors, and in the header how to build it and a checksum of it all.

    save_extractor(path, extractor, card)      load_extractor(path) -> HyperExtractor      read_card(path)

The file is written whole or not at all, and nothing in it is ever unpickled. The checksum covers the card and every
tensor with its name, so that a file that was changed or cut short is refused, not used.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from augury import __version__
from augury.core.errors import InputError, RunError
from augury.core.rng import generator
from augury.models.hypernetwork import HyperExtractor
from augury.models.networks import ENCODERS
from augury.records.results import Record
from augury.training.checkpoint import save_tensors

EXTRACTOR = "extractor.safetensors"
"""The file's name in the folder of a run."""


@dataclass(frozen=True)
class Card(Record):
    """How to build an extractor whose tensors are at hand, and where it came from."""

    encoder: str
    """A key of `ENCODERS`, or "custom"."""
    groups: list[str]
    """Names of the invariance groups, in the order of the descriptor."""
    input_shape: list[int]
    """Shape of one input."""
    features: int
    """How many features."""
    d_h: int
    """Hidden units of the generator."""
    activation: str
    """Of the hidden units."""
    transformations: dict[str, str] = field(default_factory=dict)
    """What each group means: operations joined by "+"."""
    method: str = ""
    """How it was pre-trained."""
    data: str = ""
    """On what."""
    images: int = 0
    """On how many images."""
    epochs: int = 0
    """How often it saw them."""
    loss: float | None = None
    """The last epoch's mean loss."""
    seconds: float = 0.0
    """How long it took."""
    invariance: dict[str, dict[str, float]] = field(default_factory=dict)
    """Measured invariance to each group: see `augury.methods.hyper.measured.summarise`."""
    version: str = __version__
    """Augury's version."""


def card_of(extractor: HyperExtractor, **facts: object) -> Card:
    """Return the card of an extractor."""
    return Card(
        encoder=extractor.encoder_name,
        groups=list(extractor.groups),
        input_shape=list(extractor.input_shape),
        features=extractor.features,
        d_h=extractor.d_h,
        activation=extractor.weights.activation,
        **facts,  # type: ignore[arg-type]
    )


def save_extractor(path: Path | str, extractor: HyperExtractor, card: Card | None = None) -> None:
    """Write an extractor, whole or not at all."""
    text = json.dumps((card or card_of(extractor)).to_json())
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in extractor.state_dict().items()}
    save_tensors(_file(path), tensors, {"card": text, "sha256": _digest(text, tensors)})


def read_card(path: Path | str) -> Card:
    """Return what an extractor's file says of it; the tensors are checked too."""
    return _read(_file(path))[0]


def load_extractor(path: Path | str, encoder: nn.Module | None = None) -> HyperExtractor:
    """Build an extractor from its file."""
    file = _file(path)
    card, tensors = _read(file)
    if encoder is None and card.encoder not in ENCODERS:
        raise InputError(
            f"{file} was made with an encoder of your own. Give one like it: load_extractor(path, encoder)."
        )
    made = HyperExtractor(
        card.encoder if encoder is None else encoder,
        card.groups,
        card.input_shape,
        generator(0),
        card.d_h,
        card.activation,
    )
    try:
        made.load_state_dict(tensors)
    except RuntimeError as error:
        raise InputError(f"the encoder does not fit the one that was saved in {file}: {error}") from error
    return made.eval()


def _file(path: Path | str) -> Path:
    path = Path(path)
    return path / EXTRACTOR if path.is_dir() or not path.suffix else path


def _read(file: Path) -> tuple[Card, dict[str, Tensor]]:
    try:
        with safe_open(file, framework="pt") as opened:
            header = opened.metadata() or {}
            tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        if header["sha256"] != _digest(header["card"], tensors):
            raise RunError(
                f"{file} was changed since it was written: its checksum differs. Make or copy it anew."
            )
        return Card.from_json(json.loads(header["card"])), tensors
    except FileNotFoundError as error:
        raise InputError(f"no extractor at {file}. Make one: augury amortize DATA --groups ...") from error
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise RunError(
            f"{file} is not an extractor that Augury saved, or it is damaged or cut short ({error}). "
            f"Make or copy it anew."
        ) from error


def _digest(card: str, tensors: Mapping[str, Tensor]) -> str:
    digest = sha256(card.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        digest.update(tensor.contiguous().numpy().tobytes())
    return digest.hexdigest()
