# make figures   every figure of the notebooks       make test    tests, about six minutes
# make lab       JupyterLab at notebook 00           make site    lessons, docs, live losses
# make test-all  those and the slow ones             make check-evidence  published rows and figures
# make bench     speed ratios                        make soak    kill -9 ten times, same weights
# make clean-venv  forget the environment
#
# Every target makes .venv by itself. Variables:
#   DATASET=flickr8k DATA=path   real data (default: scenes, generated)
#   PROFILE=smoke|quick|full     how much to train (default: quick on scenes, full on real data)
#   PUBLISH=1                    draw into figures/, what git keeps (default: figures/scenes, my/)
#   FRESH=1                      train what is published, too (default: take published runs)
#   WORKERS=1                    notebooks at once     ONLY="03_topk 12_claims"   just these
#   DEVICE=cpu|cuda|cuda:1       where to train (default: a CUDA card where there is one)
#   TORCH_INDEX=url              where torch comes from (default: the package index)
#   PYTHON=python3.12            what the environment is made with (3.11 or newer)

PYTHON ?= python3
VENV ?= .venv
DATASET ?= scenes
DATA ?=
PROFILE ?= $(if $(filter scenes,$(DATASET)),quick,full)
PUBLISH ?=
FRESH ?=
WORKERS ?=
DEVICE ?=
ONLY ?=
TORCH_INDEX ?=

BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
TORCH := $(shell grep '^torch==' requirements.lock)
OLDEST := $(shell sed -n 's/^requires-python = ">=\([0-9.]*\)"$$/\1/p' pyproject.toml)
TESTS ?= tests

.PHONY: help figures test test-all check-evidence lab site bench soak venv clean-venv
help:
	@sed -n 's/^# \{0,1\}//p' Makefile | head -15

$(STAMP): requirements.lock pyproject.toml
	@"$(PYTHON)" -c 'import sys; \
	  sys.exit(sys.version_info < tuple(map(int, "$(OLDEST)".split("."))))' || { \
	  echo "itr_study needs Python $(OLDEST) or newer, found: $$("$(PYTHON)" --version 2>&1)." \
	       "Name one: make PYTHON=python3.12 ..."; exit 1; }
	@"$(PYTHON)" -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "$(PYTHON) has no venv module. On Debian or Ubuntu: apt install python3-venv;" \
	       "with conda: conda env create -f environment.yml"; exit 1; }
	@echo "Making $(VENV): about two minutes, once"
	@begin=$$(date +%s); stage() { echo "  $$(($$(date +%s) - begin)) s: $$*"; }; set -e; \
	stage "environment"; test -x $(BIN)/python || "$(PYTHON)" -m venv $(VENV); \
	stage "torch, the largest download"; \
	$(PIP) install $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) $(TORCH); \
	stage "the other packages"; $(PIP) install -r requirements.lock; \
	stage "itr_study"; $(PIP) install --no-deps --no-build-isolation -e .; \
	stage "installed"
	@touch $@

venv: $(STAMP)

figures: $(STAMP)
	$(BIN)/itr-study reproduce $(ONLY) --dataset $(DATASET) --profile $(PROFILE) \
	  $(if $(WORKERS),--workers $(WORKERS)) $(if $(DEVICE),--device $(DEVICE)) \
	  $(if $(DATA),--data "$(DATA)") $(if $(PUBLISH),--publish) $(if $(FRESH),--fresh) --yes

test: $(STAMP)
	$(BIN)/itr-study test $(TESTS)

test-all: $(STAMP)
	$(BIN)/itr-study test --tier all $(TESTS)

check-evidence: $(STAMP)
	$(BIN)/itr-study test --tier evidence $(TESTS)

lab: $(STAMP)
	$(BIN)/itr-study lab

site: $(STAMP)
	$(PIP) install -r tools/site/requirements.lock
	$(BIN)/itr-study site --dataset $(DATASET)

bench: $(STAMP)
	@for file in $(filter-out benchmarks/soak.py benchmarks/large.py,$(wildcard benchmarks/[a-z]*.py)); do echo "== $$file"; $(BIN)/python $$file || exit 1; done

soak: $(STAMP)
	$(BIN)/python benchmarks/soak.py

clean-venv:
	rm -rf $(VENV)
