PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DOCS_VENV := .venv-docs
LOCK := $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--custom-compile-command "make lock" --quiet $(LOCK_FLAGS)

.DEFAULT_GOAL := help
.PHONY: help run test lint bench docs lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-6s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/.run ## set up what a user needs and run the demonstration
	$(BIN)/python -m fivo demo

test: $(VENV)/.dev ## set up what a developer needs and run the tests
	$(BIN)/python -m pytest -n 2 --dist worksteal -q

lint: $(VENV)/.dev ## check style, format and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright

bench: $(VENV)/.dev ## measure speed
	$(BIN)/python benchmarks/run.py

docs: $(DOCS_VENV)/.ready ## build the documentation into build/site
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --strict
	@echo "Open build/site/index.html"

lock: $(VENV)/.dev ## pin the requirements anew (LOCK_FLAGS=--upgrade: to the newest versions)
	$(LOCK) --all-extras --output-file requirements/dev.txt pyproject.toml requirements/build.in
	$(LOCK) --extra app --constraints requirements/dev.txt --output-file requirements/run.txt pyproject.toml requirements/build.in
	$(LOCK) --constraints requirements/dev.txt --output-file requirements/docs.txt requirements/docs.in

clean: ## remove the environment, builds and caches; run directories stay
	rm -rf $(VENV) $(DOCS_VENV) build dist .pytest_cache .ruff_cache .hypothesis .coverage .coverage.*
	find src tests benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# An environment in folder $(1). Some distributions ship venv without ensurepip; the pip outside then installs $(2), which
# has the pinned pip.
define create
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	echo "fivo needs Python 3.11 or newer, but '$(PYTHON)' is $$(command -v $(PYTHON) >/dev/null \
		&& $(PYTHON) --version 2>&1 || echo 'not installed'):" \
		"install a newer one and name it, as in 'make $(MAKECMDGOALS) PYTHON=python3.12'." >&2; exit 1; }
@$(PYTHON) -m venv --clear $(1) >/dev/null 2>&1 || { $(PYTHON) -m venv --clear --without-pip $(1) && \
	$(PYTHON) -m pip --python $(1)/bin/python install --quiet --require-hashes -r $(2); }
endef

define install
$(BIN)/python -m pip install --disable-pip-version-check --quiet --require-hashes -r $(1)
$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation -e .
endef

$(VENV)/.created:
	$(call create,$(VENV),requirements/run.txt)
	@touch $@

# dev.txt holds everything run.txt does, at the same versions, so it serves both.
$(VENV)/.dev: requirements/dev.txt pyproject.toml | $(VENV)/.created
	$(call install,requirements/dev.txt)
	@touch $(VENV)/.run $@

$(VENV)/.run: requirements/run.txt pyproject.toml | $(VENV)/.created
	$(call install,requirements/run.txt)
	@touch $@

# The site is made from the source alone, so its environment holds neither JAX nor the package.
$(DOCS_VENV)/.ready: requirements/docs.txt
	$(call create,$(DOCS_VENV),requirements/docs.txt)
	$(DOCS_VENV)/bin/python -m pip install --disable-pip-version-check --quiet --require-hashes -r requirements/docs.txt
	@touch $@
