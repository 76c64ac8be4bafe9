"""The loop: order, schedules, metrics, the best epoch, stopping early, and a loss that is lost."""

import json
import math

import pytest
import torch

from augury.config.learn import LearnConfig
from augury.core.errors import RunError
from augury.training.batches import Batches
from augury.training.checkpoint import load_checkpoint
from augury.training.evaluate import score_of
from augury.training.loop import fit
from augury.training.optimizers import cosine
from augury.training.progress import Progress
from augury.training.run_folder import RunFolder, open_run
from refusal import refused
from training_doubles import ToyLearner, coordinates, same_bits, settings, state_of, without_time


def folder_in(tmp_path, config: LearnConfig, **how) -> RunFolder:
    return open_run(tmp_path / "run", config.to_json(), **how)


def test_batches_cover_the_data_once_and_shuffle_by_the_generator():
    data = coordinates(24)
    batches = Batches(data.x_train, data.y_train, 10, torch.device("cpu"))
    sizes = [len(x) for x, _ in batches()]
    assert sizes == [10, 10, 4] and len(batches) == 3
    plain = torch.cat([x for x, _ in batches()])
    shuffled = torch.cat([x for x, _ in batches(torch.Generator().manual_seed(1))])
    assert torch.equal(plain, data.x_train)
    assert not torch.equal(shuffled, plain)
    assert torch.equal(shuffled.sort(0).values, plain.sort(0).values)


def test_same_seed_same_bits_other_seed_other_bits():
    def run(seed):
        learner = ToyLearner()
        return fit(learner, coordinates(), settings(seed=seed)), state_of(learner)

    (first, a), (second, b), (_, c) = run(0), run(0), run(1)
    assert without_time(first.rows) == without_time(second.rows)
    assert same_bits(a, b)
    assert not same_bits(a, c)


