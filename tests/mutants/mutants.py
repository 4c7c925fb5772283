"""Break the code on purpose, one change at a time, and say which changes no test noticed.

    make mutants                            everything: hours
    make mutants MUTANTS=learner            one entry of modules.toml
    make mutants MUTANTS=src/sparsezo/learner.py    one file of it
    make mutants MUTANTS=changes/kernels    one list of hand-made changes
    make mutants MUTANTS="tuning runs"      several

Two kinds of mutants:

modules.toml   mutmut breaks plain Python by rule. Survivors that were looked at and found equivalent or harmless stand,
               with the reason, in harmless/NAME.toml. Exit code 1: under 90% are noticed, or one is left to look at.
changes/       changes made by hand: compiled kernels and decorated functions, which mutmut leaves alone, and whatever
               once went wrong. Each names the tests that are about it, and these must notice it.

All work is done in a copy, ``.mutants/``; what is known of it is kept there, so a stopped run goes on and an unchanged
module is not tried again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORK = ROOT / ".mutants"
SHARE = 0.9  # of a module's mutants must be noticed
FAILED = 1  # pytest's exit code for "a test failed"
STATUS = {0: "survived", 1: "noticed", 3: "noticed", 33: "no test runs it", 5: "no test runs it"}  # else it did not end
PLUGINS = ("-p", "no:cacheprovider", "-p", "no:xdist", "-p", "nodeid")
LEFT_OUT = "not torture and not data"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="of modules.toml, or changes/NAME; all of them by default")
    parser.add_argument("--list", action="store_true", help="print the names and leave")
    parser.add_argument("--children", type=int, default=os.cpu_count() or 1, help="mutants tried at once")
    parser.add_argument("--only", default="", help="changes: those whose name holds these words")
    call = parser.parse_args()
    modules = tomllib.loads((HERE / "modules.toml").read_text())
    known = [*modules, *(f"changes/{path.stem}" for path in sorted((HERE / "changes").glob("*.toml")))]
    if call.list:
        print(*known, sep="\n")
        return 0
    for name in call.names:
        if name.endswith(".py"):
            modules[name] = _one_file(name, modules)
        elif name not in known:
            parser.error(f"{name}: choose from {', '.join(known)}, or name a file of one of them")
    passed = True
    for name in call.names or known:
        if name.startswith("changes/"):
            passed &= try_changes(name, call.only)
        else:
            passed &= try_module(name, modules[name], call.children)
    return 0 if passed else 1


def _one_file(path: str, modules: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The entry that a source file is in, with this file alone."""
    for module in modules.values():
        if path in module["source"]:
            return {**module, "source": [path]}
    raise SystemExit(f"{path}: no entry of modules.toml names it; add it to one, with the tests that are about it")


# A copy to break


