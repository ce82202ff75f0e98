# Every target sets up what it needs: a virtual environment from pyproject.toml and, where a control plane runs, its
# binaries from pinned Go modules (cached outside the tree).

PYTHON ?= python3
VENV   ?= .venv
WORKERS ?= 3
PIP_AUDIT ?= pip-audit==2.10.1
SEED    ?= 1
MINUTES ?= 3
SECONDS ?= 60
ATHERIS ?= atheris==3.0.0
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help demo test chaos fuzz check bench fmt image lock audit release clean

help: ## Show this help
	@echo "cardquota: card-level accelerator quota for Kubernetes"
	@echo
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(READY) ## Play the main story on a local control plane (KEEP=1 leaves it running)
	@$(BIN)/python -m hack.demo $(if $(KEEP),--keep)

# In the order of the folders: what waits for an API server comes first, and nobody waits for the last of it alone. Each worker
# has a control plane of its own, and waits for it half of the time: three keep two processors busy.
test: $(READY) ## Run all tests, those on a real API server included (ARGS='-k name' narrows)
	@$(BIN)/python -m hack.toolchain
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)

chaos: $(READY) ## Random load under random faults, judged by the audit log (SEED=1 MINUTES=3; ARGS='--logs FOLDER' keeps the logs)
	@$(BIN)/python -m hack.toolchain
	@$(BIN)/python -m tests.chaos --seed $(SEED) --minutes $(MINUTES) $(ARGS)

fuzz: $(READY) ## Search for input that breaks what reads it, by coverage (SECONDS=60 for each target; ARGS='--target NAME --seed N')
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check $(ATHERIS) || echo "no atheris for this Python: inputs are drawn blindly"
	@$(BIN)/python -m tests.fuzz --seconds $(SECONDS) $(ARGS)

check: $(READY) ## Lint, format, types and the import rule
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: $(READY) ## Measure; every figure beside its floor (ONLY='stalls cohort' narrows)
	@$(BIN)/python -m hack.bench $(if $(ONLY),--only $(ONLY)) $(ARGS)

fmt: $(READY) ## Format and apply safe fixes
	@$(BIN)/ruff check --fix --exit-zero .
	@$(BIN)/ruff format .

image: $(READY) ## Build the image with docker, podman or buildah (ARGS='--image NAME --base DIGEST --platforms LIST')
	@$(BIN)/python -m hack.image $(ARGS)

lock: $(READY) ## Write anew which files go into the image, by hash (needs uv)
	@$(BIN)/python -m hack.image.lock

audit: ## Ask PyPI for known vulnerabilities of what goes into the image; what could not be asked about is listed, and an error
	@$(PYTHON) -m venv build/audit
	@build/audit/bin/pip install --quiet $(PIP_AUDIT)
	@$(PYTHON) -m hack.image.audit build/audit/bin/pip-audit

release: $(READY) ## Wheel, chart, lock file and checksums in dist/; refused while versions or changelog disagree
	@$(BIN)/python -m hack.release $(ARGS)

clean: ## Remove the virtual environment and all caches of the tree (built binaries stay in the user cache)
	@rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml
	@$(PYTHON) hack/bootstrap.py $(VENV)
	@touch $@
