# make demo          a private fit of a made-up clinic beside ordinary least squares
# make test          format, lints, and every test
# make python        the Python package in a virtual environment, and its tests (part of make test)
# make wheel         the release wheel of the Python package, at most 8 MB
# make size          the same, and the release command, at most 20 MB
# make fuzz SECONDS=60  every fuzz target for so many seconds, from a new seed
# make deny          licences, advisories and sources of all dependencies; needs cargo-deny
# make bench         the speed targets (make bench ONLY=regression for one group)
# make bench-python  the Python package beside scikit-learn and diffprivlib: times, memory, import
# make versus-diffprivlib  R2 and accuracy beside diffprivlib's on real tables; DATA=folder
# make accuracy      regression and classification on real tables beside least squares, boosting and the best rivals; DATA=folder
# make versus-ebm    R2 and log loss beside DP-EBM's on real tables; DATA=folder
# make properties    all properties that the defaults must have, on synthetic tables; minutes
# make lab           quietly-lab, which reproduces the experiments of the papers (docs/reproduce.md)
# make cluster       quietly-cluster, for tables that outgrow one machine: the first build takes long
# make test-cluster  clusters on this machine, whose parts are killed, beside one machine; the first build takes long
# make test-spark    the Python package beside Spark, which needs Java 17 and is large
# make bench-cluster what a cluster of two executors carries beside one machine
# make clean         remove what was built
.PHONY: deny wheel size fuzz lab cluster test-cluster test-spark bench-cluster demo test python python-older bench bench-python bench-wheel versus-diffprivlib bench-diffprivlib bench-torch bench-memory accuracy versus-ebm properties clean

CARGO ?= cargo
TARGET = $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)

demo:
	@$(CARGO) build --quiet --release -p quietly-cli
	@PATH="$(abspath $(TARGET))/release:$$PATH"; \
	mkdir -p $(TARGET)/demo && cd $(TARGET)/demo && rm -f days.quietly plain.quietly && \
	run() { printf '$$ %s\n' "$$*"; "$$@" || exit 1; echo; }; \
	run quietly example; \
	run quietly fit linear clinic.csv --target days --schema clinic.schema.toml --epsilon 1 --output days.quietly; \
	run quietly certificate days.quietly; \
	run quietly fit linear clinic.csv --target days --schema clinic.schema.toml --epsilon inf --output plain.quietly; \
	r2() { quietly evaluate $$1 clinic-test.csv --json | sed -n 's/.*"r2": *\([0-9.]*\).*/\1/p'; }; \
	echo "R2 on 5000 other patients: $$(r2 days.quietly) with epsilon 1, $$(r2 plain.quietly) for ordinary least squares"; \
	echo; \
	echo "what to try next, in $(TARGET)/demo with $(TARGET)/release on the PATH:"; \
	echo "  quietly plan linear clinic.schema.toml --target days --epsilon 0.1"; \
	echo "  quietly predict days.quietly clinic-test.csv --output predictions.csv"; \
	echo "  quietly evaluate days.quietly clinic-test.csv --epsilon 0.5"

test:
	@echo "format"
	@$(CARGO) fmt --all --check
	@echo "lints"
	@$(CARGO) clippy --quiet --workspace --all-targets -- -D warnings
	@echo "tests"
	@$(CARGO) test --quiet --workspace
	@echo "python"
	@$(MAKE) --no-print-directory python
	@echo "all good"

# The dev profile, which the tests have built already; the tests compare with the command line. The whole workspace is named, as one package
# alone has other features, and its dependencies would be built again.
python:
	@test -x .venv/bin/python || python3 -m venv .venv
	@.venv/bin/pip install --quiet --disable-pip-version-check maturin numpy scikit-learn pandas polars pyarrow matplotlib pytest mypy
	@$(CARGO) build --quiet --workspace --bin quietly
	@VIRTUAL_ENV=$(abspath .venv) .venv/bin/maturin develop --quiet --profile dev
	@.venv/bin/python -m pytest --quiet
	@$(MAKE) --no-print-directory python-older

# The wheel of the same package, and the tests that meet scikit-learn, beside the release two minors before the newest.
python-older:
	@test -x .venv-older/bin/python || python3 -m venv .venv-older
	@older=$$(.venv/bin/python -c "import sklearn; a, b = sklearn.__version__.split('.')[:2]; print(f'{a}.{int(b) - 2}.*')"); \
	echo "scikit-learn $$older"; \
	.venv-older/bin/pip install --quiet --disable-pip-version-check "scikit-learn==$$older" numpy pandas polars pyarrow matplotlib pytest
	@VIRTUAL_ENV=$(abspath .venv) .venv/bin/maturin build --quiet --profile dev --out $(TARGET)/wheels-dev
	@.venv-older/bin/pip install --quiet --disable-pip-version-check --force-reinstall --no-deps $(TARGET)/wheels-dev/quietly-*.whl
	@.venv-older/bin/python -m pytest --quiet $(addprefix python/tests/test_,sklearn.py manners.py docs.py)

