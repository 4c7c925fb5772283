"""For tests of the laboratory: what is in benchmarks/ can be imported."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
