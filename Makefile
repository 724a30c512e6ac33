# Thin: what a target needs is set up by scripts/setup, once, into .venv.
.PHONY: demo test soak check lint benchmarks lock clean

demo: .venv/ready
	.venv/bin/freshline demo --into out/demo

# A worker a core, each with a Spark of its own; one that is done takes over from the other.
workers = --numprocesses 2 --dist worksteal

# Byte code is kept, whatever the environment says: many tests start a Python of their own.
export PYTHONDONTWRITEBYTECODE :=

# Every promise is checked here; what takes long by its nature is left to `make soak`.
test: .venv/ready lint
	.venv/bin/pytest $(workers) -m "not soak"

# Kills, clusters, live experiments and long histories; and all cases of the tests that try a share of
# theirs in `make test` (`sampled`).
soak: .venv/ready
	.venv/bin/pytest $(workers) -m "soak or sampled" --hypothesis-profile soak

# Everything that needs no Spark.
check: .venv/ready lint
	.venv/bin/pytest $(workers) -m "not spark and not soak"

lint: .venv/ready
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

benchmarks: .venv/ready
	scripts/benchmarks

lock: .venv/ready
	scripts/lock

clean:
	rm -rf .venv out .mypy_cache .ruff_cache .pytest_cache .hypothesis

.venv/ready: pyproject.toml requirements/dev.txt scripts/setup
	scripts/setup
