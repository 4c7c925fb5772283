# Two commands do everything: make demo, make test. Both install what they need into .venv.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint shuffled torture mutants bench results clean

demo: .venv/installed
	$(BIN)/sparsezo demo

test: .venv/tests-installed lint
	$(BIN)/python -m pytest -n 2

lint: .venv/tests-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# No test may lean on another: the same tests three times, each time in an order of its own.
shuffled: .venv/tests-installed
	for seed in 1 2 3; do \
	  $(BIN)/python -m pytest -n 2 -q -p random_order --random-order-bucket=global --random-order-seed=$$seed || exit 1; \
	done

# Long checks: the paper's figures on real data, laws with tighter tolerances, a million damaged files.
torture: .venv/tests-installed
	$(BIN)/python -m pytest -m torture -s

# Break the code on purpose and see which tests notice: make mutants MUTANTS="learner changes/kernels"; all: hours.
mutants: .venv/mutants-installed
	$(BIN)/python tests/mutants/mutants.py $(MUTANTS)

bench: .venv/installed
	$(BIN)/sparsezo bench chunking

# docs/results from scratch: about two hours on two cores. Needs SPARSEZO_DATA; goes on where it was stopped.
results: .venv/installed
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[bench]' # Vowpal Wabbit, to compare
	for name in chunking smt text noise; do \
	  $(BIN)/sparsezo reproduce $$name && mkdir -p docs/results/$$name && \
	  (cd results/$$name/report && cp -r report.html table.md table.csv figures ../../../docs/results/$$name) || exit 1; \
	done
	$(BIN)/sparsezo reproduce answers && mkdir -p docs/results/answers && \
	  (cd results/answers/report && cp -r report.html table.md table.csv figures ../../../docs/results/answers)
	$(BIN)/sparsezo reproduce scaling -o docs/results/scaling

.venv/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[text,rerank,report,data]'
	touch $@

.venv/tests-installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[test]'
	touch $@

.venv/mutants-installed: .venv/tests-installed
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[mutants]'
	touch $@

clean:
	rm -rf .venv .mutants .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build
