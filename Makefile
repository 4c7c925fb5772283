# Two commands do everything: make demo, make test. Both install what they need into .venv.
PYTHON ?= python3
BIN := .venv/bin
# Python's own compiling is kept, also where the machine says otherwise: every test process would read all tests anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo serve-demo site test lint shuffled torture figures mutants bench results findings clean

demo: .venv/installed
	$(BIN)/sparsezo demo

# Generated sentences, a model that knows nothing yet, and the first question in the browser; Ctrl-C stops, and the next
# call goes on with the same session. The sentences' own tags are only used to watch how the model does (dev).
serve-demo: .venv/installed
	test -e serve-demo/train.txt || $(BIN)/sparsezo data make chunking -o serve-demo/ -n 2000
	$(BIN)/sparsezo serve chunking --inputs serve-demo/train.txt --dev serve-demo/dev.txt --log serve-demo/session --open

# docs/ as a site: site/index.html, which needs no server and no network. A link that leads nowhere fails it.
site: .venv/tests-installed
	$(BIN)/python -m sphinx -q -W --keep-going -c docs . site

test: .venv/tests-installed lint
	$(BIN)/python -m pytest -n 3 --dist worksteal

lint: .venv/tests-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# No test may lean on another: the same tests three times, each time in an order of its own.
shuffled: .venv/tests-installed
	for seed in 1 2 3; do \
	  $(BIN)/python -m pytest -n 2 -q -p random_order --random-order-bucket=global --random-order-seed=$$seed || exit 1; \
	done

# Long checks: the paper's figures on real data, laws with tighter tolerances, 250,000 damaged
# files (SPARSEZO_TORTURE_TIMES=600: a million, two hours of CPU).
torture: .venv/tests-installed
	$(BIN)/python -m pytest -m torture -n 2 --dist worksteal --durations=15

# What guards the published figures, on the real data (SPARSEZO_DATA): some 6 minutes; .ci/run has it behind the tests.
figures: .venv/tests-installed
	$(BIN)/python -m pytest -m torture -n 2 tests/test_figures_on_real_data.py

# Break a module on purpose and see which changes its tests do not notice (mutmut).
mutants: .venv/mutants-installed
	$(BIN)/python tests/mutants/mutants.py $(SOURCE) $(TESTS)

bench: .venv/installed
	$(BIN)/sparsezo bench chunking

# docs/results from scratch: some seven hours on two cores. Needs SPARSEZO_DATA; goes on where it was stopped.
# docs/results keeps tables, verdicts and the figures that pages show; the whole reports, in results/, go to a release.
SHOWN := chunking/report/figures/loss-tuned-chunking.png chunking/report/figures/loss-undivided-chunking.png \
  chunking/report/figures/loss-speed-chunking.png noise/report/figures/noise-noise.png \
  answers/report/figures/minutes.png scaling/figures/scaling.png
results: .venv/installed
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[bench]' # Vowpal Wabbit, to compare
	for name in chunking smt text noise answers; do \
	  $(BIN)/sparsezo reproduce $$name && mkdir -p docs/results/$$name && \
	  cp results/$$name/report/table.* docs/results/$$name || exit 1; \
	done
	for name in chunking smt text noise; do cp results/$$name/report/verdicts.json docs/results/$$name || exit 1; done
	$(BIN)/sparsezo reproduce scaling && mkdir -p docs/results/scaling && cp results/scaling/scaling.* docs/results/scaling
	for file in $(SHOWN); do \
	  mkdir -p docs/results/$${file%%/*}/figures && cp results/$$file docs/results/$${file%%/*}/figures || exit 1; \
	done
	tar czf results/reports.tar.gz results/*/report results/scaling
	for what in moments rates; do $(BIN)/python benchmarks/theory.py $$what "$(SPARSEZO_DATA)" || exit 1; done
	for name in words hashing dimensions; do $(BIN)/python benchmarks/$$name.py "$(SPARSEZO_DATA)" || exit 1; done
	$(MAKE) findings

# What README.md and docs/results/README.md say of the results, from docs/results; a test sees where they differ.
findings: .venv/installed
	$(BIN)/python benchmarks/findings.py

.venv/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[text,rerank,report,data,serve]'
	touch $@

.venv/tests-installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[test]'
	touch $@

.venv/mutants-installed: .venv/tests-installed
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[mutants]'
	touch $@

clean:
	rm -rf .venv .mutants .pytest_cache .mypy_cache .ruff_cache .hypothesis dist build site
