# Two commands do everything: make demo, make test. Both install what they need into .venv.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint torture bench clean

demo: .venv/installed
	$(BIN)/sparsezo demo

test: .venv/tests-installed lint
	$(BIN)/python -m pytest -n 2 -m "not torture"

lint: .venv/tests-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Long checks: the paper's figures on real data, laws with tighter tolerances.
torture: .venv/tests-installed
	$(BIN)/python -m pytest -m torture -s

bench: .venv/installed
	$(BIN)/sparsezo bench chunking

.venv/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[text,rerank,report,data]'
	touch $@

.venv/tests-installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[test]'
	touch $@

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build