# Prints a file's size in MB, and fails if it is larger: $(call at_most,FILE,MB)
at_most = @cat $(1) | wc -c | awk '{ printf "%s: %.1f MB of at most $(2)\n", "$(notdir $(1))", $$1 / 1e6; exit $$1 > $(2) * 1e6 }'

wheel:
	@test -x .venv/bin/python || python3 -m venv .venv
	@.venv/bin/pip install --quiet --disable-pip-version-check maturin
	@rm -f $(TARGET)/wheels/quietly-*.whl
	@.venv/bin/maturin build --quiet --release --out $(TARGET)/wheels
	$(call at_most,$(TARGET)/wheels/quietly-*.whl,8)

size: wheel
	@$(CARGO) build --quiet --release -p quietly-cli
	$(call at_most,$(TARGET)/release/quietly,20)

lab:
	@$(CARGO) build --quiet --release -p quietly-lab
	@echo "$(TARGET)/release/quietly-lab"

# Mutated inputs for so many seconds per target; `make test` runs the same targets for a fixed number of inputs. 
SECONDS ?= 60
fuzz:
	@QUIETLY_FUZZ_SECONDS=$(SECONDS) $(CARGO) test --quiet --no-fail-fast -p quietly-fuzz -- --nocapture --test-threads=2

# Licences, security advisories, banned crates and registries, for both workspaces (deny.toml).
deny:
	@command -v cargo-deny > /dev/null || { echo "install it first: cargo install --locked cargo-deny"; exit 1; }
	@$(CARGO) deny --config deny.toml check
	@$(CARGO) deny --config deny.toml --manifest-path cluster/Cargo.toml check

# The speed targets of the Python package, as ratios of one run: a release wheel, scikit-learn and diffprivlib side by side.
bench-python: bench-wheel
	@bench/.venv-python/bin/python bench/python.py --rival bench/.venv-diffprivlib/bin/python $(if $(JSON),--json)

# Our regressions beside diffprivlib's, the same splits, epsilons and bounds: make versus-diffprivlib DATA=folder
versus-diffprivlib: bench-wheel
	@test -n "$(DATA)" || { echo "make versus-diffprivlib DATA=folder (with a9a, ijcnn1, california-housing, ...)"; exit 1; }
	@bench/.venv-python/bin/python bench/versus_diffprivlib.py --data $(DATA) --rival bench/.venv-diffprivlib/bin/python $(if $(JSON),--json)

bench-wheel:
	@for place in python diffprivlib; do test -x bench/.venv-$$place/bin/python || python3 -m venv bench/.venv-$$place; done
	@bench/.venv-python/bin/pip install --quiet --disable-pip-version-check maturin numpy scikit-learn
	@bench/.venv-diffprivlib/bin/pip install --quiet --disable-pip-version-check diffprivlib==0.6.6 "scikit-learn<1.6"
	@bench/.venv-python/bin/maturin build --quiet --release --out $(TARGET)/wheels
	@bench/.venv-python/bin/pip install --quiet --disable-pip-version-check --force-reinstall --no-deps $(TARGET)/wheels/quietly-*.whl

# The other libraries go into a virtual environment and a cargo feature of their own: the first run takes minutes.
bench:
	@test -x bench/.venv/bin/python || python3 -m venv bench/.venv
	@bench/.venv/bin/pip install --quiet --disable-pip-version-check -r bench/requirements.txt
	@$(CARGO) build --quiet --release -p quietly-bench $(if $(filter regression convex kan,$(ONLY)),,--features rivals)
	@mkdir -p $(TARGET)
	@bench/.venv/bin/python bench/rivals.py $(TARGET) $(ONLY) > $(TARGET)/rivals.jsonl
	@$(if $(filter-out convex,$(ONLY)),,$(MAKE) --no-print-directory bench-diffprivlib)
	@test ! -f $(TARGET)/torch.jsonl || cat $(TARGET)/torch.jsonl >> $(TARGET)/rivals.jsonl
	@$(TARGET)/release/quietly-bench --rivals $(TARGET)/rivals.jsonl $(ONLY)

# diffprivlib does not start beside newer releases of scikit-learn: it has a place of its own.
bench-diffprivlib:
	@test -x bench/.venv-diffprivlib/bin/python || python3 -m venv bench/.venv-diffprivlib
	@bench/.venv-diffprivlib/bin/pip install --quiet --disable-pip-version-check diffprivlib==0.6.6 "scikit-learn<1.6"
	@bench/.venv-diffprivlib/bin/python bench/rivals.py $(TARGET) diffprivlib >> $(TARGET)/rivals.jsonl

