"""The optimiser for PyTorch in Lightning and Accelerate themselves, where they are installed."""

from __future__ import annotations

import copy
import os
import warnings
from importlib.util import find_spec

import pytest

if not all(map(find_spec, ("torch", "lightning", "accelerate"))):
    if os.environ.get("SPARSEZO_TRAINERS") == "must":
        pytest.fail("these tests need torch, lightning and accelerate", pytrace=False)
    pytest.skip(
        "these tests need torch, lightning and accelerate; with SPARSEZO_TRAINERS=must they fail",
        allow_module_level=True,
    )

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

with warnings.catch_warnings():  # of what these libraries import
    warnings.simplefilter("ignore")
    import lightning
    from accelerate import Accelerator

from sparsezo.torch import SIGNS, SparseZO

# Neither is ours: what they warn of is theirs
pytestmark = [pytest.mark.filterwarnings("default")]


class Bag(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bag, self.dropout, self.head = nn.EmbeddingBag(50, 4), nn.Dropout(0.1), nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.dropout(self.bag(x)))


@pytest.fixture
def data():
    rng = torch.Generator().manual_seed(1)
    y = torch.randint(0, 2, (160,), generator=rng)
    x = torch.randint(0, 25, (160, 6), generator=rng) + 25 * y[:, None]
    return TensorDataset(x, y)


@pytest.fixture
def model():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(3)
    yield Bag()
    torch.set_num_threads(before)


def batches(data):
    return DataLoader(data, batch_size=16)


def weights(model):
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


def plain(model, data, rule, epochs):
    """The loop written out."""
    optimizer = SparseZO(model.parameters(), rule=rule)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    for _ in range(epochs):
        for x, y in batches(data):
            optimizer.step(lambda: cross_entropy(model(x), y))  # noqa: B023
        schedule.step()
    return weights(model)


class Module(lightning.LightningModule):
    """Automatic optimisation, as Lightning has it by default."""

    def __init__(self, model, rule) -> None:
        super().__init__()
        self.model, self.rule, self.calls = model, rule, 0

    def training_step(self, batch, number):
        self.calls += 1
        loss = cross_entropy(self.model(batch[0]), batch[1])
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        optimizer = SparseZO(self.model.parameters(), rule=self.rule)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]


def trainer(folder, epochs, **more):
    return lightning.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
        **more,
    )


@pytest.mark.parametrize("rule", SIGNS)
def test_lightning_learns_what_a_plain_loop_does_and_goes_on_from_a_checkpoint(rule, model, data, tmp_path):
    torch.manual_seed(5)
    twin, start = copy.deepcopy(model), copy.deepcopy(model)
    model = Module(model, rule)
    first = trainer(tmp_path, 2, enable_checkpointing=True)
    torch.manual_seed(11)
    first.fit(model, batches(data))
    assert model.calls in (40, 41)  # two a step, and once more where the first one reads in a new way
    assert all(p.grad is None for p in model.parameters())
    torch.manual_seed(11)
    expected = plain(twin, data, rule, 2)
    assert torch.equal(weights(model.model), expected)
    first.save_checkpoint(tmp_path / "half-way.ckpt")
    torch.manual_seed(12)
    trainer(tmp_path, 3, enable_checkpointing=False).fit(model, batches(data), ckpt_path=tmp_path / "half-way.ckpt")
    torch.manual_seed(12)
    resumed = Module(start, rule)
    trainer(tmp_path, 3, enable_checkpointing=False).fit(resumed, batches(data), ckpt_path=tmp_path / "half-way.ckpt")
    assert torch.equal(weights(model), weights(resumed))
    assert not torch.equal(weights(model.model), expected)


@pytest.mark.parametrize("rule", SIGNS)
def test_accelerate_learns_what_a_plain_loop_does(rule, model, data):
    twin = copy.deepcopy(model)
    accelerator = Accelerator(cpu=True)
    optimizer = SparseZO(model.parameters(), rule=rule)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    prepared, optimizer, loader, schedule = accelerator.prepare(model, optimizer, batches(data), schedule)
    torch.manual_seed(11)
    for _ in range(2):
        for x, y in loader:

            def closure():
                optimizer.zero_grad()
                loss = cross_entropy(prepared(x), y)  # noqa: B023
                accelerator.backward(loss)
                return loss

            optimizer.step(closure)
        schedule.step()
    torch.manual_seed(11)
    assert torch.equal(weights(model), plain(twin, data, rule, 2))
    assert all(p.grad is None for p in model.parameters())
