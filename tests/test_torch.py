"""The optimiser for PyTorch: what a closure sees, what moves, and that nothing else does."""

from __future__ import annotations

import copy
import io
import os
import pickle
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from sparsezo import messages
from sparsezo.errors import DivergedError, UsageError

if find_spec("torch") is None:
    if os.environ.get("SPARSEZO_TORCH") == "must":
        pytest.fail("these tests need sparsezo[torch]", pytrace=False)
    pytest.skip("these tests need sparsezo[torch]; with SPARSEZO_TORCH=must they fail", allow_module_level=True)

import torch
from torch import nn
from torch.nn.functional import cross_entropy, embedding_bag
from torch.utils._python_dispatch import TorchDispatchMode

import sparsezo.torch
from sparsezo import perturbing
from sparsezo.torch import SparseZO, signs

ROOT = Path(__file__).parent.parent
RULES = ("two-point", "symmetric", "comparison")


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(7)
    yield
    torch.set_num_threads(before)


class Bag(nn.Module):
    """A classifier of bags of words."""

    def __init__(self, rows=30, dim=4, classes=3):
        super().__init__()
        self.bag = nn.EmbeddingBag(rows, dim, mode="mean")
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        return self.head(self.bag(x))


X = torch.tensor([[1, 4, 4, 9], [4, 20, 7, 1], [7, 7, 2, 29]])
Y = torch.tensor([0, 2, 1])
TOUCHED = [1, 2, 4, 7, 9, 20, 29]


def bits(model: nn.Module) -> list[bytes]:
    return [p.detach().reshape(-1).view(torch.uint8).numpy().tobytes() for p in model.parameters()]


def directions(model: nn.Module, run, steps: int, seed: int = 0) -> list[list[np.ndarray]]:
    """u of the first steps, each parameter's: a bit that says "better" moves w by h / mu u = u."""
    model = copy.deepcopy(model).double()
    optimizer = SparseZO(model.parameters(), rule="comparison", h=1.0, mu=1.0, seed=seed)
    found = []
    for _ in range(steps):
        for p in model.parameters():
            nn.init.zeros_(p)
        optimizer.step(lambda: run(model) is not None)
        found.append([p.detach().numpy().copy() for p in model.parameters()])
    return found


# The law of u


def test_u_is_a_random_sign_on_what_was_read_and_0_elsewhere():
    u = directions(Bag(), lambda model: model(X), 1_500)
    table = np.array([each[0] for each in u])
    untouched = np.setdiff1d(np.arange(30), TOUCHED)
    assert not table[:, untouched].any()
    drawn = np.concatenate(
        [
            table[:, TOUCHED].reshape(1_500, -1),
            *(np.array(w).reshape(1_500, -1) for w in zip(*(e[1:] for e in u), strict=True)),
        ],
        1,
    )
    k, n = drawn.shape
    assert n == len(TOUCHED) * 4 + 12 + 3
    assert (np.abs(drawn) == 1).all()
    assert np.abs(drawn.mean(0)).max() < 4.5 / np.sqrt(k)
    pairs = drawn.T @ drawn / k
    assert (pairs.diagonal() == 1).all()
    assert np.abs(pairs[~np.eye(n, dtype=bool)]).max() < 5 / np.sqrt(k)  # no weight goes with another
    later = drawn[1:].T @ drawn[:-1] / (k - 1)
    assert np.abs(later).max() < 5 / np.sqrt(k)  # nor a step with the next
    triples = np.einsum("ka,kb,kc->abc", drawn[:, :15], drawn[:, 15:30], drawn[:, 30:]) / k
    assert np.abs(triples).max() < 5.5 / np.sqrt(k)  # nor do three


def test_signs_of_long_rows_and_of_seeds_go_their_own_ways():
    """Rows of several words, a layer of thousands of weights, and the same step of other seeds."""
    model = nn.Sequential(nn.EmbeddingBag(6, 130), nn.Linear(130, 70))
    x = torch.tensor([[0, 1, 2, 5]])
    runs = [directions(model, lambda model: model(x), 3, seed) for seed in range(4)]
    drawn = np.array([np.concatenate([w.ravel() for w in u]) for run in runs for u in run])
    read = np.abs(drawn).all(0)
    assert read.sum() == 4 * 130 + 130 * 70 + 70
    drawn = drawn[:, read]
    assert (np.abs(drawn) == 1).all()
    n = drawn.shape[1]
    assert np.abs(drawn.mean(1)).max() < 4.5 / np.sqrt(n)
    assert np.abs(drawn @ drawn.T / n - np.eye(len(drawn))).max() < 4.5 / np.sqrt(n)
    for lag in (*range(1, 130), 1024):
        assert abs((drawn[:, lag:] * drawn[:, :-lag]).mean()) < 5 / np.sqrt(n * len(drawn))


def test_u_depends_on_the_seed_alone():
    run = lambda model: model(X)  # noqa: E731
    first, again, other = (directions(Bag(), run, 2, seed) for seed in (3, 3, 4))
    for a, b, c in zip(first[1], again[1], other[1], strict=True):
        assert (a == b).all()
        assert (a != c).any()


