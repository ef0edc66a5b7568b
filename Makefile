# The commands of this project. Python 3.11+ and make are all they need; the rest is installed into .venv as locked.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
PURE := auto routing resilience leaks wire accounting catalog
comma := ,
empty :=
space := $(empty) $(empty)
PURE_FILES := $(subst $(space),$(comma),$(foreach name,$(PURE),troyproxy/$(name)/*)),troyproxy/errors.py
COMPILE := CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/pip-compile --quiet --generate-hashes --strip-extras --allow-unsafe \
	--no-emit-index-url --no-emit-trusted-host --no-emit-find-links
DEV_GROUP := $(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["dev"], sep="\n")'

# A file of tests stays in one process. PYTEST_ARGS="-n 0" runs all in one.
TOGETHER := --numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

SOAK_SECONDS ?= 180

.PHONY: run test check bench soak fmt lock clean
.DELETE_ON_ERROR:

run: $(VENV)/.run ## start the gateway on 127.0.0.1:31337; TROY_* variables are read
	@exec $(BIN)/troyproxy serve

test: $(VENV)/.dev ## the whole suite, with its coverage gates: 95 % of the package, 100 % of the pure core
	@rm -f .coverage .coverage.*
	@$(BIN)/coverage run -m pytest $(TOGETHER) $(PYTEST_ARGS)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report --skip-covered --fail-under=95
	@$(BIN)/coverage report --skip-covered --fail-under=100 --include='$(PURE_FILES)'

check: $(VENV)/.dev ## everything that must hold besides the tests
	@$(BIN)/ruff format --check
	@$(BIN)/ruff check
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m pytest -q -p no:cacheprovider tests/test_migrations.py tests/test_lock.py

bench: $(VENV)/.dev ## what the gateway costs, beside a plain route, in six minutes (BENCH_ARGS=--quick: one; "--write docs": into the page)
	@$(BIN)/python -m tests.bench $(BENCH_ARGS)

soak: $(VENV)/.dev ## 200 clients against upstreams that fail, for three minutes (SOAK_SECONDS=30: half a one); then the books are compared
	@$(BIN)/python -m tests.soak --seconds $(SOAK_SECONDS) $(SOAK_ARGS)

fmt: $(VENV)/.dev ## format, and mend what ruff can mend
	@$(BIN)/ruff check --fix-only --quiet
	@$(BIN)/ruff format

lock: $(VENV)/.dev ## resolve the dependencies again; `make lock UPGRADE=--upgrade` takes newer versions
	@$(COMPILE) $(UPGRADE) --all-extras --build-deps-for editable --output-file requirements.lock pyproject.toml
	@$(DEV_GROUP) | $(COMPILE) $(UPGRADE) --constraint requirements.lock --output-file requirements-dev.lock -

clean: ## remove the environment, the caches and the reports; data/ stays
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage .coverage.* htmlcov dist tests/e2e/javascript/node_modules
	@find troyproxy tests alembic -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "troyproxy needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1). Try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# A stamp says what is installed: older than the lock or pyproject.toml, it is installed again.
$(VENV)/.run: requirements.lock pyproject.toml | $(BIN)/python
	@echo "installing what is locked (once)"
	@$(PIP) install --quiet --require-hashes -r requirements.lock
	@$(PIP) install --quiet --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: requirements-dev.lock $(VENV)/.run
	@echo "installing what the tests need (once)"
	@$(PIP) install --quiet --require-hashes -r requirements-dev.lock
	@touch $@