def test_every_epoch_is_a_row_and_a_line_of_json_with_widths_in_units_and_the_last_a_test_score(tmp_path):
    learner, data = ToyLearner(), coordinates()
    result = fit(learner, data, settings(epochs=3))
    assert [row["epoch"] for row in result.rows] == [1, 2, 3]
    degrees = math.degrees(abs(learner.model.transform.eta.item()))
    assert result.rows[-1]["widths"] == {"rotation": pytest.approx(degrees, rel=1e-6)}
    assert [("test_accuracy" in row) for row in result.rows] == [False, False, True]
    right = (learner.model(data.x_test).argmax(1) == data.y_test).double().mean().item()
    assert result.scores == {"test_accuracy": right} == {"test_accuracy": result.rows[-1]["test_accuracy"]}
    assert result.findings.widths["rotation"].unit == "deg"
    config = settings(epochs=3)
    folder = folder_in(tmp_path, config)
    result = fit(ToyLearner(), coordinates(), config, folder)
    lines = (folder.path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == result.rows


def test_evaluate_every_scores_on_the_way_without_touching_the_training():
    quiet, watched = ToyLearner(), ToyLearner()
    fit(quiet, coordinates(), settings(epochs=4))
    rows = fit(watched, coordinates(), settings(epochs=4, evaluate_every=2)).rows
    assert [("test_accuracy" in row) for row in rows] == [False, True, False, True]
    assert same_bits(state_of(quiet), state_of(watched))


def test_the_schedule_runs_from_start_to_end_step_by_step():
    learner, seen = ToyLearner(), []
    step = learner.train_step

    def spy(x, y, rng):
        seen.append(learner.weights.param_groups[0]["lr"])
        return step(x, y, rng)

    learner.train_step = spy
    fit(learner, coordinates(24), settings(epochs=2, batch=10))
    assert seen == pytest.approx([cosine(0.05, 1e-3, k / 6) for k in range(6)], abs=1e-15)
    assert cosine(0.05, 1e-3, 1.0) == pytest.approx(1e-3)


def test_the_epoch_with_the_best_evidence_is_restored():
    evidences, states = [-9.0, -3.0, -5.0, -4.0], []
    learner = ToyLearner(evidences)
    end_epoch = learner.end_epoch

    def spy(batches, epoch, rng):
        diagnostics = end_epoch(batches, epoch, rng)
        states.append(state_of(learner))
        return diagnostics

    learner.end_epoch = spy
    result = fit(learner, coordinates(), settings(epochs=4))
    assert result.epoch == 2
    final = state_of(learner)
    assert same_bits(final, states[1])
    assert not same_bits(final, states[3])
    assert learner.calls.item() == 2 * 3  # the extra state goes back too


@pytest.mark.parametrize(("share", "epoch"), [(0.0, 1), (0.5, 3), (1.0, 4)])
def test_early_epochs_can_be_kept_out_of_the_choice(share, epoch):
    learner = ToyLearner([-1.0, -9.0, -3.0, -5.0])
    assert fit(learner, coordinates(), settings(epochs=4, choose_from=share)).epoch == epoch
    assert fit(ToyLearner(), coordinates(), settings(epochs=3)).epoch == 3  # without evidence, the last


def test_it_stops_early_when_widths_and_evidence_are_at_rest():
    def run(evidences, window):
        learner = ToyLearner(evidences)
        learner.widths.param_groups[0]["lr"] = 0.0
        return fit(learner, coordinates(), settings(epochs=12, settle_window=window)).rows

    still = [-100.0] * 12
    moving = [-100.0 + 10 * k for k in range(12)]
    assert len(run(still, 4)) == 4
    assert len(run(moving, 4)) == 12
    assert len(run(still, 0)) == 12


def test_a_lost_loss_stops_says_where_and_keeps_the_last_good_checkpoint(tmp_path):
    config = settings(epochs=5, batch=10)
    learner, folder = ToyLearner(), folder_in(tmp_path, config)
    step = learner.train_step
    learner.train_step = lambda x, y, rng: math.nan if learner.calls == 7 else step(x, y, rng)
    refused("nan at epoch 3, step 2 of 3", fit, learner, coordinates(24), config, folder, error=RunError)
    tensors, facts, _ = load_checkpoint(folder.checkpoint)
    assert facts["epoch"] == 2 and len(folder.rows()) == 2
    assert all(t.isfinite().all() for t in tensors.values() if t.is_floating_point())


def test_weights_that_turn_nan_in_the_last_step_never_reach_a_checkpoint(tmp_path):
    config = settings(epochs=5)
    learner, folder = ToyLearner(), folder_in(tmp_path, config)
    end_epoch = learner.end_epoch

    def spoil(batches, epoch, rng):
        diagnostics = end_epoch(batches, epoch, rng)
        if epoch == 2:
            learner.model.net[0].weight.data[0, 0] = math.inf
        return diagnostics

    learner.end_epoch = spoil
    with pytest.raises(RunError, match=r"model/net\.0\.weight became NaN or infinite in epoch 2"):
        fit(learner, coordinates(), config, folder)
    assert load_checkpoint(folder.checkpoint)[1]["epoch"] == 1


def test_an_evidence_that_is_not_finite_stops_the_run():
    with pytest.raises(RunError, match="log_evidence became inf at the end of epoch 2"):
        fit(ToyLearner([-1.0, math.inf]), coordinates(), settings(epochs=3))


def test_the_global_generator_is_left_alone():
    learner = ToyLearner(dropout=0.5)
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    fit(learner, coordinates(), settings(epochs=1))
    assert torch.equal(torch.rand(2), expected)


def test_regression_is_scored_by_the_root_mean_squared_error():
    x, y = torch.tensor([[1.0], [2.0]]), torch.tensor([[1.0], [5.0]])
    assert score_of(x, y, "regression") == {"test_error": pytest.approx(math.sqrt(4.5))}


def test_progress_hears_of_the_end_even_after_an_error():
    class Heard(Progress):
        stopped = 0

        def stop(self):
            self.stopped += 1

    failing, heard = ToyLearner(), Heard()
    failing.train_step = lambda x, y, rng: math.nan
    with pytest.raises(RunError):
        fit(failing, coordinates(), settings(epochs=1), progress=heard)
    assert heard.stopped == 1