def copy_tree(to: Path) -> None:
    """What git knows or would add, with times kept; only what differs is written, so that mutmut sees what is new."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True, stdout=-1
    )
    names = {name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()}
    for name in names:
        source, target = ROOT / name, to / name
        if not target.exists() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    for path in [*to.rglob("*.py"), *to.rglob("*.toml")]:
        inside = path.relative_to(to)
        if str(inside) not in names and inside.parts[0] in ("src", "tests"):
            path.unlink()


def environment(tree: Path) -> dict[str, str]:
    """The copy is what gets imported, by the processes that tests start, too."""
    paths = [str(HERE), str(tree / "src")]  # HERE: the plugin, which must be there before mutmut has copied anything
    kept = {name: value for name, value in os.environ.items() if name not in ("SPARSEZO_DATA", "PYTHONPATH")}
    return {**kept, "PYTHONPATH": os.pathsep.join(paths)}


# Changes by rule


def try_module(name: str, module: dict[str, Any], children: int) -> bool:
    tree = WORK / name.replace("/", "-").removesuffix(".py")
    copy_tree(tree)
    settings = {
        "source_paths": ["src/"],
        "only_mutate": module["source"],
        "also_copy": ["README.md", "CHANGELOG.md", "docs", "constraints.txt"],
        "pytest_add_cli_args": [*PLUGINS, "-m", LEFT_OUT],
        "pytest_add_cli_args_test_selection": module["tests"],
        "timeout_multiplier": 5.0,
        "timeout_constant": 20.0,
        "use_git_change_detection": False,
    }
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    text = (ROOT / "pyproject.toml").read_text() + "\n[tool.mutmut]\n" + "\n".join(lines) + "\n"
    if (tree / "pyproject.toml").read_text() != text:
        (tree / "pyproject.toml").write_text(text)
    _forget_where_tests_changed(tree, module)
    (tree / "mutants" / "src").mkdir(parents=True, exist_ok=True)  # Python forgets paths that it does not find
    command = [str(Path(sys.executable).parent / "mutmut"), "run", "--max-children", str(children)]
    with (tree / "mutmut.log").open("w") as log:
        print(f"{name}: at work; {log.name} shows how far", flush=True)
        ended = subprocess.run(command, cwd=tree, env=environment(tree / "mutants"), stdout=log, stderr=log)
    if ended.returncode != 0:
        print("\n".join((tree / "mutmut.log").read_text().replace("\r", "\n").splitlines()[-40:]))
        print(f"{name}: mutmut could not run; see above")
        return False
    return report_module(name, module, tree)


def _forget_where_tests_changed(tree: Path, module: dict[str, Any]) -> None:
    """mutmut tries a mutant again when its function changes; tests that changed may notice what went unnoticed."""
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted((tree / "tests").rglob("*.py")):
        digest.update(path.read_bytes())
    seen = tree / "tests-seen"
    if seen.exists() and seen.read_text() != digest.hexdigest():
        (tree / "mutants" / "mutmut-stats.json").unlink(missing_ok=True)
        for source in module["source"]:
            meta = tree / "mutants" / f"{source}.meta"
            if meta.exists():
                data = json.loads(meta.read_text())
                codes = data["exit_code_by_key"]
                data["exit_code_by_key"] = {key: 1 if code in (1, 3) else None for key, code in codes.items()}
                meta.write_text(json.dumps(data))
    seen.write_text(digest.hexdigest())


def report_module(name: str, module: dict[str, Any], tree: Path) -> bool:
    codes: dict[str, int | None] = {}
    for source in module["source"]:
        meta = tree / "mutants" / f"{source}.meta"
        if meta.exists():
            codes |= json.loads(meta.read_text())["exit_code_by_key"]
    harmless = _harmless(name)
    unnoticed, excused = [], 0
    for key, code in codes.items():
        if STATUS.get(code if code is not None else -1, "did not end") in ("survived", "no test runs it"):
            function, change = key.rpartition("__mutmut_")[0], _difference(tree, key)
            if (function, _added(change)) in harmless:
                excused += 1
            else:
                unnoticed.append((key, STATUS[code or 0], change))
    for key, status, change in unnoticed:
        print(f"\n{key}: {status}\n{change}")
    count = len(codes)
    share = 1 - (len(unnoticed) + excused) / max(count, 1)
    print(
        f"\n{name}: {count} changes, {100 * share:.1f}% noticed, {excused} known to be harmless, "
        f"{len(unnoticed)} to look at",
        flush=True,
    )
    return share >= SHARE and not unnoticed


def _difference(tree: Path, key: str) -> str:
    command = [str(Path(sys.executable).parent / "mutmut"), "show", key]
    shown = subprocess.run(command, cwd=tree, env=environment(tree / "mutants"), capture_output=True, text=True)
    lines = shown.stdout.splitlines()
    return "\n".join(line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---"))


def _added(difference: str) -> str:
    return "\n".join(line[1:].strip() for line in difference.splitlines() if line.startswith("+"))


def _harmless(name: str) -> set[tuple[str, str]]:
    files = HERE.glob("harmless/*.toml") if name.endswith(".py") else [HERE / "harmless" / f"{name}.toml"]
    entries = [
        entry for path in files if path.exists() for entry in tomllib.loads(path.read_text()).get("harmless", [])
    ]
    return {
        (entry["function"], "\n".join(l.strip() for l in entry["becomes"].strip().splitlines())) for entry in entries
    }


# Changes by hand


@dataclass(frozen=True)
class Change:
    name: str
    file: str
    old: str  # stands in the file once
    new: str
    tests: tuple[str, ...]  # files or single tests: those that are about it

    def digest(self, tree: Path) -> str:
        """What decides how it ends: the change itself, all sources, the tests it names."""
        known = hashlib.blake2b(digest_size=16)
        known.update(repr((self.file, self.old, self.new, self.tests)).encode())
        sources = (path for path in (tree / "src").rglob("*") if path.is_file() and path.suffix != ".pyc")
        for path in sorted({*sources, *(tree / test.split("::")[0] for test in self.tests)}):
            known.update(path.read_bytes())
        return known.hexdigest()


def read_changes(name: str) -> Iterator[Change]:
    for entry in tomllib.loads((HERE / f"{name}.toml").read_text())["change"]:
        yield Change(entry["name"], entry["file"], entry["old"], entry["new"], tuple(entry["tests"]))


def try_changes(name: str, only: str = "") -> bool:
    tree = WORK / "changes"
    if (tree / "src").exists():  # a stopped run may have left a change behind
        shutil.rmtree(tree / "src")
    copy_tree(tree)
    record = WORK / f"{name.replace('/', '-')}.json"
    known: dict[str, str] = json.loads(record.read_text()) if record.exists() else {}
    missed = []
    changes = [change for change in read_changes(name) if only in change.name]
    for number, change in enumerate(changes, 1):
        key = change.digest(tree)
        if key not in known:
            known[key] = _try(change, tree)
            record.write_text(json.dumps(known, indent=1))
        print(f"{name} {number}/{len(changes)}: {known[key]}: {change.name}", flush=True)
        if known[key] != "noticed":
            missed.append(change.name)
            del known[key]  # a mended test or entry is tried again
    print(f"{name}: {len(changes) - len(missed)} of {len(changes)} noticed", flush=True)
    return not missed


def _try(change: Change, tree: Path) -> str:
    path = tree / change.file
    text = path.read_text()
    if text.count(change.old) != 1:
        return f"NOT TRIED, its text stands {text.count(change.old)} times in {change.file}"
    path.write_text(text.replace(change.old, change.new))
    cache = tree / "jit"
    env = {**environment(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    if "/kernels/" in change.file:  # compiled anew, and of no use afterwards
        env["NUMBA_CACHE_DIR"] = str(cache)
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=line", *PLUGINS, "-m", LEFT_OUT, *change.tests]
    try:
        ended = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, timeout=900)
    except subprocess.TimeoutExpired:
        return "noticed"
    finally:
        path.write_text(text)
        shutil.rmtree(cache, ignore_errors=True)
    if ended.returncode == FAILED:
        return "noticed"
    if ended.returncode == 0:
        return "NOT NOTICED"
    return "NOT TRIED: " + " ".join(ended.stdout.strip().splitlines()[-1:])


if __name__ == "__main__":
    sys.exit(main())
