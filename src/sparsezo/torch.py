"""Steps without a gradient for PyTorch: ``SparseZO``, a ``torch.optim.Optimizer`` that is told losses (docs/torch.md).

    optimizer = SparseZO(model.parameters())          # or with h=0.01, mu=0.01
    for x, y in batches:
        optimizer.step(lambda: loss(model(x), y))     # any number; there is no backward

Algorithm 1 of the paper (Sec. 3): w += c u, with c as design 2 has it. u is made of random signs, 1 or -1, on the rows
of embedding tables that the closure looks up and on the other parameters that it reads, and 0 elsewhere: E[u u'] = I,
as it is of the paper's normals.

The weights are never perturbed where they are. While the closure runs, whoever reads a parameter by a function of torch
is given w + mu u, made for that and dropped again, u drawn anew each time by (seed, step, parameter). So there is
nothing to restore, no direction is kept, and the only memory beyond the closure's own is that of the rows looked up and
of the largest other parameter.

Automatic h and mu are those of ``automatic``, for each group of parameters. How far the weights have gone from their
start is estimated from every 61st of them, so that no second copy of the model is kept.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import cache, cached_property
from numbers import Real
from typing import NamedTuple, TypedDict, cast

import numpy as np

from sparsezo.automatic import FIRST, SUCCESS
from sparsezo.errors import DivergedError, UsageError, need, shown
from sparsezo.kernels import random
from sparsezo.messages import say
from sparsezo.perturbing import CHUNK, WORD, add_row_signs, add_signs, bag_signs, distinct

need("torch")

import torch  # noqa: E402
from torch import Tensor  # noqa: E402
from torch.nn.functional import embedding, embedding_bag  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402

__all__ = ["SparseZO"]


class Group(TypedDict):
    """A group of parameters, as ``state_dict`` has it."""

    params: list[Tensor]
    lr: float  # a factor on the step
    h: float | None
    mu: float | None
    rule: str
    seed: int
    steps: int
    flat: int  # steps, one after the other, in which no perturbation changed the loss
    first: float  # the first automatic mu; 0: there is none, or nothing was done yet
    wide: float  # by how much it is larger now: for losses that small perturbations leave as they are; for comparison
    squares: float  # sum of g^2 dim(x)
    farthest: float  # r, as far as it was gone
    woken: float  # N, weights that have moved
    directions: str


SIGNS = {"two-point": (0, 1), "symmetric": (1, -1), "comparison": (0, 1)}  # a rule's evaluations, at w + sign mu u
_DIRECTIONS = "signs"  # what u is made of; states from before they were have no such entry
_TOGETHER = 2**18  # weights of small parameters that are drawn and added by one call
_ROOM, _LINE = 2**24, 64  # of larger ones the memory is given back at once; bytes
_SAMPLED = 61  # of a large parameter every so many-th weight tells how far it has gone; odd, to meet all columns
_SAMPLE, _LARGEST = 256, 2**16  # but so many weights at least, and so many at most
_LOOK = 64  # steps from one such look to the next; before, at every power of 2
_TIES = 0.05  # an automatic mu grows where more perturbations than these leave the loss as it is
_WIDEN, _WIDEST = 0.05, 100.0  # how fast; and how far, which is to the size of the weights themselves
_FLAT = 100  # steps in which no perturbation changed the loss, after which it is said
_SEQUENCES = (list, tuple)


class SparseZO(torch.optim.Optimizer):  # type: ignore[misc]
    """Minimise what a closure returns, by two evaluations a step.

    ``params``: parameters, or groups of them, each with its ``h``, ``mu`` and ``lr`` (a factor on steps, for torch's
    schedulers). ``h``, ``mu``: the paper's; None: found by themselves. ``active``: {parameter: which of its weights are
    perturbed and moved}, as distinct numbers of rows, or as a mask of its shape; may be changed between steps.

    Of a parameter that ``nn.Embedding`` or ``nn.EmbeddingBag`` alone read, the rows are perturbed that were looked up;
    of every other one that is read, all weights. Parameters that need no gradient are left as they are.
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[dict[str, object]],
        rule: str = "symmetric",
        h: float | None = None,
        mu: float | None = None,
        seed: int = 0,
        active: Mapping[Tensor, Tensor] | None = None,
    ) -> None:
        if rule not in SIGNS:
            raise UsageError(f"rule {shown(rule)}: there are {', '.join(SIGNS)}")
        if not isinstance(seed, int) or not 0 <= seed < 2**63:
            raise UsageError(f"seed {shown(seed)}: must be a whole number, 0 or more")
        self.active = dict(active or {})
        run: dict[str, object] = {"steps": 0, "flat": 0, "directions": _DIRECTIONS}
        run |= {"first": 0.0, "wide": 1.0, "squares": 0.0, "farthest": 0.0, "woken": 1.0}
        super().__init__(params, {"lr": 1.0, "h": h, "mu": mu, "rule": rule, "seed": seed, **run})

    def add_param_group(self, param_group: dict[str, object]) -> None:
        """One more group, with its own ``h``, ``mu`` and ``lr`` where it has them."""
        for name in ("h", "mu"):
            number = param_group.get(name, self.defaults[name])
            if number is not None and not (isinstance(number, Real) and 0 < float(number) < math.inf):
                raise UsageError(
                    f"`{name}` {shown(number)}: must be positive and finite, or None to be found by itself"
                )
        super().add_param_group(param_group)
        for p in self.param_groups[-1]["params"]:
            if not p.is_floating_point():
                raise UsageError(f"a parameter of {p.dtype}: only floating-point numbers can be perturbed")

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def step(self, closure: Callable[[], object] | None = None) -> object:
        """One step. ``closure()`` returns the loss, of the same batch whenever it is called; returned is what the first
        call returned.

        It is called twice, and once more where it reads a parameter in a new way (as in the first step of symmetric).
        Random numbers of torch, as dropout's, are the same in both. A ``backward`` in it is passed over. Under
        comparison the second call may return a bool: whether it did better than the first.
        """
        if closure is None:
            raise UsageError("step needs a closure that returns the loss: optimizer.step(lambda: loss(model(x), y))")
        groups = self._groups
        rule = groups[0]["rule"]
        if any(group["rule"] != rule for group in groups):
            raise UsageError("groups of parameters differ in `rule`: one step has one rule")
        for group in groups:
            self._start(group)
        rng = _RandomState()
        told: list[object] = []
        with _uncompiled():
            while len(told) < 2:
                step, told = _Step(self), []
                for sign in SIGNS[rule]:
                    rng.restore()
                    step.begin()
                    with _Perturbed(step, sign):
                        told.append(closure())
                    if step.again:
                        told = []
                        break
        self._check_read(step)
        better = _plain(told[1])
        if rule == "comparison" and isinstance(better, bool):
            losses = (0.0, -1.0 if better else 1.0)
        else:
            first, second = (_loss(each, sign, groups[0]) for each, sign in zip(told, SIGNS[rule], strict=True))
            losses = (first, second)
        self._move(step, rule, *losses)
        return told[0]

    def __getstate__(self) -> dict[str, object]:
        return {**super().__getstate__(), "active": self.active}

    def __setstate__(self, state: dict[str, object]) -> None:
        """Of a pickle, or of ``load_state_dict``."""
        super().__setstate__(state)
        if any("directions" not in group for group in self.param_groups):
            say("this state is of a version that drew normals; the run goes on, with random signs")
            for group in self._groups:
                group["directions"] = _DIRECTIONS

    @property
    def _groups(self) -> list[Group]:
        return cast(list[Group], self.param_groups)

    # How far: h and mu

    def _start(self, group: Group) -> None:
        """The weights' own size, and a sample of them; once, and only where h or mu is to be found."""
        if group["first"] or (group["h"] is not None and group["mu"] is not None):
            return
        squares, count = 0.0, 0
        for p in group["params"]:
            if p.requires_grad:
                sample = self.state[p]["start"] = _sample(p, _stride(p)).clone()
                squares += _square(sample) * _stride(p)
                count += sample.numel() * _stride(p)
        size = math.sqrt(squares / count) if squares > 0 else 1.0
        group["first"] = size * (FIRST if group["rule"] == "comparison" else 0.1 * FIRST)

    def _move(self, step: _Step, rule: str, first: float, second: float) -> None:
        """w += c u in each group, and what its next h and mu rest on."""
        dims = step.dims()
        for group, dim in zip(self._groups, dims, strict=True):
            mu = step.mu[id(group)]
            if rule == "comparison":  # Sec. 4
                c = 0.0 if second >= first else mu if group["h"] is None else group["h"] / mu
                grown = ((second < first) - SUCCESS) / math.sqrt(max(sum(dims), 1))
            else:
                g = (first - second) / (2 * mu) if rule == "symmetric" else (second - first) / mu  # eq. (2-point)
                c = -g * self._h(group, g, dim)
                grown = -min(_WIDEN * _TIES, math.log(group["wide"]))
            group["wide"] = min(group["wide"] * math.exp(_WIDEN if first == second else grown), _WIDEST)
            step.move(group, c * group["lr"])
            group["steps"] += 1
            group["flat"] = group["flat"] + 1 if first == second else 0
            if group["first"] and rule != "comparison" and _looks(group["steps"]):
                self._look(group)
        if self._groups[0]["flat"] == _FLAT:
            say(
                f"no perturbation changed the loss in {_FLAT} steps: `mu` {step.mu[id(self._groups[0])]:.3g} is too "
                f"small, or the loss is flat here"
            )

    def _h(self, group: Group, g: float, dim: int) -> float:
        """The h given, or that of distance-over-gradients steps, r / sqrt(sum of g^2 dim(x))."""
        if group["h"] is not None:
            return group["h"]
        group["squares"] += g * g * dim
        r = max(group["farthest"], group["first"] * group["wide"] * math.sqrt(max(group["woken"], dim)))
        return r / math.sqrt(group["squares"]) if group["squares"] > 0 else 0.0

    def _look(self, group: Group) -> None:
        """How far the weights are from their start, and how many have moved."""
        gone = woken = 0.0
        for p in group["params"]:
            if "start" in self.state.get(p, {}):
                start = self.state[p]["start"]
                stride = -(-p.numel() // max(start.numel(), 1))  # of the version that took it
                off = _sample(p, stride) - start
                gone += stride * _square(off)
                woken += stride * int(torch.count_nonzero(off))
        group["farthest"] = max(group["farthest"], math.sqrt(gone))
        group["woken"] = max(group["woken"], woken)

    def _check_read(self, step: _Step) -> None:
        """Refuse a closure that reads nothing, and say what it does not read, once."""
        if len(step.read) + len(step.tables) == len(step.home):
            return
        learned = [p for group in self._groups for p in group["params"] if p.requires_grad]
        unread = [p for p in learned if id(p) not in step.read and id(p) not in step.tables]
        if len(unread) == len(learned):
            raise UsageError(
                "the closure read none of the parameters by a function of torch: are they the model's, do they need a "
                "gradient (requires_grad), and is the model no TorchScript?"
            )
        if unread and self._groups[0]["steps"] == 0:
            shapes = ", ".join(str(tuple(p.shape)) for p in unread[:3])
            say(f"{len(unread)} of {len(learned)} parameters were not read in the first step, of shapes {shapes}")


class _Bag(NamedTuple):
    """A lookup by ``embedding_bag`` of a sum or mean, and what it gave: linear in the rows, w and u stand apart."""

    settings: tuple[object, ...]
    offsets: Tensor | None
    w: Tensor
    u: Tensor


class _Table:
    """What a step has looked up of an embedding table."""

    def __init__(self) -> None:
        self.lookups: list[Tensor] = []  # numbers of rows, flat
        self.bags: dict[int, _Bag] = {}  # number of a lookup -> what it gave
        self.next = 0  # number of the next lookup in this evaluation
        self.padding = -1  # a row that is never moved
        self._rows: Tensor | None = None

    def note(self, indices: Tensor) -> tuple[int, Tensor]:
        """The number of this lookup, and its indices, flat. Evaluations look up the same, one after the other."""
        number, indices = self.next, indices.reshape(-1)
        self.next += 1
        if number < len(self.lookups):
            known = self.lookups[number]
            if _same(known, indices):
                return number, known
        self.lookups.append(indices.clone())
        self._rows = None
        return len(self.lookups) - 1, self.lookups[-1]

    def rows(self, p: Tensor) -> Tensor:
        """The distinct rows that were looked up, but the one for padding."""
        if self._rows is not None:
            return self._rows
        if p.device.type == "cpu":
            marks = np.zeros(len(p) // WORD + 1, np.uint64)
            rows, count = np.empty(sum(each.numel() for each in self.lookups) + 1, np.int64), 0
            for each in self.lookups:
                count = distinct(each.numpy(), self.padding, marks, rows, count)
            self._rows = torch.from_numpy(rows[:count])
        else:
            found = torch.unique(torch.cat([each.to(p.device, torch.long) for each in self.lookups]))
            self._rows = found[found != self.padding]
        return self._rows


class _Step:
    """A step's mu, what its evaluations have read, and w + scale u of that."""

    def __init__(self, optimizer: SparseZO) -> None:
        self.state, self.active = optimizer.state, optimizer.active
        self.groups = optimizer._groups
        self.mu = {id(group): _mu(group) for group in self.groups}
        self.home: dict[int, tuple[int, Group]] = {}  # id of a parameter that learns -> (its number, its group)
        for group in self.groups:
            for p in group["params"]:
                if p.requires_grad:
                    self.home[id(p)] = (len(self.home), group)
        self.read: dict[int, Tensor] = {}  # id of a parameter -> it, read as a whole
        self.tables: dict[int, tuple[Tensor, _Table]] = {}  # likewise, looked up
        self.again = False  # what was read in a new way has to be perturbed from the start
        self._ready: dict[int, Tensor] = {}  # w + scale u of the last bundle in this evaluation
        self._room = np.empty(0, np.uint8)  # where that stands

    def begin(self) -> None:
        """Another evaluation."""
        self._ready = {}
        for _, table in self.tables.values():
            table.next = 0

    def note(self, p: Tensor, looked_up: bool, sign: int) -> bool:
        """That p was looked up, or read as a whole; returned is whether it is only ever looked up."""
        if self.active and p in self.active:
            return False
        before = self.state[p].get("looked_up")
        if before is None or (before and not looked_up):
            self.state[p]["looked_up"] = looked_up
            self.again = self.again or sign != 0 or id(p) in self.tables
            if before:
                say(f"a table of shape {tuple(p.shape)} is read as a whole, too: all of its rows are perturbed")
        return bool(self.state[p]["looked_up"])

    def whole(self, p: Tensor, sign: int) -> Tensor:
        """w + sign mu u of a parameter that is read as a whole; of its neighbours, too, where they are small."""
        self.read[id(p)] = p
        ready = self._ready.get(id(p))
        if ready is not None:
            return ready
        self.note(p, False, sign)
        if sign == 0 or id(p) not in self._bundles:  # met for the first time: this evaluation will be done again
            return p.detach()
        bundle, (_, group) = self._bundles[id(p)], self.home[id(p)]
        self._ready = {}  # what it holds can go
        self._ready = dict(zip(map(id, bundle), self._whole(bundle, sign * self.mu[id(group)]), strict=True))
        return self._ready[id(p)]

    def rows(self, p: Tensor, rows: Tensor, scale: float) -> Tensor:
        """w + scale u of rows of a table; rounded once, to the weights' own precision."""
        w, padding = p.detach(), self.tables[id(p)][1].padding
        if _direct(w) and rows.device == w.device:
            out = torch.empty(len(rows), w.shape[1], dtype=w.dtype)
            if _add_row_signs(self._key(p), scale, padding, rows, w, out):
                return out
        values = w.index_select(0, rows.to(w.device)).to(_precision(w))  # or it says what is wrong with the numbers
        _add_row_signs_to(values, self._key(p), scale, padding, rows)
        return values.to(w.dtype)

    def bag(self, p: Tensor, number: int, input: Tensor, scale: float, named: dict[str, object]) -> Tensor:
        """A bag that sums or averages rows of w + scale u, by those of w and of u, which both evaluations share."""
        w, (_, table) = p.detach(), self.tables[id(p)]
        offsets = cast("Tensor | None", named.get("offsets"))
        settings = (named.get("mode"), named.get("include_last_offset"), table.padding, input.shape, w._version)
        known = table.bags.get(number)
        if known is None or known.settings != settings or not _same(known.offsets, offsets):
            rows = table.lookups[number].numpy()
            look_up: Callable[..., Tensor] = embedding_bag
            seen = look_up(input, w, **named)  # or it says what is wrong
            if offsets is None:
                begins = np.arange(len(input) + 1) * input.shape[1]
            else:
                begins = offsets.numpy().astype(np.int64)
                begins = begins if named.get("include_last_offset") else np.append(begins, rows.size)
            u = torch.empty_like(seen)
            room = np.empty(CHUNK, np.uint64)
            bag_signs(self._key(p), table.padding, rows, begins, named.get("mode") != "sum", room, u.numpy())
            known = table.bags[number] = _Bag(settings, None if offsets is None else offsets.clone(), seen, u)
        return known.w.add(known.u, alpha=scale) if scale else known.w.clone()

    def dims(self) -> list[int]:
        """dim(x) of each group: weights that were perturbed."""
        dims = {id(group): 0 for group in self.groups}
        for p in self.read.values():
            dims[id(self.home[id(p)][1])] += self._chosen(p)
        for p, table in self.tables.values():
            dims[id(self.home[id(p)][1])] += len(table.rows(p)) * p.shape[1]
        return list(dims.values())

    def move(self, group: Group, c: float) -> None:
        """w += c u."""
        self._ready = {}
        if c == 0:
            return
        for p, table in self.tables.values():
            if self.home[id(p)][1] is group:
                self._move_rows(p, table.rows(p), c)
        done: set[int] = set()
        for p in self.read.values():
            bundle = self._bundles[id(p)]
            if self.home[id(p)][1] is not group or id(bundle) in done:
                continue
            done.add(id(bundle))
            if len(bundle) == 1 and p not in self.active and _direct(p):
                w = p.detach().view(-1)
                _add_signs(w, self._key(p), c, w)
                torch.autograd.graph.increment_version(p)
                continue
            values = self._whole(bundle, c)
            moved = [(each, value) for each, value in zip(bundle, values, strict=True) if id(each) in self.read]
            torch._foreach_copy_([each for each, _ in moved], [value for _, value in moved])

    @cached_property
    def _bundles(self) -> dict[int, list[Tensor]]:
        """id of a parameter that is read as a whole -> those that are drawn with it: small neighbours of a group."""
        bundles: dict[int, list[Tensor]] = {}
        for group in self.groups:
            open_: list[Tensor] = []
            size = 0
            for p in group["params"]:
                if id(p) not in self.home:
                    continue
                if self.active and p in self.active:
                    bundles[id(p)] = [p]
                elif self.state[p].get("looked_up") is False:
                    size += p.numel()
                    fits = open_ and size <= _TOGETHER and p.dtype == open_[0].dtype and p.device == open_[0].device
                    if not fits:
                        open_, size = [], p.numel()
                    open_.append(p)
                    bundles[id(p)] = open_
        return bundles

    def _whole(self, bundle: list[Tensor], scale: float) -> list[Tensor]:
        """w + scale u of parameters that are drawn together."""
        p = bundle[0]
        w = p.detach()
        if p not in self.active:
            return self._draw([each.detach() for each in bundle], p, scale)
        given = _checked(p, self.active[p])
        if given.dtype == torch.bool:
            (values,) = self._draw([w], p, scale)
            return [torch.where(given, values, w)]
        (values,) = self._draw([w.index_select(0, given)], p, scale)
        return [w.index_copy(0, given, values)]

    def _chosen(self, p: Tensor) -> int:
        """How many weights of a parameter that is read as a whole are perturbed."""
        if not self.active or p not in self.active:
            return int(p.numel())
        given = self.active[p]
        return int(given.sum()) if given.dtype == torch.bool else int(given.numel() * p[0].numel())

    def _move_rows(self, p: Tensor, rows: Tensor, c: float) -> None:
        """w += c u of rows of a table."""
        w = p.detach()
        if not _direct(w):
            w.index_copy_(0, rows, self.rows(p, rows, c))
            return
        _add_row_signs(self._key(p), c, -1, rows, w, w)
        torch.autograd.graph.increment_version(p)

    def _draw(self, ws: list[Tensor], p: Tensor, scale: float) -> list[Tensor]:
        """w + scale u of each, u by the number of p; rounded once, to the weights' own precision."""
        precision = _precision(p)
        if len(ws) == 1 and _direct(ws[0]):
            out = self._empty(ws[0].numel(), ws[0])
            _add_signs(ws[0].view(-1), self._key(p), scale, out)
            return [out.view(ws[0].shape)]
        flat = self._empty(sum(w.numel() for w in ws), ws[0])
        torch.cat([w.reshape(-1) for w in ws], out=flat)
        flat = flat if flat.dtype == precision else flat.to(precision)
        _add_signs(flat, self._key(p), scale, flat)
        flat = flat if flat.dtype == p.dtype else flat.to(p.dtype)
        pieces = flat.split([w.numel() for w in ws])
        return [piece.view(w.shape) for piece, w in zip(pieces, ws, strict=True)]

    def _empty(self, count: int, like: Tensor) -> Tensor:
        """Room for so many weights; the same as before, if nobody holds it: new pages cost more than adding signs."""
        if not _direct(like) or count > _ROOM:
            return torch.empty(count, dtype=like.dtype, device=like.device)
        size = count * like.element_size()
        if self._room.size < size + _LINE or sys.getrefcount(self._room) > 2:  # a tensor of it, or of its, has a count
            self._room = np.empty(size + _LINE, np.uint8)
        start = -self._room.ctypes.data % _LINE
        return torch.from_numpy(self._room[start : start + size].view(np.float64 if like.itemsize == 8 else np.float32))

    def _key(self, p: Tensor) -> np.uint64:
        number, group = self.home[id(p)]
        return np.uint64(random.uniform(_key(group["seed"]), group["steps"], number) * 2.0**53)


class _Perturbed(TorchFunctionMode):  # type: ignore[misc]
    """While it is on, functions of torch that are given a parameter w work with w + sign mu u."""

    def __init__(self, step: _Step, sign: int) -> None:
        super().__init__()
        self.step, self.sign, self.home = step, sign, step.home

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        kwargs = kwargs or {}
        if func is embedding or func is embedding_bag:
            return self._look_up(func, *args, **kwargs)
        if func is Tensor.backward:
            return None
        home, replaced = self.home, self._replaced
        given = [id(each) in home or type(each) in _SEQUENCES for each in args]
        named = [name for name, each in kwargs.items() if id(each) in home or type(each) in _SEQUENCES]
        if (named or True in given) and not _asks_for_no_value(func):
            args = tuple(replaced(each) if its else each for each, its in zip(args, given, strict=True))
            if named:
                kwargs = {**kwargs, **{name: replaced(kwargs[name]) for name in named}}
        return func(*args, **kwargs)

    def _replaced(self, given: object) -> object:
        """What a function is given, with parameters perturbed, in lists of them, too."""
        if id(given) not in self.home:
            if isinstance(given, list | tuple) and type(given) in _SEQUENCES:  # no torch.Size
                return type(given)(map(self._replaced, given))
            return given
        return self.step.whole(cast(Tensor, given), self.sign)

    def _look_up(self, func: Callable[..., object], input: Tensor, weight: Tensor, **named: object) -> object:
        """``embedding`` or ``embedding_bag`` of a table whose rows are perturbed."""
        named = {name: self._replaced(value) if isinstance(value, Tensor) else value for name, value in named.items()}
        step = self.step
        if id(weight) not in self.home or not step.note(weight, True, self.sign):
            return func(input, self._replaced(weight), **named)
        if id(weight) not in step.tables:
            step.tables[id(weight)] = weight, _Table()
        table, w = step.tables[id(weight)][1], weight.detach()
        padding = cast("int | None", named.get("padding_idx"))
        if padding is not None:
            table.padding = padding % len(weight)
        number, rows = table.note(input)
        scale = self.sign * step.mu[id(self.home[id(weight)][1])]
        plain = input.dtype in (torch.int32, torch.int64) and input.device == w.device
        plain = plain and named.get("max_norm") is None and _direct(w) and w.dim() == 2
        linear = named.get("mode") in ("mean", "sum") and named.get("per_sample_weights") is None
        if func is embedding_bag and plain and linear:
            return step.bag(weight, number, input, scale, named)
        if self.sign == 0:
            return func(input, w, **named)
        if func is embedding and plain:
            return step.rows(weight, rows, scale).view(*input.shape, w.shape[1])
        places = torch.arange(input.numel(), dtype=input.dtype, device=input.device)
        if padding is not None:  # bags leave it out of their sums
            gone = rows == table.padding
            at = int(gone.to(torch.uint8).argmax()) if gone.any() else None
            named["padding_idx"] = at
            places = places if at is None else places.masked_fill_(gone, at)
        return func(places.view(input.shape), step.rows(weight, rows, scale), **named)


class _RandomState:
    """Torch's own random numbers, of the CPU and of all GPUs in use, to be drawn again."""

    def __init__(self) -> None:
        self.cpu = torch.get_rng_state()
        self.cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []

    def restore(self) -> None:
        torch.set_rng_state(self.cpu)
        if self.cuda:
            torch.cuda.set_rng_state_all(self.cuda)


def _uncompiled() -> AbstractContextManager[object]:
    """Models that ``torch.compile`` compiled run as they were written: their graphs would not say what they read."""
    if "torch._dynamo" not in sys.modules:
        return nullcontext()
    return cast(AbstractContextManager[object], torch.compiler.set_stance("force_eager"))


_VALUES = {"data", "T", "mT", "H", "mH", "real", "imag"}  # attributes of a tensor that are made of its values
_NO_VALUES = {
    *("size", "dim", "ndimension", "numel", "nelement", "stride", "storage_offset", "is_contiguous", "element_size"),
    *(
        "data_ptr",
        "get_device",
        "is_floating_point",
        "is_complex",
        "is_signed",
        "is_same_size",
        "is_pinned",
        "is_shared",
    ),
    *(
        "is_inference",
        "requires_grad_",
        "register_hook",
        "retain_grad",
        "__len__",
        "__hash__",
        "type_as",
        "result_type",
    ),
    *("empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like"),
    *("new_empty", "new_zeros", "new_ones", "new_full", "new_tensor"),
}


def _asks_for_no_value(func: object) -> bool:
    """Whether a function of a parameter only wants to know its shape, type or place."""
    name = getattr(func, "__name__", "")
    if name == "__get__":
        return getattr(getattr(func, "__self__", None), "__name__", "") not in _VALUES
    return name in _NO_VALUES or name == "__set__"


def _looks(steps: int) -> bool:
    return steps % _LOOK == 0 or steps & (steps - 1) == 0


def _mu(group: Group) -> float:
    """The mu given, or how far a weight has gone, and what it looks ahead at first."""
    if group["mu"] is not None:
        return group["mu"]
    return max(group["first"] * group["wide"], group["farthest"] / math.sqrt(group["woken"]))


@cache
def _key(seed: int) -> np.uint64:
    return random.stream_key(seed, random.PERTURBATION)


def _precision(p: Tensor) -> torch.dtype:
    """What w + scale u is computed in."""
    return torch.float64 if p.dtype == torch.float64 else torch.float32


def _direct(w: Tensor) -> bool:
    """Whether what is compiled can work on it as it is."""
    return w.device.type == "cpu" and w.dtype in (torch.float32, torch.float64) and w.is_contiguous()


def _add_signs(w: Tensor, key: np.uint64, scale: float, out: Tensor) -> None:
    """out = w + scale u, both flat, u random signs by the key; out may be w."""
    if w.device.type == "cpu":
        flat = w.numpy()
        add_signs(key, flat.dtype.type(scale), flat, flat if out is w else out.numpy())
    else:
        zero = torch.zeros(1, dtype=torch.long, device=w.device)
        torch.add(w, signs(key, zero, w.numel(), w.dtype)[0], alpha=scale, out=out)


def _add_row_signs(key: np.uint64, scale: float, padding: int, rows: Tensor, w: Tensor, out: Tensor) -> bool:
    """out = w + scale u of these rows, or the same in w, where out is w. False where there is no such row."""
    flat, to = w.view(-1).numpy(), out.view(-1).numpy()
    c = flat.dtype.type(scale)
    return bool(add_row_signs(key, c, padding, rows.numpy(), w.shape[1], len(w), flat, True, to, out is w))


def _add_row_signs_to(values: Tensor, key: np.uint64, scale: float, padding: int, rows: Tensor) -> None:
    """values += scale u of the table's rows whose numbers are given."""
    if values.device.type == "cpu":
        flat = values.view(-1).numpy()
        c = flat.dtype.type(scale)
        add_row_signs(key, c, padding, rows.numpy(), values.shape[1], sys.maxsize, flat, False, flat, False)
    else:
        u = signs(key, rows.to(values.device), values.shape[1], values.dtype)
        values.add_(u.masked_fill_((rows == padding)[:, None], 0), alpha=scale)


def signs(key: np.uint64, rows: Tensor, dim: int, dtype: torch.dtype) -> Tensor:
    """u of rows of ``dim`` weights by torch alone, for other devices: bit for bit what ``perturbing`` has."""
    words = (dim + WORD - 1) // WORD
    gamma, first, second = (number - 2**64 for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
    z = int(key.astype(np.int64)) + gamma * (rows.long()[:, None] * words + torch.arange(words, device=rows.device))
    z = (z ^ (z >> 30 & (1 << 34) - 1)) * first
    z = (z ^ (z >> 27 & (1 << 37) - 1)) * second
    z = z ^ (z >> 31 & (1 << 33) - 1)
    bits = z.view(torch.uint8)[..., None] >> torch.arange(8, dtype=torch.uint8, device=rows.device) & 1
    return 1 - 2 * bits.view(len(rows), -1)[:, :dim].to(dtype)


def _same(a: Tensor | None, b: Tensor | None) -> bool:
    return a is b if a is None or b is None else a.dtype == b.dtype and torch.equal(a, b)


def _stride(p: Tensor) -> int:
    return int(max(min(p.numel() // _SAMPLE, _SAMPLED), p.numel() // _LARGEST | 1))


def _sample(p: Tensor, stride: int) -> Tensor:
    return p.detach().reshape(-1)[::stride]


def _square(values: Tensor) -> float:
    """The sum of squares, without another tensor for them."""
    return float(torch.linalg.vector_norm(values, dtype=torch.float64)) ** 2


def _checked(p: Tensor, given: Tensor) -> Tensor:
    """Rows in order, or a mask of all of p's weights."""
    if given.dtype == torch.bool and given.shape == p.shape:
        return given
    if given.dtype in (torch.int32, torch.int64) and given.ndim == 1 and p.ndim:
        rows = torch.unique(given)
        if rows.numel() == given.numel() and (not rows.numel() or (rows[0] >= 0 and rows[-1] < len(p))):
            return rows
    raise UsageError(
        f"`active` of a parameter of shape {tuple(p.shape)} is {given.dtype} of shape {tuple(given.shape)}; give a "
        "mask of the same shape, or distinct numbers of its rows"
    )


def _plain(told: object) -> object:
    """What a closure returned, out of its tensor."""
    return told.item() if isinstance(told, Tensor) and told.numel() == 1 else told


def _loss(told: object, sign: int, group: Group) -> float:
    """What a closure returned, as a finite number."""
    try:
        number = float(_plain(told))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise UsageError(f"the closure returned {shown(told)}, a {type(told).__name__}; it must be a loss") from None
    if not math.isfinite(number):
        where, name = ("w + mu u", "mu") if sign else ("w", "h")
        raise DivergedError(f"step {group['steps']}: the loss at {where} is {number}; `{name}` is probably too large")
    return number