def test_no_word_of_signs_is_drawn_twice():
    """64 signs in a row, by row, parameter, step and seed."""
    model = nn.ModuleList([nn.Embedding(6, 128), nn.Embedding(6, 128), nn.Linear(128, 64, bias=False)])
    x = torch.arange(6)
    run = lambda model: model[2](model[0](x) + model[1](x))  # noqa: E731
    words = [w.reshape(-1, 64) for seed in (0, 1) for u in directions(model, run, 3, seed) for w in u]
    packed = np.packbits(np.concatenate(words) > 0, axis=1)
    assert packed.shape == (2 * 3 * (12 + 12 + 128), 8)
    assert len(np.unique(packed, axis=0)) == len(packed)


# The kernels, and what they do, literally


def literal_signs(key: int, row: int, dim: int) -> np.ndarray:
    """SplitMix64 in Python's own numbers."""
    signs = []
    for j in range(-(-dim // 64)):
        z = (key + (row * -(-dim // 64) + j) * 0x9E3779B97F4A7C15) % 2**64
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        z ^= z >> 31
        signs += [-1.0 if z >> b & 1 else 1.0 for b in range(64)]
    return np.array(signs[:dim])


KEY = 2**53 - 12345


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 200, 1_024])
def test_signs_are_added_as_written(n, dtype):
    w = np.random.default_rng(n).standard_normal(n).astype(dtype)
    before, out, scale = w.copy(), np.empty_like(w), dtype(0.1)
    exact = w + scale * literal_signs(KEY, 0, n).astype(dtype)
    perturbing.add_signs(np.uint64(KEY), scale, w, out)
    assert (out == exact).all()
    assert (w == before).all()
    perturbing.add_signs(np.uint64(KEY), scale, w, w)
    assert (w == exact).all()
    alone = signs(np.uint64(KEY), torch.zeros(1, dtype=torch.long), n, torch.float64)  # what other devices have
    assert (alone.numpy()[0] == literal_signs(KEY, 0, n)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dim", [1, 5, 64, 130])
def test_signs_of_rows_are_added_as_written(dim, dtype):
    rng = np.random.default_rng(dim)
    table, rows, scale = rng.standard_normal((9, dim)).astype(dtype), np.array([3, 0, 8, 3, 5]), dtype(0.1)
    u = np.array([literal_signs(KEY, row, dim) * (row != 5) for row in range(9)]).astype(dtype)
    exact = (table + scale * u)[rows]
    alone = signs(np.uint64(KEY), torch.from_numpy(rows[:4]), dim, torch.float64)
    assert (alone.numpy() == u[rows[:4]]).all()
    add = lambda rows, *given: perturbing.add_row_signs(np.uint64(KEY), scale, 5, rows, dim, 9, *given)  # noqa: E731
    out = np.empty(5 * dim, dtype)
    assert add(rows.astype(np.int32), table.reshape(-1), True, out, False)
    assert (out.reshape(5, dim) == exact).all()
    gathered = table[rows].reshape(-1)
    assert add(rows, gathered, False, gathered, False)
    assert (gathered.reshape(5, dim) == exact).all()
    for wrong in (9, -1):
        assert not add(np.array([wrong]), table.reshape(-1), True, out, False)
    moved = table.copy().reshape(-1)
    assert add(np.array([3, 0, 8]), moved, True, moved, True)
    assert (moved.reshape(9, dim)[[0, 3, 8]] == exact[[1, 0, 2]]).all()
    assert (moved.reshape(9, dim)[[1, 2, 4, 5, 6, 7]] == table[[1, 2, 4, 5, 6, 7]]).all()


@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("padding", [-1, 2])
@pytest.mark.parametrize("dim", [1, 5, 64, 130])
def test_bags_of_signs_are_those_of_their_rows(dim, padding, mean):
    rng = np.random.default_rng(dim)
    rows = rng.integers(0, 7, 1_100).astype(np.int32)
    rows[10:14] = 2
    begins = np.array(
        [0, 3, 3, 10, 14, 14 + 240, 14 + 240 + 720, 1_100]
    )  # empty ones, of nothing but padding, long ones
    u = np.array([literal_signs(KEY, row, dim) for row in range(7)])
    out = np.empty((7, dim), np.float32)
    room = np.empty(perturbing.CHUNK, np.uint64)
    perturbing.bag_signs(np.uint64(KEY), padding, rows, begins, mean, room, out)
    for bag in range(7):
        of = [row for row in rows[begins[bag] : begins[bag + 1]] if row != padding]
        exact = u[of].sum(0) / (max(len(of), 1) if mean else 1)
        np.testing.assert_allclose(out[bag], exact, rtol=1e-6, atol=0)


def test_rows_are_told_apart():
    rng = np.random.default_rng(1)
    marks, rows, count = np.zeros(3, np.uint64), np.empty(601, np.int64), 0
    seen = [rng.integers(0, 130, 200) for _ in range(3)]
    for each in seen:
        count = perturbing.distinct(each, 7, marks, rows, count)
    found = rows[:count]
    assert sorted(found) == sorted(set(np.concatenate(seen)) - {7})
    assert list(found[:3]) == [row for row in dict.fromkeys(seen[0]) if row != 7][:3]  # as they were first met


# What a closure sees: w + mu u, wherever a model reads its weights


class Twice(nn.Module):
    """Two lookups of a table, with rows in common, and one of none."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(30, 4, padding_idx=1)

    def forward(self, x):
        nothing = self.table(x[:0]).sum()
        return self.table(x[:2]).sum(1)[0] * self.table(x[1:]).mean((0, 1)) + nothing


class Offsets(nn.Module):
    """A bag with offsets, weights of its words that are learned, and a row that counts for nothing."""

    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(30, 4, mode="sum", padding_idx=4, include_last_offset=True)
        self.weights = nn.Parameter(torch.rand(12))

    def forward(self, x):
        offsets = torch.tensor([0, 5, 9, 12], dtype=torch.int32)
        return self.bag(x.reshape(-1).int(), offsets, per_sample_weights=self.weights)


class Tied(nn.Module):
    """A table that is also the last layer, and a penalty on it: all of its rows are read."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(30, 4)

    def forward(self, x):
        assert self.table.weight.shape == (30, 4)
        assert self.table.weight.size(1) == 4
        return self.table(x).mean(1) @ self.table.weight.T + self.table.weight.data.square().sum()


class Layers(nn.Module):
    """Modules that read weights of other modules, or lists of them; an odd layout; a weight without a dimension."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(30, 4)
        self.attention = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
        self.recurrent = nn.LSTM(4, 4, batch_first=True)
        self.turned = nn.Parameter(torch.randn(5, 4).T)
        self.scale = nn.Parameter(torch.tensor(1.5))

    def forward(self, x):
        return self.recurrent(self.attention(self.table(x)))[0][:, -1] @ self.turned * self.scale


MODELS = (Bag, Twice, Offsets, Tied, Layers)


@pytest.mark.parametrize("made", MODELS)
@pytest.mark.parametrize("sign", [1, -1])
def test_a_closure_sees_the_perturbed_model_and_no_weight_changes(made, sign):
    model, mu, seen = made().double(), 0.125, []
    before, views = bits(model), [p.detach().numpy() for p in model.parameters()]
    start = [view.copy() for view in views]
    optimizer = SparseZO(model.parameters(), rule="symmetric" if sign < 0 else "two-point", h=1.0, mu=mu)

    def closure():
        seen.append(model(X).detach().clone())
        assert all((view == w).all() for view, w in zip(views, start, strict=True))
        return 1.0

    with messages.gathered():
        optimizer.step(closure)
        (u,) = directions(model, lambda model: model(X), 1)
    assert bits(model) == before  # losses were equal: c = 0
    assert all(d.any() for d in u)  # every parameter was seen to be read
    with torch.no_grad():
        for p, d in zip(model.parameters(), u, strict=True):
            p.add_(torch.from_numpy(d), alpha=sign * mu)
        literal = model(X)
    assert len(seen) in (2, 3)
    torch.testing.assert_close(seen[-1], literal, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("rule", RULES)
def test_weights_are_the_same_bit_for_bit_however_often_they_are_perturbed(dtype, rule):
    model = Bag().to(dtype)
    before = bits(model)
    optimizer = SparseZO(model.parameters(), rule=rule, h=0.1, mu=0.3)
    seen = set()
    with messages.gathered():
        for _ in range(120):
            optimizer.step(lambda: seen.add(float(model(X).sum())) or 1.0)
    assert bits(model) == before
    assert len(seen) > 100


def test_half_precision_is_rounded_once():
    model = Bag().bfloat16()
    w = model.bag.weight.detach().double()
    optimizer = SparseZO(model.parameters(), rule="comparison", h=0.5, mu=0.5)
    optimizer.step(lambda: model(X) is not None)
    rows = torch.tensor(TOUCHED)
    (u,) = directions(model, lambda model: model(X), 1)
    exact = w[rows] + torch.from_numpy(u[0])[rows]
    assert torch.equal(model.bag.weight.detach()[rows], exact.bfloat16())


# The literal algorithm, in NumPy


def numpy_loss(table, W, b):
    """Cross-entropy of ``Bag`` on (X, Y)."""
    z = table[X.numpy()].mean(1) @ W.T + b
    z = z - z.max(1, keepdims=True)
    return float(np.mean(np.log(np.exp(z).sum(1)) - z[np.arange(3), Y.numpy()]))


def numpy_step(w, u, rule, h, mu):
    """Algorithm 1; h and mu of each parameter, as those of its group are."""
    at = lambda sign: numpy_loss(*(a + sign * m * d for a, d, m in zip(w, u, mu, strict=True)))  # noqa: E731
    if rule == "two-point":
        c = [-a * (at(1) - at(0)) / m for a, m in zip(h, mu, strict=True)]
    elif rule == "symmetric":
        c = [-a * (at(1) - at(-1)) / (2 * m) for a, m in zip(h, mu, strict=True)]
    else:
        c = [a / m if at(1) < at(0) else 0.0 for a, m in zip(h, mu, strict=True)]
    return [a + k * d for a, k, d in zip(w, c, u, strict=True)]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("grouped", [False, True])
def test_steps_are_those_of_the_literal_algorithm(rule, grouped):
    model = Bag().double()
    w = [p.detach().numpy().copy() for p in model.parameters()]
    if grouped:
        groups = [
            {"params": [model.bag.weight], "h": 0.3, "mu": 0.2},
            {"params": list(model.head.parameters()), "lr": 0.5},
        ]
        h, mu = [0.3, 0.01 * 0.5, 0.01 * 0.5], [0.2, 0.05, 0.05]
    else:
        groups, h, mu = model.parameters(), [0.01] * 3, [0.05] * 3
    optimizer = SparseZO(groups, rule=rule, h=0.01, mu=0.05, seed=5)
    u = directions_of(groups, model, 25) if grouped else directions(model, lambda model: model(X), 25, seed=5)
    for k in range(25):
        loss = optimizer.step(lambda: cross_entropy(model(X), Y))
        if rule != "symmetric":
            assert float(loss) == pytest.approx(numpy_loss(*w), rel=1e-12)
        w = numpy_step(w, u[k], rule, h, mu)
        for p, twin in zip(model.parameters(), w, strict=True):
            np.testing.assert_allclose(p.detach().numpy(), twin, rtol=1e-9, atol=1e-11)


def directions_of(groups, model, steps):
    """As ``directions``, of a model in two groups: which parameters are drawn together depends on that."""
    model = copy.deepcopy(model)
    optimizer = SparseZO(
        [{"params": [model.bag.weight]}, {"params": list(model.head.parameters())}],
        rule="comparison",
        h=1.0,
        mu=1.0,
        seed=5,
    )
    found = []
    for _ in range(steps):
        for p in model.parameters():
            nn.init.zeros_(p)
        optimizer.step(lambda: model(X) is not None)
        found.append([p.detach().numpy().copy() for p in model.parameters()])
    return found


@pytest.mark.parametrize("rule", ["two-point", "symmetric"])
def test_the_mean_step_is_the_gradient_of_the_smoothed_function(rule):
    """On a quadratic f_mu has f's gradient: A w + b on the rows that are looked up."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((6, 6))
    A, b = torch.from_numpy(A @ A.T), torch.from_numpy(rng.standard_normal(6))
    model = nn.Embedding(5, 2).double()
    start, ids = model.weight.detach().clone(), torch.tensor([3, 0, 4])
    optimizer = SparseZO(model.parameters(), rule=rule, h=1.0, mu=0.5)

    def closure():
        w = model(ids).reshape(-1)
        return 0.5 * w @ A @ w + b @ w

    moves = []
    for _ in range(1_500):
        with torch.no_grad():
            model.weight.copy_(start)
        optimizer.step(closure)
        moves.append((start - model.weight.detach())[ids].reshape(-1).numpy())
    moves = np.array(moves)
    gradient = (A @ start[ids].reshape(-1) + b).numpy()
    error = moves.std(0) / np.sqrt(len(moves))
    assert (np.abs(moves.mean(0) - gradient) < 4 * error).all()
    assert np.abs(gradient / error).max() > 10  # which is enough to see one that is not


def corners(rule: str, F, start: torch.Tensor, mu: float) -> np.ndarray:
    """The moves of a step of h = 1 at each corner of the cube, by what the optimiser itself draws."""
    w, moves = nn.Parameter(start.clone()), {}
    optimizer = SparseZO([w], rule=rule, h=1.0, mu=mu)
    for _ in range(400):
        seen = []
        with torch.no_grad():
            w.copy_(start)
        optimizer.step(lambda: seen.append((w * 1).numpy().copy()) or F(w))  # noqa: B023
        if len(seen) == 2:  # three in the first step
            at = seen[1] if rule == "two-point" else seen[0]
            moves[tuple(np.sign(at - start.numpy()))] = (start - w.detach()).numpy()
    assert len(moves) == 2 ** start.numel()
    return np.array(list(moves.values()))


@pytest.mark.parametrize("rule", ["two-point", "symmetric"])
def test_the_mean_over_all_signs_is_the_gradient_of_a_quadratic(rule):
    rng = np.random.default_rng(5)
    A, b = rng.standard_normal((5, 5)), torch.from_numpy(rng.standard_normal(5))
    A, start = torch.from_numpy(A + A.T), torch.from_numpy(rng.standard_normal(5))
    linear = corners(rule, lambda w: b @ w, start, 0.5)
    np.testing.assert_allclose(linear.mean(0), b, rtol=1e-10, atol=1e-12)
    quadratic = corners(rule, lambda w: 0.5 * w @ A @ w + b @ w, start, 0.5)
    np.testing.assert_allclose(quadratic.mean(0), A @ start + b, rtol=1e-9, atol=1e-10)


def test_a_third_derivative_is_a_third_of_what_it_is_to_normals():
    """sum of w^3 has 3 w^2 as its gradient; signs make it 3 w^2 + mu^2, normals 3 w^2 + 3 mu^2."""
    start = torch.tensor([0.3, -1.2, 0.7], dtype=torch.float64)
    moves = corners("symmetric", lambda w: (w * w * w).sum(), start, 0.5)
    np.testing.assert_allclose(moves.mean(0), 3 * start**2 + 0.25, rtol=1e-9)


def test_a_view_of_a_perturbed_weight_stays_what_it_was():
    """Layers so large that each is made by itself, in the room of the one before where nobody holds that."""
    first, second, third = (nn.Parameter(torch.randn(600, 600).double()) for _ in range(3))

    def run():
        held = first.T
        return held, (second * 1).sum(), held[0].sum() + (third[0] * 1).sum() + (second[1] * 1).sum()

    optimizer = SparseZO([first, second, third], rule="symmetric", h=1.0, mu=0.5)
    seen, held = [], []

    def closure():
        view, *sums = run()
        held.append(view)
        seen.append(torch.stack(sums))
        return 1.0

    optimizer.step(closure)
    optimizer.step(closure)
    a, b = held[-2], held[-1]
    torch.testing.assert_close((a + b) / 2, first.detach().T, rtol=1e-12, atol=1e-12)
    assert ((a - b).abs() - 1).abs().max() < 1e-12
    exact = torch.stack([second.sum(), first[:, 0].sum() + third[0].sum() + second[1].sum()])
    torch.testing.assert_close((seen[-2] + seen[-1]) / 2, exact.detach(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("other", [([1, 4, 9, 4], [0, 3]), ([1, 4, 8, 4], [0, 1]), ([1, 4, 9, 4], [0, 1])])
def test_a_closure_may_look_up_something_else_the_second_time(other):
    """What the evaluations share is asked for anew where their indices or bags differ."""
    model, mu = nn.EmbeddingBag(30, 4, mode="sum").double(), 0.5
    ((u,),) = directions(model, lambda model: model(torch.arange(30)[None]), 1)
    w, u = model.weight.detach().clone(), torch.from_numpy(u)
    first, seen = ([1, 4, 9, 4], [0, 1]), []
    asked = [tuple(map(torch.tensor, each)) for each in (first, first, other)]  # three evaluations in the first step

    def closure():
        seen.append(model(*asked[len(seen)]).clone())
        return len(seen)

    SparseZO(model.parameters(), rule="symmetric", h=0.1, mu=mu).step(closure)
    for sign, got, each in zip((1, -1), seen[1:], asked[1:], strict=True):
        torch.testing.assert_close(got, embedding_bag(each[0], w + sign * mu * u, each[1], mode="sum"))
    moved = (model.weight != w).any(1).nonzero().view(-1).tolist()
    assert moved == sorted({*first[0], *other[0]})


@pytest.mark.parametrize("kind", [nn.Embedding, nn.EmbeddingBag])
@pytest.mark.parametrize("wrong", [30, -1, 10**9])
def test_a_number_that_is_none_of_a_row_is_refused_as_torch_does(kind, wrong):
    model = kind(30, 4)
    before = bits(model)
    optimizer = SparseZO(model.parameters())
    for _ in range(2):
        optimizer.step(lambda: model(X).sum() * 0)
    with pytest.raises((IndexError, RuntimeError)):
        optimizer.step(lambda: model(torch.tensor([[1, wrong]])).sum())
    assert bits(model) == before


@pytest.mark.parametrize("made", [Bag, Twice, Offsets, Layers])
def test_other_devices_see_the_same(made, monkeypatch):
    """What is compiled, and what stands for it elsewhere."""
    model = made().double()
    twin = copy.deepcopy(model)
    for each in (model, twin):
        optimizer = SparseZO(each.parameters(), h=0.05, mu=0.1)
        for _ in range(3):
            optimizer.step(lambda: each(X).square().sum().sqrt())  # noqa: B023
        monkeypatch.setattr(sparsezo.torch, "_direct", lambda w: False)
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-9, atol=1e-11)


# What moves, and what does not


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("h", [None, 0.1])
def test_rows_that_are_not_looked_up_and_frozen_parameters_stay(rule, h):
    model = Bag()
    model.head.bias.requires_grad_(False)
    unused = nn.Parameter(torch.randn(3))
    before = [p.detach().clone() for p in (*model.parameters(), unused)]
    optimizer = SparseZO([*model.parameters(), unused], rule=rule, h=h, mu=h)
    with messages.gathered() as remarks:
        for _ in range(20):
            optimizer.step(lambda: cross_entropy(model(X), Y))
    assert remarks == ["1 of 3 parameters were not read in the first step, of shapes (3,)"]
    same = [torch.equal(p, start) for p, start in zip((*model.parameters(), unused), before, strict=True)]
    assert same == [False, False, True, True]
    changed = (model.bag.weight != before[0]).any(1).nonzero().view(-1).tolist()
    assert changed == TOUCHED


def test_thousands_of_rows_are_told_apart():
    model = nn.Embedding(50_000, 2)
    before = model.weight.detach().clone()
    x = torch.randint(0, 50_000, (4_000,))
    optimizer = SparseZO(model.parameters(), rule="two-point", h=0.01, mu=0.01)
    optimizer.step(lambda: model(x[:50]).square().sum() + model(x).square().sum())
    assert torch.equal((model.weight != before).any(1).nonzero().view(-1), torch.unique(x))


def test_a_row_for_padding_stays():
    model = Twice()
    before = model.table.weight.detach().clone()
    optimizer = SparseZO(model.parameters(), rule="two-point", h=0.1, mu=0.1)
    for _ in range(5):
        optimizer.step(lambda: model(X).square().sum())
    assert (model.table.weight != before).any(1).nonzero().view(-1).tolist() == [2, 4, 7, 9, 20, 29]


def test_rows_or_a_mask_may_be_given():
    model = Bag()
    mask = torch.rand(3, 4) > 0.5
    optimizer = SparseZO(
        model.parameters(), h=0.1, mu=0.1, active={model.bag.weight: torch.tensor([7, 0]), model.head.weight: mask}
    )
    before = [p.detach().clone() for p in model.parameters()]
    for _ in range(3):
        optimizer.step(lambda: cross_entropy(model(X), Y))
    assert (model.bag.weight != before[0]).any(1).nonzero().view(-1).tolist() == [0, 7]
    assert torch.equal(model.head.weight != before[1], mask)
    optimizer.active[model.bag.weight] = torch.arange(30)
    optimizer.step(lambda: cross_entropy(model(X), Y))
    assert (model.bag.weight != before[0]).any(1).all()


@pytest.mark.parametrize(
    "wrong",
    [
        torch.tensor([1, 1]),
        torch.tensor([30]),
        torch.tensor([-1]),
        torch.ones(30, dtype=torch.bool),
        torch.tensor([0.5]),
    ],
)
def test_an_active_that_is_none_is_refused(wrong):
    model = Bag()
    optimizer = SparseZO(model.parameters(), active={model.bag.weight: wrong})
    before = bits(model)
    with pytest.raises(
        UsageError, match=r"`active` of a parameter of shape \(30, 4\) is .* distinct numbers of its rows"
    ):
        optimizer.step(lambda: cross_entropy(model(X), Y))
    assert bits(model) == before


def test_a_table_that_is_also_read_as_a_whole_is_said_once():
    model = Tied()
    optimizer = SparseZO(model.parameters(), rule="two-point", h=1e-4, mu=0.1)
    before = model.table.weight.detach().clone()
    with messages.gathered() as remarks:
        for _ in range(3):
            optimizer.step(lambda: model(X).sum())
    assert remarks == ["a table of shape (30, 4) is read as a whole, too: all of its rows are perturbed"]
    assert (model.table.weight != before).all()


class Largest(TorchDispatchMode):
    """The most numbers in a tensor that is not a view of a known one."""

    def __init__(self, known):
        super().__init__()
        self.known, self.most = {p.untyped_storage().data_ptr() for p in known}, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for each in out if isinstance(out, tuple | list) else [out]:
            if isinstance(each, torch.Tensor) and each.untyped_storage().data_ptr() not in self.known:
                self.most = max(self.most, each.numel())
        return out


@pytest.mark.parametrize("rule", RULES)
def test_no_second_table_is_ever_made(rule):
    model = Bag(rows=50_000)
    optimizer = SparseZO(model.parameters(), rule=rule)
    with Largest(model.parameters()) as largest:
        for _ in range(20):
            optimizer.step(lambda: cross_entropy(model(X), Y))
    assert largest.most <= 200_000 // 61 + 1  # the sample of the weights; the rows looked up are 28 numbers


# Being called


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("h", [None, 0.05])
def test_a_run_goes_on_bit_for_bit_from_its_state(rule, h):
    def made():
        torch.manual_seed(2)
        model = nn.Sequential(Bag(dim=6, classes=5), nn.Dropout(0.2), nn.Linear(5, 3))
        return model, SparseZO(
            [{"params": model[0].parameters()}, {"params": model[2].parameters(), "lr": 0.5}], rule=rule, h=h, mu=h
        )

    def run(model, optimizer, first, last):
        for k in range(first, last):
            torch.manual_seed(100 + k)
            x = torch.randint(0, 30, (3, 4))
            optimizer.step(lambda: cross_entropy(model(x), Y))  # noqa: B023

    model, optimizer = made()
    run(model, optimizer, 0, 21)
    saved = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, saved)
    copied = pickle.loads(pickle.dumps((model, optimizer)))
    run(model, optimizer, 21, 60)
    saved.seek(0)
    state = torch.load(saved, weights_only=True)
    other, resumed = made()
    other.load_state_dict(state["model"])
    resumed.load_state_dict(state["optimizer"])
    run(other, resumed, 21, 60)
    assert bits(other) == bits(model)
    run(*copied, 21, 60)
    assert bits(copied[0]) == bits(model)


def test_a_state_from_before_signs_goes_on_and_says_so():
    """With other directions than it would have had."""
    model = Bag()
    optimizer = SparseZO(model.parameters())
    optimizer.step(lambda: cross_entropy(model(X), Y))
    old = optimizer.state_dict()
    for group in old["param_groups"]:
        del group["directions"]
    twin = copy.deepcopy(model)
    resumed = SparseZO(twin.parameters())
    with messages.gathered() as remarks:
        resumed.load_state_dict(old)
        for each, its in ((optimizer, model), (resumed, twin)):
            for _ in range(3):
                each.step(lambda: cross_entropy(its(X), Y))  # noqa: B023
    assert remarks == ["this state is of a version that drew normals; the run goes on, with random signs"]
    assert bits(twin) == bits(model)
    with messages.gathered() as remarks:
        resumed.load_state_dict(resumed.state_dict())
    assert remarks == []


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("call", [1, 2])
def test_a_closure_that_raises_leaves_all_as_it_was(rule, call):
    model, twin = Bag(), Bag()
    twin.load_state_dict(model.state_dict())
    optimizer, other = SparseZO(model.parameters(), rule=rule), SparseZO(twin.parameters(), rule=rule)
    before, calls = bits(model), []

    def fails():
        calls.append(cross_entropy(model(X), Y))
        if len(calls) == call:
            raise KeyError("half-way")
        return calls[-1]

    with pytest.raises(KeyError, match="half-way"):
        optimizer.step(fails)
    assert bits(model) == before
    for _ in range(3):  # and the next step is the one that would have been
        optimizer.step(lambda: cross_entropy(model(X), Y))
        other.step(lambda: cross_entropy(twin(X), Y))
    assert bits(model) == bits(twin)


def test_random_numbers_are_the_same_in_both_evaluations():
    model, drawn = Bag(), []
    optimizer = SparseZO(model.parameters(), rule="two-point", h=0.01, mu=0.01)
    for _ in range(3):
        optimizer.step(lambda: drawn.append(torch.rand(2)) or cross_entropy(model(X), Y))
    pairs = torch.stack(drawn).view(3, 2, 2)
    assert torch.equal(pairs[:, 0], pairs[:, 1])
    assert not torch.equal(pairs[0], pairs[1])


class Lightning:
    """What Lightning's automatic optimisation hands over, in short: its own closure in another one, with the gradient
    switched on, ``zero_grad`` and ``backward`` in it; and the step is called by keyword."""

    def __init__(self, model, optimizer):
        self.model, self.optimizer, self.seen = model, optimizer, []

    @torch.enable_grad()
    def closure(self):
        loss = cross_entropy(self.model(X), Y)
        self.optimizer.zero_grad()
        loss.backward()
        return loss.detach()

    def fit(self, steps):
        def wrapped():
            result = self.closure()
            self.seen.append(result.item())
            return result

        for _ in range(steps):
            assert self.optimizer.step(closure=wrapped) is not None


class Accelerated(torch.optim.Optimizer):
    """What Accelerate's wrapper does: takes the state out and puts it back, and hands the closure on."""

    def __init__(self, optimizer):
        self.optimizer = optimizer
        optimizer.load_state_dict(optimizer.state_dict())

    def step(self, closure=None):
        self.optimizer.step(closure)


@pytest.mark.parametrize("rule", RULES)
def test_trainers_call_it_with_their_closures(rule):
    """Stand-ins: neither library is installed for this."""
    models = [Bag() for _ in range(3)]
    for model in models[1:]:
        model.load_state_dict(models[0].state_dict())
    plain, inner, accelerated = (SparseZO(model.parameters(), rule=rule) for model in models)
    trainer, wrapper = Lightning(models[1], inner), Accelerated(accelerated)
    trainer.fit(30)
    for _ in range(30):
        plain.step(lambda: cross_entropy(models[0](X), Y))
        wrapper.step(lambda: cross_entropy(models[2](X), Y))
    assert bits(models[0]) == bits(models[1]) == bits(models[2])
    assert trainer.seen[-1] < trainer.seen[0]
    assert all(p.grad is None for p in models[1].parameters())


def test_schedulers_scale_the_step():
    model, twin = Bag().double(), Bag().double()
    twin.load_state_dict(model.state_dict())
    optimizer, half = (SparseZO(each.parameters(), rule="two-point", h=0.1, mu=0.1) for each in (model, twin))
    start = model.head.weight.detach().clone()
    schedule = torch.optim.lr_scheduler.LambdaLR(half, lambda epoch: 0.5)
    optimizer.step(lambda: cross_entropy(model(X), Y))
    half.step(lambda: cross_entropy(twin(X), Y))
    schedule.step()
    torch.testing.assert_close(twin.head.weight - start, 0.5 * (model.head.weight - start), rtol=1e-9, atol=1e-12)


def test_a_compiled_model_learns_what_the_plain_one_does():
    model, twin = Bag(), Bag()
    twin.load_state_dict(model.state_dict())
    compiled = torch.compile(twin, backend="eager")
    optimizer, other = SparseZO(model.parameters()), SparseZO(twin.parameters())
    for _ in range(3):
        optimizer.step(lambda: cross_entropy(model(X), Y))
        other.step(lambda: cross_entropy(compiled(X), Y))
    assert bits(model) == bits(twin)


# h and mu by themselves


@pytest.mark.parametrize("rule", ["symmetric", "comparison"])
def test_automatic_steps_need_no_scale(rule):
    """They lower F, and the same way whatever it is multiplied by."""
    ends = []
    for factor in (1.0, 2.0**10):
        torch.manual_seed(1)
        model = nn.Embedding(20, 5)
        wanted = torch.randn(20, 5)
        optimizer = SparseZO(model.parameters(), rule=rule)
        rng = torch.Generator().manual_seed(3)
        F0 = float((model.weight.detach() - wanted).square().sum())
        for _ in range(800):
            ids = torch.randint(0, 20, (20,), generator=rng) if rule != "comparison" else torch.arange(20)
            optimizer.step(lambda: factor * (model(ids) - wanted[ids]).square().sum())  # noqa: B023
        ends.append(bits(model))
        assert float((model.weight.detach() - wanted).square().sum()) < 0.4 * F0
    assert ends[0] == ends[1]


def test_mu_grows_where_no_perturbation_changes_the_loss():
    """A loss of whole numbers: at the first mu it is flat."""
    model = nn.Linear(10, 1, bias=False)
    nn.init.zeros_(model.weight)
    x = torch.eye(10)
    optimizer = SparseZO(model.parameters(), rule="symmetric")
    for _ in range(1_500):
        optimizer.step(lambda: (model(x) < 1).sum())
    assert int((model(x) < 1).sum()) <= 2


def test_a_loss_that_stays_flat_is_said_once():
    model = Bag()
    optimizer = SparseZO(model.parameters(), rule="two-point", h=0.1, mu=1e-12)
    with messages.gathered() as remarks:
        for _ in range(150):
            optimizer.step(lambda: cross_entropy(model(X), Y))
    assert remarks == [
        "no perturbation changed the loss in 100 steps: `mu` 1e-12 is too small, or the loss is flat here"
    ]


# What is wrong is one line


def test_a_wrong_call_is_one_line():
    p = [nn.Parameter(torch.zeros(2))]
    for settings, words in (
        ({"rule": "baseline"}, "rule baseline: there are two-point, symmetric, comparison"),
        ({"h": 0.0}, "`h` 0.0: must be positive and finite, or None to be found by itself"),
        ({"mu": float("nan")}, "`mu` nan: must be positive and finite, or None to be found by itself"),
        ({"seed": -1}, "seed -1: must be a whole number, 0 or more"),
    ):
        with pytest.raises(UsageError) as caught:
            SparseZO(p, **settings)
        assert str(caught.value) == words
    with pytest.raises(UsageError, match="`h` -1: must be positive"):
        SparseZO([{"params": p, "h": -1}])
    with pytest.raises(UsageError, match="only floating-point numbers can be perturbed"):
        SparseZO([nn.Parameter(torch.zeros(2, dtype=torch.int64), requires_grad=False)])
    with pytest.raises(UsageError, match="step needs a closure that returns the loss"):
        SparseZO(p).step()
    with pytest.raises(UsageError, match="the closure read none of the parameters"):
        SparseZO(p).step(lambda: 1.0)
    with pytest.raises(UsageError, match=r"the closure returned None, a NoneType; it must be a loss"):
        SparseZO(p).step(lambda: p[0].sum() and None)
    with pytest.raises(UsageError, match="groups of parameters differ in `rule`"):
        SparseZO([{"params": p}, {"params": [nn.Parameter(torch.zeros(1))], "rule": "two-point"}]).step(lambda: 1.0)


@pytest.mark.parametrize(
    ("at", "words"), [(1, "the loss at w is nan; `h` is"), (2, "the loss at w + mu u is nan; `mu` is")]
)
def test_a_loss_that_is_no_number_stops_before_anything_moves(at, words):
    model, calls = Bag(), []
    before = bits(model)
    optimizer = SparseZO(model.parameters(), rule="two-point")

    def closure():
        calls.append(1)
        loss = cross_entropy(model(X), Y)
        return loss * float("nan") if len(calls) == at else loss

    with pytest.raises(DivergedError) as caught:
        optimizer.step(closure)
    assert str(caught.value) == f"step 0: {words} probably too large"
    assert bits(model) == before


def test_the_example_runs():
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "torch_embedding_bag.py", "--steps", "50"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("F1") == 2
