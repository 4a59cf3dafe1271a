# Every target sets up what it needs, with Python and make alone; what is there already is not made again.

PYTHON ?= python3
WORKERS ?= 2

export PIP_CACHE_DIR ?= $(CURDIR)/.cache/pip
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1

BIN := .venv/bin
FIELD := .cache/field-venv
BENCH := .cache/bench-venv
PACKAGE := .venv/package.stamp
TOOLS := .venv/tools.stamp
CATALOGUE := src/driftgate/messages/locale/zh_CN/LC_MESSAGES/driftgate

SCHEMAS := bundle comparison config gate history results samples

.PHONY: all demo test lint types floors schemas schema-check packaging github localisation diagnosis diagnosis-report chains bundles page board field act bench review dist clean
all: test lint types floors schema-check packaging github localisation diagnosis chains bundles page board field act

demo: $(PACKAGE)
	$(BIN)/driftgate demo --out demo-out

test: $(TOOLS) $(CATALOGUE).mo
	$(BIN)/python -m pytest -n $(WORKERS) tests/unit

lint: $(TOOLS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(TOOLS)
	$(BIN)/mypy

floors: $(TOOLS)
	$(BIN)/python -m pytest tests/floors

schemas: $(PACKAGE)
	mkdir -p schemas
	set -e; for name in $(SCHEMAS); do $(BIN)/driftgate schema $$name > schemas/$$name.schema.json; done

schema-check: $(PACKAGE)
	@for name in $(SCHEMAS); do \
		$(BIN)/driftgate schema $$name | diff schemas/$$name.schema.json - \
		|| { echo "schemas/$$name.schema.json is not what driftgate schema $$name says; run make schemas"; exit 1; }; \
	done

packaging: $(TOOLS)
	$(BIN)/python -m pytest tests/packaging

act: .venv/act.stamp
	$(BIN)/python -m pytest -n $(WORKERS) tests/act

bench: $(TOOLS) .venv/page.stamp $(BENCH)/bench.stamp
	$(BIN)/python bench/action_overhead.py
	PYTHONPATH=tests $(BENCH)/bin/python bench/localisation.py
	$(BIN)/python bench/many_legs.py
	$(BIN)/python bench/history.py
	$(BIN)/python bench/board.py
	PYTHONPATH=tests $(BIN)/python bench/page.py

# Reports to look at, in light, dark, Chinese, on paper and on a phone: .cache/review/pictures.
review: $(FIELD)/field.stamp .venv/page.stamp
	PYTHONPATH=tests $(FIELD)/bin/python tools/review.py .cache/review/reports
	set -e; for report in .cache/review/reports/*/index.html; do \
		folder=$$(dirname $$report); \
		$(BIN)/python tools/screenshots.py $$folder .cache/review/pictures/$$(basename $$folder); \
	done

dist: .venv/dist.stamp
	rm -rf dist
	$(BIN)/python -m build --outdir dist

github: .venv/github.stamp
	$(BIN)/python -m pytest tests/github

localisation: $(FIELD)/field.stamp
	$(FIELD)/bin/python -m pytest -n $(WORKERS) tests/localisation

diagnosis: $(TOOLS)
	WORKERS=$(WORKERS) $(BIN)/python -m pytest tests/diagnosis

diagnosis-report: $(TOOLS)
	PYTHONPATH=tests $(BIN)/python tests/diagnosis/report.py --jobs $(WORKERS)

chains: $(TOOLS)
	$(BIN)/python -m pytest -n $(WORKERS) tests/chains

bundles: $(TOOLS)
	$(BIN)/python -m pytest -n $(WORKERS) tests/bundles

page: .venv/page.stamp $(CATALOGUE).mo
	$(BIN)/python -m pytest -n $(WORKERS) tests/page

board: $(TOOLS)
	$(BIN)/python -m pytest -n $(WORKERS) tests/board

field: $(FIELD)/field.stamp
	$(FIELD)/bin/python -m pytest -n $(WORKERS) tests/field

clean:
	rm -rf .venv .cache dist demo-out driftgate-out

$(PACKAGE): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("driftgate needs Python 3.10 or newer, this is %s; say make PYTHON=/path/to/python3.10" % sys.version.split()[0] if sys.version_info < (3, 10) else 0)'
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(TOOLS): $(PACKAGE)
	$(BIN)/python -m pip install --quiet --editable '.[test,lint]'
	touch $@

# The build makes it, too; this is for a catalogue that was changed since.
$(CATALOGUE).mo: $(CATALOGUE).po | $(TOOLS)
	$(BIN)/python tools/catalogue.py --compile

.venv/act.stamp: tests/act/requirements.txt $(TOOLS)
	$(BIN)/python -m pip install --quiet --requirement tests/act/requirements.txt
	touch $@

.venv/github.stamp: tests/github/requirements.txt $(TOOLS)
	$(BIN)/python -m pip install --quiet --requirement tests/github/requirements.txt
	touch $@

.venv/page.stamp: tests/page/requirements.txt $(TOOLS)
	$(BIN)/python -m pip install --quiet --requirement tests/page/requirements.txt
	touch $@

.venv/dist.stamp: $(PACKAGE)
	$(BIN)/python -m pip install --quiet 'build==1.*'
	touch $@

$(BENCH)/bench.stamp: pyproject.toml bench/requirements.txt
	$(PYTHON) -m venv --clear $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --editable . --requirement bench/requirements.txt
	touch $@

$(FIELD)/field.stamp: pyproject.toml tests/field/requirements.txt
	$(PYTHON) -m venv --clear $(FIELD)
	$(FIELD)/bin/python -m pip install --quiet --editable '.[test]' --requirement tests/field/requirements.txt
	touch $@
