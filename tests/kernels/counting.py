"""The expected F1 by counting chunks in the state of the forward pass: slow, and the twin of the quadrature."""

from __future__ import annotations

from sparsezo.kernels.jit import standalone_kernel as kernel
from sparsezo.tasks.chunking.kernels.chains import chunk_counts, one_minus_f1


@kernel
def expected_f1_loss(M, R, K, start, z, kind, chunk_type, A, B):
    """E[1 - F1(y, z)] for y with pair marginals M[i, a * K + b], exactly (design 2.5).

    1 - F1 depends on y through two counts, chunks in y and chunks in both. So the forward pass carries them:
    A[b, n, m, open] is the probability of being in tag b with n chunks begun, m of them finished in both, and the
    chunk now open matching gold's so far or not. B is room of the same shape.
    """
    n_z = chunk_counts(z, z, R, kind, chunk_type)[0]
    last_z, type_z = 0, -1
    A[:, :1] = 0
    A[start, 0, 0, 0] = 1
    for i in range(R):
        k_z, t_z = kind[z[i]], chunk_type[z[i]]
        begins_z = k_z == 1 or (k_z == 2 and (last_z == 0 or t_z != type_z))
        ends_z = begins_z or k_z == 0
        B[:, : i + 2] = 0
        for a in range(K):
            here = 0.0
            for b in range(K):
                here += M[i, a * K + b]
            if here <= 0:
                continue
            # before the first token there is no chunk, whatever tag stands for the start
            k_a, t_a = (kind[a], chunk_type[a]) if i > 0 else (0, -1)
            for b in range(K):
                p = M[i, a * K + b] / here
                if p <= 0:
                    continue
                begins = kind[b] == 1 or (kind[b] == 2 and (k_a == 0 or chunk_type[b] != t_a))
                ends = begins or kind[b] == 0
                opens = begins and begins_z and chunk_type[b] == t_z
                for n in range(i + 1):
                    for m in range(min(n, n_z) + 1):
                        to = n + 1 if begins else n
                        B[b, to, m, 1 if opens else 0] += p * A[a, n, m, 0]
                        matched = A[a, n, m, 1]
                        if matched > 0:
                            found = m + 1 if ends and ends_z else m
                            still = opens or not (ends or ends_z)
                            B[b, to, found, 1 if still else 0] += p * matched
        A, B = B, A
        last_z, type_z = k_z, t_z
    loss = 0.0
    for b in range(K):
        for n in range(R + 1):
            for m in range(min(n, n_z) + 1):
                loss += A[b, n, m, 0] * one_minus_f1(n, n_z, m)
                if A[b, n, m, 1] > 0:
                    loss += A[b, n, m, 1] * one_minus_f1(n, n_z, m + 1)
    return loss
