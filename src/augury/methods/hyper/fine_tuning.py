"""What an adapted extractor is compared with: a linear readout of one fixed encoder, and fine-tuning all of it."""

import copy
import time
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from augury.config.hyper import AdaptConfig
from augury.core.errors import InputError
from augury.core.rng import generator
from augury.data.dataset import Dataset
from augury.evidence.bound import bounded_loss, product_of_norms
from augury.methods.hyper.adapt import Adapted, check_task, read_out, record
from augury.methods.hyper.scores import passed, score
from augury.models.batchnorm import BATCH_NORMS
from augury.records.results import Adaptation, Bound


def readout(encoder: nn.Module, data: Dataset, *, own_statistics: bool = True, **settings: Any) -> Adapted:
    """Fit a linear head to the features of a fixed encoder."""
    config = AdaptConfig.of(settings)
    check_task(data, data.input_shape)
    start = time.perf_counter()
    net = copy.deepcopy(encoder).to(config.device).eval().requires_grad_(False)
    if own_statistics:
        take_statistics(net, data.x_train[: config.images].to(config.device))
    found = read_out(net, data, config)
    return Adapted(record(found, data, config, 1, start, criterion="given"), found.model, config)


@torch.no_grad()
def take_statistics(net: nn.Module, x: Float[Tensor, "N ..."]) -> None:
    """Let every BatchNorm take its statistics from these inputs, in place."""
    norms = [m for m in net.modules() if isinstance(m, BATCH_NORMS)]
    for norm in norms:
        channels, like = norm.num_features, next(net.parameters())
        norm.track_running_stats, norm.momentum = True, 1.0  # the one batch counts alone
        norm.running_mean, norm.running_var = like.new_zeros(channels), like.new_ones(channels)
        norm.num_batches_tracked = torch.zeros((), dtype=torch.long, device=like.device)
        norm.train()
    if norms:
        net(x)
    net.eval()


def fine_tune(
    encoder: nn.Module,
    data: Dataset,
    *,
    epochs: int = 20,
    rate: float = 1e-3,
    batch: int = 100,
    **settings: Any,
) -> Adapted:
    """Train everything, from the encoder as it is and the best head on it."""
    if epochs < 1 or batch < 1 or not rate > 0:
        raise InputError(f"epochs, batch and rate must be positive; got {epochs}, {batch} and {rate}.")
    config = AdaptConfig.of({**settings, "folds": 0})
    start = time.perf_counter()
    first = readout(encoder, data, **{**settings, "folds": 0})
    model = first.model.requires_grad_(True)
    centre, scale = _targets(data)
    train(model, data, epochs, rate, batch, generator(config.seed), scale)
    seconds = time.perf_counter() - start
    return Adapted(_tuned(first.adaptation, model, data, config, centre, scale, seconds), model, config)


def _targets(data: Dataset) -> tuple[Tensor, Tensor]:
    if data.task == "classification":
        return torch.zeros(data.n_outputs), torch.ones(data.n_outputs)
    spread = data.y_train.std(0, correction=0)
    return data.y_train.mean(0), torch.where(spread > 0, spread, torch.ones_like(spread))


def train(
    model: nn.Module, data: Dataset, epochs: int, rate: float, batch: int, rng: torch.Generator, scale: Tensor
) -> None:
    """Minimise cross-entropy, or the squared error of standardised targets; norms keep their statistics."""
    device = next(model.parameters()).device
    optimizer = torch.optim.Adam(model.parameters(), rate)
    steps = epochs * -(-len(data.x_train) // batch)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(epochs):
        for part in torch.randperm(len(data.x_train), generator=rng).split(batch):
            x, y = data.x_train[part].to(device), data.y_train[part].to(device)
            outputs = model(x)
            if data.task == "classification":
                loss = F.cross_entropy(outputs, y)
            else:
                loss = ((outputs - y) / scale.to(device)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    model.requires_grad_(False)


def _tuned(
    before: Adaptation,
    model: nn.Module,
    data: Dataset,
    config: AdaptConfig,
    centre: Tensor,
    scale: Tensor,
    seconds: float,
) -> Adaptation:
    """Score a fine-tuned model; what only a readout has is left out."""
    outputs = passed(model, data.x_train).cpu()
    targets = (data.y_train - centre) / scale if data.task == "regression" else data.y_train
    risk = float(bounded_loss((outputs - centre) / scale, targets).mean())
    X = float(data.x_train.flatten(1).norm(dim=1).max())
    B = product_of_norms(model, data.x_train[:1].to(next(model.parameters()).device))
    train_score = score(outputs, data.y_train)
    on_test = score(passed(model, data.x_test).cpu(), data.y_test) if len(data.x_test) else None
    return replace(
        before,
        score=train_score if on_test is None else on_test,
        scored_on="training" if on_test is None else "test",
        bound=Bound.of(risk, X, B, len(data.x_train), 1, config.failure),
        seconds=seconds,
        train_score=train_score,
        log_evidence=None,
        train_loss=None,
        delta=None,
        criterion="fine-tuned",
    )