# Torch is large, and only this needs it: `make bench-torch`, then `make bench ONLY=kan` shows the ratios.
bench-torch:
	@test -x bench/.venv-torch/bin/python || python3 -m venv bench/.venv-torch
	@bench/.venv-torch/bin/pip install --quiet --disable-pip-version-check torch numpy \
		|| echo "torch is left out: it cannot be installed here"
	@mkdir -p $(TARGET)
	@bench/.venv-torch/bin/python bench/torch_kan.py > $(TARGET)/torch.jsonl || echo "torch is left out: it does not run here"

# Writes a table of more than 5 GB into the folder for temporary files, and removes it afterwards.
bench-memory:
	@$(CARGO) build --quiet --release -p quietly-cli -p quietly-bench
	@$(TARGET)/release/quietly-bench memory

# Least squares is scikit-learn's; the tables are those of DATA, of which there may be some only.
accuracy:
	@test -n "$(DATA)" || { echo "make accuracy DATA=folder (with a9a, ijcnn1, california-housing, ...)"; exit 1; }
	@test -x bench/.venv/bin/python || python3 -m venv bench/.venv
	@bench/.venv/bin/pip install --quiet --disable-pip-version-check -r bench/requirements.txt
	@$(CARGO) build --quiet --release -p quietly-cli
	@bench/.venv/bin/python bench/accuracy.py --quietly $(TARGET)/release/quietly --data $(DATA) --raw
	@bench/.venv/bin/python bench/accuracy.py --quietly $(TARGET)/release/quietly --data $(DATA)
	@bench/.venv/bin/python bench/classification.py --quietly $(TARGET)/release/quietly --data $(DATA)

# DP-EBM wants numpy and scikit-learn of its own choice: interpret-core has a place of its own.
versus-ebm:
	@test -n "$(DATA)" || { echo "make versus-ebm DATA=folder (with california-housing, gas-turbine, ...)"; exit 1; }
	@for place in .venv .venv-ebm; do test -x bench/$$place/bin/python || python3 -m venv bench/$$place; done
	@bench/.venv/bin/pip install --quiet --disable-pip-version-check -r bench/requirements.txt
	@bench/.venv-ebm/bin/pip install --quiet --disable-pip-version-check interpret-core
	@$(CARGO) build --quiet --release -p quietly-cli
	@bench/.venv/bin/python bench/versus_ebm.py --quietly $(TARGET)/release/quietly --rival bench/.venv-ebm/bin/python --data $(DATA) $(if $(JSON),--json)

# Everything that docs/spec/default.md#1 promises, line by line; `make test` has a fast selection. The dev profile, which the tests have built already.
properties:
	@QUIETLY_PROPERTIES=all $(CARGO) test --quiet --no-fail-fast -p quietly --test properties -- --nocapture --test-threads=2
	@QUIETLY_PROPERTIES=all $(CARGO) test --quiet -p quietly --lib default_regression

# A workspace of its own: the engine is no part of the default build. Its dev profile is what is tested and measured: there, what touches rows
# is built to be fast; the rest of the engine moves a few bytes a step, and would take far longer to build than it can save.
cluster:
	@cd cluster && $(CARGO) build --quiet
	@$(CARGO) build --quiet --release -p quietly-cli
	@echo "cluster/target/debug/quietly-cluster and $(TARGET)/release/quietly"

# The dev profile builds the engine quickly, and what touches rows to be fast.
test-cluster:
	@$(CARGO) build --quiet --workspace --bin quietly
	@cd cluster && $(CARGO) fmt --check && $(CARGO) clippy --quiet --all-targets -- -D warnings
	@cd cluster && QUIETLY=$(abspath $(TARGET))/debug/quietly $(CARGO) test --quiet -- --test-threads=1

# Spark, in a virtual environment of its own: it needs Java, and a release of pandas before 3.
test-spark:
	@command -v java > /dev/null || { echo "Spark needs Java 17: install it (openjdk-17-jre-headless), or leave this out"; exit 1; }
	@for place in .venv .venv-spark; do test -x $$place/bin/python || python3 -m venv $$place; done
	@.venv/bin/pip install --quiet --disable-pip-version-check maturin
	@.venv-spark/bin/pip install --quiet --disable-pip-version-check "pyspark>=4,<5" "pandas<3" pyarrow numpy scikit-learn pytest
	@$(CARGO) build --quiet --workspace --bin quietly
	@VIRTUAL_ENV=$(abspath .venv) .venv/bin/maturin build --quiet --profile dev --out $(TARGET)/wheels-dev
	@.venv-spark/bin/pip install --quiet --disable-pip-version-check --force-reinstall --no-deps $(TARGET)/wheels-dev/quietly-*.whl
	@.venv-spark/bin/python -m pytest --quiet python/tests/test_spark.py

# 50 million rows, as ten copies of 5 million: 8 GB in the folder for temporary files.
bench-cluster:
	@cd cluster && $(CARGO) build --quiet
	@bash bench/cluster.sh cluster/target/debug/quietly-cluster

clean:
	@$(CARGO) clean
