# Every verb creates the environment by itself and installs only what it needs; a second run installs nothing.
VENV ?= .venv
PYTHON ?= $(or $(shell command -v python3.11),$(shell command -v python3),python3)
# The onnxruntime to serve with: cpu or gpu.
EXTRA ?= cpu
# Folder of the datasets, one folder each.
DATA ?= $(or $(MQAN_DATA),datasets)
# Bundle to evaluate and recipe to train.
BUNDLE ?= serving/bundles/default
RECIPE ?= training/recipes/debug.yaml
# More arguments for the verb, for example `make test ARGS="-k spans"`.
ARGS ?=

BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt
# Says before an installation what comes, how large it is and how long it takes. Measured on 2 cores.
SAY = @printf 'Installing into %s: %s. Later calls skip this.\n' '$(VENV)'

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help setup serve test interop lint format types numbers docs proto bench evaluate train release clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.dev  ## Install everything that development needs

serve: $(VENV)/.serve-$(EXTRA)  ## Serve the default bundle: REST on 127.0.0.1:8000, gRPC on 127.0.0.1:9000
	$(BIN)/mqan serve $(ARGS)

# Three processes, also on two cores: half of the time tests wait for what they have started.
test: $(VENV)/.dev  ## Run all tests
	$(BIN)/python -m pytest --numprocesses 3 $(ARGS)

interop: $(VENV)/.dev $(VENV)/.interop  ## Test the clients and frameworks of others against a server
	$(BIN)/python -m pytest tests/interop $(ARGS)

lint: $(VENV)/.dev  ## Check style, spelling, the direction of imports and the Dockerfile
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/lint-imports
	$(BIN)/hadolint Dockerfile

format: $(VENV)/.dev  ## Format the code and repair what ruff can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.dev  ## Check types
	$(BIN)/mypy

numbers: $(VENV)/.dev  ## Write measured numbers into the documents, from the files that hold them
	$(BIN)/python docs/building/measured.py

docs: $(VENV)/.docs  ## Build the documentation as a site into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet $(ARGS)

proto: $(VENV)/.dev  ## Generate the stubs from the contract, and the document of the REST contract
	$(BIN)/python -m grpc_tools.protoc -Iprotos --python_out=protos --pyi_out=protos --grpc_python_out=protos \
		protos/mqan/v1/answer.proto
	$(BIN)/python -m grpc_tools.protoc -Iruntime --python_out=runtime --pyi_out=runtime mqan_runtime/onnx_graph.proto
	$(BIN)/python -m mqan_serving.rest.openapi > protos/openapi.json

bench: $(VENV)/.dev  ## Measure the engine against the core, many requests at once, and the server against it
	missed=0; for benchmark in roofline.py batching.py served.py "served.py --ray"; do \
	  $(BIN)/python benchmarks/$$benchmark || missed=1; \
	done; exit $$missed

evaluate: $(VENV)/.dev  ## Score BUNDLE on the validation sets in DATA
	$(BIN)/mqan evaluate --bundle $(BUNDLE) --data $(DATA) $(ARGS)

train: $(VENV)/.dev  ## Train RECIPE on the datasets in DATA
	$(BIN)/mqan train $(RECIPE) --data $(DATA) $(ARGS)

release: lint types test  ## Check everything, build wheels and source distributions into dist/, tag the version
	.ci/release $(BIN)/python

clean:  ## Remove the environment and all caches
	rm -rf $(VENV) build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "mqan needs Python 3.11 or newer: make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.serve-cpu: pyproject.toml constraints.txt | $(BIN)/python
	$(SAY) 'what a server needs (FastAPI, gRPC, onnxruntime), 0.15 GB, about a minute'
	$(INSTALL) --no-compile --editable '.[cpu]'
	@$(BIN)/python -m pip uninstall --quiet --yes setuptools
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -c 'import mqan_cli.main, mqan_runtime.engine, mqan_serving.local'  # compiles what a server needs
	@# takes away what nothing here uses: onnxruntime's library for C, numpy's tests and what builds on it in other
	@# languages, of pip what is compiled and for Windows, debug information
	@find $(VENV)/lib -type f \( -name 'libonnxruntime.so.*' -o -path '*/numpy/*tests/*' -o -path '*/numpy/f2py/*' \
	  -o -path '*/numpy/distutils/*' -o -path '*/pip/*.pyc' -o -path '*/pip/*.exe' \) -delete
	@find $(VENV)/lib \( -path '*/uvloop/*.so' -o -path '*/httptools/*.so' \) -exec strip --strip-debug {} + 2>/dev/null || true
	@touch $@

$(VENV)/.serve-gpu: pyproject.toml constraints.txt constraints-gpu.txt | $(BIN)/python
	$(SAY) 'what a server on a GPU needs: that of one on a CPU, and the libraries of CUDA, several GB'
	$(INSTALL) --constraint constraints-gpu.txt --editable '.[gpu]'
	@touch $@

$(VENV)/.docs: pyproject.toml constraints.txt | $(BIN)/python
	$(SAY) 'what building the documentation needs (MkDocs, and mqan without Ray and torch), 0.4 GB, half a minute'
	$(INSTALL) --editable '.[docs]'
	@touch $@

$(VENV)/.interop: tests/interop/requirements.txt tests/interop/package-lock.json | $(BIN)/python
	$(SAY) 'clients and frameworks of others, 0.5 GB, a minute or two'
	$(BIN)/python -m venv --clear --without-pip $(VENV)/interop
	$(BIN)/python -m pip --python $(VENV)/interop/bin/python install --disable-pip-version-check --no-deps --no-compile \
		--requirement tests/interop/requirements.txt
	npm ci --prefix tests/interop --no-audit --no-fund || echo 'tests of clients of Node are skipped: see above'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt Makefile | $(BIN)/python
	$(SAY) 'what a server, training (torch) and the tests need, 2.5 GB (more where pip takes torch with CUDA), about 4 minutes'
	$(INSTALL) --editable '.[serve,cpu,batch,mcp,training,embed,dev,docs]'
	@touch $@ $(VENV)/.serve-cpu $(VENV)/.docs
