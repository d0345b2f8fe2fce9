# `make report` and `make test` are all anyone needs to type on a fresh machine; each makes .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: report lab test test-kernel bench lint lock clean

report: $(STAMP)
	$(BIN)/kitlib report -o reports

lab: $(STAMP)
	$(BIN)/kitlib lab

test: $(STAMP)
	$(BIN)/python -m pytest -n auto --dist loadfile

# Exactness on a DWARF vmlinux: fetches about 300 MB from Debian, so it is no part of `make test`.
test-kernel: $(STAMP)
	sh tests/kernel/fetch.sh build/kernel
	KITLIB_VMLINUX=build/kernel $(BIN)/python -m pytest tests/kernel

# Speed figures. The look-ups in a DWARF kernel and the score of the cost model need arguments and a quiet machine:
# see the heads of benchmarks/bench_dwarf_lookup.py and benchmarks/bench_score.py.
bench: $(STAMP)
	for name in btf diff_scan explore randstruct reports; do $(BIN)/python benchmarks/bench_$$name.py || exit 1; done

lint: $(STAMP)
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy kitlib

$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "kitlib needs Python 3.11 or newer; try make PYTHON=python3.12")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

# New versions: install from pyproject.toml into a clean environment and write down what came.
lock:
	rm -rf build/lock && $(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet setuptools '.[test]'
	build/lock/bin/python -m pip freeze --exclude kitlib --all | grep -v '^pip==' > requirements.lock

clean:
	rm -rf $(VENV) build reports
