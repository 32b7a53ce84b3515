.PHONY: install demo test check studio bench results fuzz chaos scale clean
PY := .venv/bin/python
STAMP := .venv/.installed
OBJECTIVE := Compare these five vendors over their last two releases and recommend how to enter the market

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(PY) || python3 -m venv .venv
	$(PY) -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[tables,docs,web,mcp,postgres,studio,dev]'
	touch $(STAMP)

# Exit code 3 (an answer, with open gaps) is the right end: one vendor's price is missing on purpose.
demo: $(STAMP)
	@.venv/bin/planweave run "$(OBJECTIVE)" --docs examples/competitors; code=$$?; \
	  if [ $$code -eq 3 ]; then echo "demo: ended as it should, with the missing price named as an open gap"; \
	  else echo "demo: exit code $$code, 3 was expected"; exit 1; fi

test: $(STAMP)
	$(PY) -m pytest -n auto --dist loadfile

check: $(STAMP)
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/pyright
	.venv/bin/lint-imports

studio: $(STAMP)
	.venv/bin/langgraph dev

bench: $(STAMP)
	$(PY) benchmarks/report.py
	$(PY) benchmarks/prompt_cost.py
	$(PY) benchmarks/streamed_planning.py
	$(PY) benchmarks/honesty.py

# The same figures of time and room, kept in benchmarks/RESULTS.md.
results: $(STAMP)
	$(PY) benchmarks/report.py --write

# Thousands of seeded runs against a model that answers in every wrong shape.
fuzz: $(STAMP)
	$(PY) -m tests.hostile --runs 5000 --seed 0

# Runs of a real process, killed up to three times each, on SQLite and on Postgres, until 300 kills have hit.
chaos: $(STAMP)
	$(PY) -m tests.kill --kills 300

# Two Agent Servers on Postgres and a queue; needs Python 3.12 or newer.
scale: $(STAMP)
	PLANWEAVE_AGENT_SERVER_TESTS=1 $(PY) -m pytest tests/agent_server

clean:
	rm -rf .venv .planweave build *.egg-info
