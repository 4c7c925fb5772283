"""Plain Python and NumPy twins of the kernels, written to be obvious; the tests compare the kernels with them."""

from __future__ import annotations

import math
from itertools import product

import numpy as np

# ---- random: Python's whole numbers, taken mod 2^64 ----

GAMMA = 0x9E3779B97F4A7C15
WORD = 2**64


def mix(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % WORD
    return z ^ (z >> 31)


def stream_key(seed, stream):
    return mix((mix((seed + GAMMA) % WORD) + (stream + 1) * GAMMA) % WORD)


def place(key, step):
    return (key + step * 2**28 * GAMMA) % WORD


def word(key, step, j):
    return mix((place(key, step) + j * GAMMA) % WORD)


def uniform(key, step, j):
    return (word(key, step, j) >> 11) / 2**53


def below(key, step, n):
    return (word(key, step, 0) >> 32) * n >> 32


def normal_pair(bits):
    """Box-Muller. a is rounded to float32 as the kernel does: near a = 1 the radius feels it."""
    a = np.float32(bits >> 33) * np.float32(2.0**-31) + np.float32(2.0**-32)
    r = math.sqrt(max(-2 * math.log(float(a)), 0.0))
    low = bits % 2**32
    signed = low - 2**32 if low >= 2**31 else low
    t = (signed >> 2) * math.pi / 2**31
    sign = 1 if low & 2 else -1
    pair = (math.sin(t), math.cos(t)) if low & 1 else (math.cos(t), math.sin(t))
    return sign * r * pair[0], sign * r * pair[1]


def normals(key, step, n):
    half = n // 2
    pairs = [normal_pair(word(key, step, j)) for j in range(half + n % 2)]
    return np.array([x for x, _ in pairs[:half]] + [y for _, y in pairs[:half]] + [x for x, _ in pairs[half:]])


# ---- sparse inputs ----


def combine(table, index, value, first, last, lanes):
    """The plain loop, in float32 and in the kernel's order."""
    out = np.zeros(lanes, np.float32)
    for e in range(first, last):
        row = table[e - first] if index is None else table[index[e]]
        v = np.float32(1) if value is None else value[e]
        for lane in range(lanes):
            out[lane] = out[lane] + v * row[lane]
    return out


def dense(inputs, x, n_cols):
    """C of input x, R x n_cols, float64; a column named twice in a row adds up."""
    first, last = inputs.row_start[x : x + 2]
    C = np.zeros((last - first, n_cols))
    for r in range(first, last):
        for e in range(inputs.row_ptr[r], inputs.row_ptr[r + 1]):
            C[r - first, inputs.columns[e]] += 1 if inputs.values is None else inputs.values[e]
    if inputs.dense is not None:
        rows = inputs.dense[inputs.dense_start[x] : inputs.dense_start[x + 1]]
        C[: len(rows), inputs.dense_column : inputs.dense_column + rows.shape[1]] = rows
    return C


def active(inputs, x):
    """The distinct columns of input x: dense ones, then the others in order of first use."""
    first, last = inputs.row_ptr[inputs.row_start[x]], inputs.row_ptr[inputs.row_start[x + 1]]
    dense = range(inputs.dense_column, inputs.dense_column + (0 if inputs.dense is None else inputs.dense.shape[1]))
    return [*dense, *dict.fromkeys(inputs.columns[first:last].tolist())]


def move(C, cols, c, h, D, U, W, q):
    """(W, q) after W += c (C' D + U), or Adagrad's form of it where q is given: design 2.4. U None: C' D alone."""
    direction = C.T @ D
    if U is not None:
        direction[cols] += U
    if q is None:
        return W + c * direction, None
    g = direction * c / h
    q = q + g**2
    return W + h * g / np.sqrt(1 + q), q


# ---- chains of tags ----


def viterbi(P, R, K, start):
    """(best path, its score); the last tag wins a tie."""
    best = [P[0, start * K + b] for b in range(K)]
    back = []
    for i in range(1, R):
        totals = [[best[a] + P[i, a * K + b] for a in range(K)] for b in range(K)]
        back.append([_last_best(t) for t in totals])
        best = [max(t) for t in totals]
    path = [_last_best(best)]
    for pointers in reversed(back):
        path.append(pointers[path[-1]])
    return path[::-1], max(best)


def _last_best(values):
    return max(range(len(values)), key=lambda k: (values[k], k))


def all_paths(R, K):
    """Every path, the one that Viterbi prefers on a tie last: by the last tag, then the one before it, ..."""
    return np.array([path[::-1] for path in product(range(K), repeat=R)])


def features(paths, K, start):
    """Of each path, onehot(tag bigram) at each token: paths x R x K^2."""
    n, R = paths.shape
    before = np.concatenate([np.full((n, 1), start), paths[:, :-1]], axis=1)
    return np.eye(K * K)[before * K + paths].reshape(n, R, K * K)


def softmax(scores):
    e = np.exp(scores - scores.max())
    return e / e.sum()


def path_probabilities(P, R, K, start):
    """(all paths, p of each), by enumeration."""
    paths = all_paths(R, K)
    return paths, softmax(np.tensordot(features(paths, K, start), P[:R].astype(float), 2))


def pair_marginals(P, K):
    """Of tag bigrams (R x K^2), in logs and float64; the tag before the first token is the last one."""
    R = len(P)
    P = P.astype(float).reshape(R, K, K)
    forward, backward = np.zeros((R, K)), np.zeros((R, K))
    forward[0] = P[0, K - 1]
    for i in range(1, R):
        forward[i] = np.logaddexp.reduce(forward[i - 1][:, None] + P[i], axis=0)
    for i in range(R - 2, -1, -1):
        backward[i] = np.logaddexp.reduce(P[i + 1] + backward[i + 1], axis=1)
    total = np.logaddexp.reduce(forward[-1])
    out = np.zeros((R, K, K))
    out[0, K - 1] = np.exp(forward[0] + backward[0] - total)
    for i in range(1, R):
        out[i] = np.exp(forward[i - 1][:, None] + P[i] + backward[i] - total)
    return out.reshape(R, K * K)


def score_features(paths, K, start, order, bigram_attributes=False):
    """d score(path) / dS for each path: order 2 as ``features``; order 1 tags, then K rows of label bigrams.

    bigram_attributes: then the tokens after the first tag, after the second, ...
    """
    bigrams = features(paths, K, start)
    if order == 2:
        return bigrams
    n, R = paths.shape
    by_pair = bigrams.reshape(n, R, K, K)
    rows = [by_pair.sum(axis=2), by_pair.sum(axis=1)]
    if bigram_attributes:
        rows += [by_pair[:, :, a] for a in range(K)]
    return np.concatenate(rows, axis=1)


def chunks(tags, kind, chunk_type):
    """The set of (first token, last token, type), by conlleval's startOfChunk and endOfChunk."""
    found = set()
    before, type_before, begun = "O", "", 0
    for i, tag in enumerate([*tags, None]):
        here = "O" if tag is None else "OBI"[kind[tag]]
        type_here = "" if here == "O" else str(chunk_type[tag])
        ends = (before, here) in {("B", "B"), ("B", "O"), ("I", "B"), ("I", "O")} or (
            before != "O" and type_before != type_here
        )
        starts = here == "B" or (before, here) == ("O", "I") or (here != "O" and type_before != type_here)
        if ends:
            found.add((begun, i - 1, type_before))
        if starts:
            begun = i
        before, type_before = here, type_here
    return found


def one_minus_f1(y, z, kind, chunk_type):
    in_y, in_z = chunks(y, kind, chunk_type), chunks(z, kind, chunk_type)
    return 1 - 2 * len(in_y & in_z) / (len(in_y) + len(in_z)) if in_y or in_z else 0.0


# ---- the learner, taken literally: Algorithm 1 drawing every weight, for many runs side by side ----


class LiteralChunking:
    """Chunking of a few short sentences with order 2, decoded by enumeration.

    Of input x: C[x], phi[x] (paths x all n weights, the features of each path) and losses[x] (one a path).
    """

    def __init__(self, inputs, gold, n_cols, kind, chunk_type, start):
        K = len(kind)
        self.C, self.phi, self.losses = [], [], []
        for x in range(len(inputs.row_start) - 1):
            z = gold.tags[gold.offsets[x] : gold.offsets[x + 1]]
            paths = all_paths(len(z), K)
            C = dense(inputs, x, n_cols)
            self.C.append(C)
            self.phi.append(np.einsum("prl,rc->pcl", features(paths, K, start), C).reshape(len(paths), -1))
            self.losses.append(np.array([one_minus_f1(y, z, kind, chunk_type) for y in paths]))

    def loss(self, x, w, gamma=None):
        """Delta(argmax), one a run, or the expected loss at gamma; w: runs x n."""
        scores = w @ self.phi[x].T
        if gamma is None:
            return self.losses[x][scores.argmax(axis=1)]
        e = np.exp(gamma * (scores - scores.max(axis=1, keepdims=True)))
        return e @ self.losses[x] / e.sum(axis=1)

    def step(self, rng, w, h, mu, perturb_all, rule="two-point", gamma=None, reach=1.0, asleep=1.0):
        """c u of one step for each run (runs x n); every run looks at an input of its own.

        Faults that a test should see: the candidate stands at w + reach mu u; a weight that sleeps moves asleep times
        as far. The mean that rule baseline compares with is 0 here, as in the first of very many steps.
        """
        u = rng.standard_normal(w.shape)
        inputs = rng.integers(len(self.C), size=len(w))
        for x, phi in enumerate(self.phi):
            runs = np.flatnonzero(inputs == x)
            here = w[runs]
            active = np.repeat(self.C[x].any(axis=0), phi.shape[1] // self.C[x].shape[1])
            u_here = u[runs] * np.where(active, 1, asleep if perturb_all else 0)  # eq. (sparse-gaussian)
            F_plus = self.loss(x, here + reach * mu * u_here, gamma)
            if rule == "baseline":
                F_other = 0
            else:
                F_other = self.loss(x, here - mu * u_here if rule == "symmetric" else here, gamma)
            c = {
                "two-point": -h * (F_plus - F_other) / mu,  # eq. (2-point)
                "baseline": -h * F_plus / mu,
                "symmetric": -h * (F_plus - F_other) / (2 * mu),
                "comparison": h / mu * (F_plus < F_other),
                "preference": h / mu * np.sign(F_other - F_plus),
            }[rule]
            u[runs] = c[:, None] * u_here
        return u


def no_questions():
    """The part of a State that rules without questions leave empty."""
    asked = {"questions": np.zeros((0, 0), np.int32), "about": np.zeros(0, np.int32)}
    return {**asked, "said": np.zeros(0), "errors": np.zeros((0, 2))}
