"""The phases of an experiment: in which a run was made, and which of them results are of (paper Sec. 5).

"fixed" is the same h and mu for all learners of a kind, "tune" the trials of the search, "tuned" what it chose.
"""

from __future__ import annotations

PHASES = ("fixed", "tune", "tuned")  # that a run can be of
RESULT_PHASES = ("fixed", "tuned")  # that can be asked for, and that tables and figures show
