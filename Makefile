# make demo    a calibration, and four sampling schemes at equal noise
# make test    format, lints, and every test
# make bench   the speed targets
# make clean   remove what was built
.PHONY: demo test bench clean

CARGO ?= cargo
TARGET = $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)

demo:
	@$(CARGO) build --quiet --release -p quietly-cli
	@PATH="$(abspath $(TARGET))/release:$$PATH"; \
	run() { printf '$$ %s\n' "$$*"; "$$@" || exit 1; echo; }; \
	budget="--rate 0.01 --steps 1000 --epsilon 1 --delta 1e-5"; \
	run quietly calibrate poisson $$budget; \
	noise=$$(quietly calibrate poisson $$budget --json | sed -n 's/.*"noise_multiplier": *\([0-9.]*\).*/\1/p'); \
	run quietly account compare --noise $$noise --steps 1000 --rate 0.01 --delta 1e-5

test:
	@echo "format"
	@$(CARGO) fmt --all --check
	@echo "lints"
	@$(CARGO) clippy --quiet --workspace --all-targets -- -D warnings
	@echo "tests"
	@$(CARGO) test --quiet --workspace
	@echo "all good"

# The other libraries go into a virtual environment and a cargo feature of their own: the first run takes minutes.
bench:
	@test -x bench/.venv/bin/python || python3 -m venv bench/.venv
	@bench/.venv/bin/pip install --quiet --disable-pip-version-check -r bench/requirements.txt
	@$(CARGO) build --quiet --release -p quietly-bench --features rivals
	@mkdir -p $(TARGET)
	@bench/.venv/bin/python bench/rivals.py > $(TARGET)/rivals.jsonl
	@$(CARGO) run --quiet --release -p quietly-bench --features rivals -- $(TARGET)/rivals.jsonl

clean:
	@$(CARGO) clean
