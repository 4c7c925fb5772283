// What differs between two rows of words: the words outside a longest common subsequence.

const MOST = 4_000_000; // cells

/** [[true where a[i] is not common], [the same of b]] */
export function differing(a, b) {
  const n = a.length;
  const m = b.length;
  if (n * m > MOST) return [a.map((word, i) => word !== b[i]), b.map((word, i) => word !== a[i])];
  const width = m + 1;
  const length = new Uint16Array((n + 1) * width);
  for (let i = n - 1; i >= 0; i--) {
    for (let j = m - 1; j >= 0; j--) {
      length[i * width + j] =
        a[i] === b[j]
          ? length[(i + 1) * width + j + 1] + 1
          : Math.max(length[(i + 1) * width + j], length[i * width + j + 1]);
    }
  }
  const left = new Array(n).fill(true);
  const right = new Array(m).fill(true);
  for (let i = 0, j = 0; i < n && j < m; ) {
    if (a[i] === b[j]) left[i++] = right[j++] = false;
    else if (length[(i + 1) * width + j] >= length[i * width + j + 1]) i++;
    else j++;
  }
  return [left, right];
}
