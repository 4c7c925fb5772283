"""Break a module on purpose, one change at a time (mutmut), and say which changes its tests did not notice.

    make mutants SOURCE=src/sparsezo/raters.py TESTS=tests/test_rater_models.py

The work is done in a copy, ``.mutants/``, which mutmut goes on with where it was stopped, and begins anew where a file
has changed since: it would not look at changed tests again. Plain Python only: what Numba
compiles is not mutated.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TREE = ROOT / ".mutants"
PLUGINS = ("-p", "no:cacheprovider", "-p", "no:xdist", "-p", "nodeid")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", help="the module to break")
    parser.add_argument("tests", nargs="+", help="the tests that are about it")
    call = parser.parse_args()
    if copy_tree():
        shutil.rmtree(TREE / "mutants", ignore_errors=True)
    settings = {
        "source_paths": ["src/"],
        "only_mutate": [call.source],
        "also_copy": ["README.md", "CHANGELOG.md", "docs", "constraints.txt"],
        "pytest_add_cli_args": [*PLUGINS, "-m", "not torture and not data"],
        "pytest_add_cli_args_test_selection": call.tests,
        "use_git_change_detection": False,
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    project = (ROOT / "pyproject.toml").read_text() + "\n[tool.mutmut]\n" + "\n".join(lines) + "\n"
    (TREE / "pyproject.toml").write_text(project)
    (TREE / "mutants" / "src").mkdir(parents=True, exist_ok=True)  # Python forgets paths that it does not find
    mutmut = str(Path(sys.executable).parent / "mutmut")
    # the copy is what gets imported; HERE has the plugin, which must be there before mutmut has copied anything
    paths = os.pathsep.join([str(HERE), str(TREE / "mutants" / "src")])
    environment = {**os.environ, "PYTHONPATH": paths}
    environment.pop("SPARSEZO_DATA", None)
    if subprocess.run([mutmut, "run"], cwd=TREE, env=environment).returncode != 0:
        return 1
    return subprocess.run([mutmut, "results"], cwd=TREE, env=environment).returncode


def copy_tree() -> bool:
    """What git knows or would add; whether some is new. pyproject.toml, which has more in the copy, does not count."""
    changed = False
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        source, target = ROOT / name, TREE / name
        if source.is_file() and not (target.exists() and target.read_bytes() == source.read_bytes()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
            changed |= name != "pyproject.toml"
    return changed


if __name__ == "__main__":
    sys.exit(main())
