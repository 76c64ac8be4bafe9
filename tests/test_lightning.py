"""The callback for Lightning: it climbs, logs, is in the checkpoint and resumes; what would spoil it is refused."""

import csv

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import augury
from augury.core.errors import InputError
from augury.core.rng import generator

lightning = pytest.importorskip("lightning.pytorch", reason="Lightning is an extra")
loggers = pytest.importorskip("lightning.pytorch.loggers")
pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning's advice


class Small(lightning.LightningModule):
    def __init__(self, only_weights=True):
        super().__init__()
        torch.manual_seed(0)
        net = nn.Sequential(nn.Flatten(), nn.Linear(64, 6), nn.Tanh(), nn.Linear(6, 2))
        self.model = augury.OrbitAverage(net, augury.Affine2d((8, 8), "rotation"), samples=2)
        self.only_weights = only_weights

    def training_step(self, batch, index):
        x, y = (batch["x"], batch["y"]) if isinstance(batch, dict) else batch
        return F.cross_entropy(self.model.average(x, generator(index)), y)

    def configure_optimizers(self):
        return torch.optim.Adam((self.model.net if self.only_weights else self).parameters(), lr=0.01)


def loader(n=24, **kwargs):
    x = torch.rand(n, 1, 8, 8, generator=generator(0))
    return DataLoader(TensorDataset(x, torch.arange(n) % 2), batch_size=8, **kwargs)


def fitted(folder, epochs, module=None, callback=None, ckpt=None, data=None, **kwargs):
    from augury.lightning import LearnInvariance

    module, callback = module or Small(), callback or LearnInvariance(evidence_images=16)
    trainer = lightning.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        callbacks=[callback],
        logger=loggers.CSVLogger(folder),
        default_root_dir=folder,
        enable_progress_bar=False,
        enable_model_summary=False,
        log_every_n_steps=1,
        **kwargs,
    )
    trainer.fit(module, loader() if data is None else data, ckpt_path=ckpt)
    return module, callback, trainer


def test_it_climbs_and_logs(tmp_path):
    module, callback, _ = fitted(tmp_path, 2)
    assert callback.evidence.N == 24 and float(module.model.transform.eta.detach().abs().max()) > 0
    rows = list(csv.DictReader(next(tmp_path.rglob("metrics.csv")).open()))
    logged = [row for row in rows if row.get("log_evidence")]
    assert len(logged) == 2
    width = module.model.transform.describe()["rotation"]
    assert float(logged[-1]["width/rotation"]) == pytest.approx(width, rel=1e-4)


def test_the_prior_acts_on_the_weights(tmp_path):
    from augury.lightning import LearnInvariance

    weak, strong = (
        fitted(tmp_path / str(delta), 2, callback=LearnInvariance(delta=delta, delta_steps=0, eta_steps=0))[0]
        for delta in (1e-6, 50.0)
    )
    size = [float(m.model.net[1].weight.detach().norm()) for m in (weak, strong)]
    assert size[1] < size[0]


def test_a_checkpoint_holds_it_and_training_resumes_bit_for_bit(tmp_path):
    whole, callback, _ = fitted(tmp_path / "a", 4)
    _, _, trainer = fitted(tmp_path / "b", 2)
    trainer.save_checkpoint(tmp_path / "two.ckpt")
    resumed, again, _ = fitted(tmp_path / "c", 4, ckpt=tmp_path / "two.ckpt")
    for name, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name]), name
    assert torch.equal(callback.evidence.log_delta, again.evidence.log_delta)


def test_intervals_in_the_end_and_batches_of_another_form(tmp_path):
    from augury.lightning import LearnInvariance

    def collate(pairs):
        return {"x": torch.stack([x for x, _ in pairs]), "y": torch.stack([y for _, y in pairs])}

    callback = LearnInvariance(intervals=True, every=2, pair=lambda batch: (batch["x"], batch["y"]))
    _, callback, _ = fitted(tmp_path, 2, callback=callback, data=loader(collate_fn=collate))
    assert callback.findings.widths["rotation"].high is not None


def test_what_would_spoil_it_is_refused(tmp_path):
    from augury.lightning import LearnInvariance

    with pytest.raises(InputError, match=r"model\.net\.parameters"):
        fitted(tmp_path, 1, module=Small(only_weights=False))
    module = Small()
    module.other = augury.OrbitAverage(nn.Linear(2, 2), augury.Affine2d((8, 8)))
    with pytest.raises(InputError, match="it holds 2"):
        fitted(tmp_path, 1, module=module)
    with pytest.raises(InputError, match="every must be at least 1"):
        LearnInvariance(every=0)
