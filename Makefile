# The same targets serve people and CI.

GO      ?= go
BIN     := bin/onbeat

# Programs are built the same way everywhere, and as releases are: nothing is compiled twice, and none needs a C compiler.
PLAIN := CGO_ENABLED=0 GOFLAGS="-trimpath $(shell $(GO) env GOFLAGS)"

# The version in the program: a tag if there is one, else the commit.
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)

# golangci-lint is run at this version wherever it is not installed.
LINT_VERSION := v2.15.0

# govulncheck, which looks for known vulnerabilities, is run at this version.
VULN_VERSION := v1.8.0

# The race detector needs a C compiler: cgo asks for gcc, unless CC names another. The detector looks into every package. Without one
# of them (-gcflags=PACKAGE=-race=false) it reports false races, because the linker takes one copy of a generic function for all.
CC_FOUND := $(shell command -v $$($(GO) env CC | cut -d' ' -f1) 2>/dev/null)
RACE     := $(if $(CC_FOUND),-race,)

# A program with the race detector sleeps for a second before it ends, and the tests start hundreds.
TESTENV  := $(if $(CC_FOUND),CGO_ENABLED=1 GORACE="atexit_sleep_ms=0 $(GORACE)",)

# Two packages at a time: each may have a Redis and a few processes of its own. Tests wait for servers and for leases more than they
# compute, so six of a package run at a time.
PARALLEL ?= 2
ATONCE   := -parallel 6
FUZZTIME ?= 20s

# `make test` notes here which Redis each package ran on, and the findings of new seeds of the simulation. A plan that nobody has seen
# may show an old fault, so a finding is news and not a failure, unless a task ran that should not have.
REPORT := $(CURDIR)/bin/test-redis.txt
NEWS   := $(CURDIR)/bin/test-seeds.txt

# `make soak` gathers its rows in this file.
SOAK := $(CURDIR)/bin/soak.md

# The packages that a promise is made of.
CORE := task schedule internal/queue instance producer consumer handlers lock

.DEFAULT_GOAL := help

.PHONY: help
help: ## Say what can be made.
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/onbeat.
	$(PLAIN) $(GO) build -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/onbeat

# The image holds what was built here, so no registry is asked for anything.
IMAGE ?= onbeat
PLATFORM := linux/$(shell $(GO) env GOARCH)

.PHONY: image
image: ## Build the container image onbeat on the local engine.
	@rm -rf bin/image && mkdir -p bin/image/$(PLATFORM) && cp deploy/Dockerfile LICENSE THIRD_PARTY_LICENSES bin/image/
	$(PLAIN) GOOS=linux $(GO) build -ldflags '$(LDFLAGS)' -o bin/image/$(PLATFORM)/onbeat ./cmd/onbeat
	docker build --tag $(IMAGE) --build-arg TARGETPLATFORM=$(PLATFORM) --build-arg VERSION=$(VERSION) --build-arg REVISION=$$(git rev-parse HEAD 2>/dev/null) \
		--build-arg CREATED=$$(git log -1 --format=%cI 2>/dev/null) bin/image

# On a fresh machine people wait for the compiler, and a show needs neither inlined calls nor data for a debugger: without them the
# compiler takes 0.6 times as long. (If you have built the program before, the first demo takes longer: it needs objects of its own.)
.PHONY: demo
demo: ## Show a rollout that loses no beat.
	@$(PLAIN) $(GO) build -tags demo -gcflags 'all=-l -dwarf=0' -ldflags '$(LDFLAGS)' -o $(BIN)-demo ./cmd/onbeat
	@./$(BIN)-demo demo

# Tests that look at onbeat from outside are a module of its own: a program that imports onbeat has nothing to do with
# toxiproxy, chromedp, the peers of the bench and other evaluators of cron expressions.
OUTSIDE := cd integration &&

# How often each property is tried with new values. A soak leaves it at the 100 of rapid.
CHECKS ?= 25

# Every test runs anew. go test vets each package as it builds it, so nothing is compiled for go vet alone.
GOTEST := RAPID_CHECKS=$(CHECKS) $(GO) test -count=1 -vet=all -timeout 20m

# The compiler and the race detector spend a fifth of their time on garbage. With this they take more memory, and an eighth of the time less.
test: export GOGC = 400

# Processes that are killed and frozen come first, with nothing beside them: one that has to wait too long for a core loses its lease. Then
# two rows of parts run side by side.
.PHONY: test
test: ## Run the tests, with the race detector (12 minutes on 2 cores).
	@$(if $(CC_FOUND),:,echo "no C compiler: running without -race")
	@mkdir -p $(dir $(REPORT)) && rm -f $(REPORT) $(NEWS)
	@code=0; export ONBEAT_SIMULATE_REPORT="$${ONBEAT_SIMULATE_REPORT:-$(NEWS)}"; ONBEAT_TEST_REPORT=$(REPORT) $(MAKE) --no-print-directory test-processes || code=1; \
		ONBEAT_TEST_REPORT=$(REPORT) $(MAKE) --no-print-directory -k -j2 test-inside test-outside || code=1; \
		if [ -s $(REPORT) ]; then echo; echo "Which Redis each package ran on:"; sort -u $(REPORT); fi; \
		if [ -s $(NEWS) ]; then echo; echo "What new seeds of the simulation show, to be looked at and kept as plans:"; cat $(NEWS); fi; \
		exit $$code

.PHONY: test-inside
test-inside:
	@code=0; set -x; \
		($(PLAIN) $(GO) build -tags demo -o /dev/null ./cmd/onbeat) || code=1; \
		($(PLAIN) $(GOTEST) -run 'TestConfig_is' ./cmd/onbeat/internal/config) || code=1; \
		($(TESTENV) $(GOTEST) $(RACE) -p $(PARALLEL) $(ATONCE) ./...) || code=1; \
		exit $$code

# The model and the simulation have a clock of their own and little that runs at once. The race detector makes them three to
# five times slower, so it looks at them in a soak.
VIRTUAL := ./model ./simulation ./differential

.PHONY: test-processes
test-processes:
	$(OUTSIDE) $(TESTENV) $(GOTEST) $(RACE) $(ATONCE) . ./internal/...

.PHONY: test-outside
test-outside:
	@code=0; set -x; \
		($(OUTSIDE) $(PLAIN) $(GOTEST) -p 1 $(VIRTUAL)) || code=1; \
		(cd examples && $(PLAIN) $(GOTEST) -p 1 ./...) || code=1; \
		(cd examples && $(TESTENV) $(GOTEST) $(RACE) -p 1 ./testing ./typed) || code=1; \
		($(OUTSIDE) $(TESTENV) $(GOTEST) $(RACE) -p 1 ./network ./browser ./install ./bundle) || code=1; \
		exit $$code

.PHONY: test-fast
test-fast: ## Run the short tests, without containers or the race detector; cached.
	@code=0; for dir in . examples integration; do \
		(cd $$dir && set -x && ONBEAT_TEST_ON=$${ONBEAT_TEST_ON:-child} $(GO) test -short -p $(PARALLEL) ./...) || code=1; \
	done; exit $$code

# The pictures that the pages have. The others of bin/screenshots are for whoever changes the dashboard.
SHOTS := beat-rollout beat-rollout-dark beat-crash beat-narrow overview schedule dead

.PHONY: screenshots
screenshots: ## Take the pictures of the dashboard anew, with Chromium.
	@mkdir -p bin/screenshots docs/img
	$(OUTSIDE) ONBEAT_SHOTS=$(CURDIR)/bin/screenshots $(GO) test -count=1 -timeout 20m -run TestShots ./browser
	@for name in $(SHOTS); do cp bin/screenshots/$$name.png docs/img/; done

.PHONY: soak
soak: ## Run rollouts, faults and simulation in full (4 hours); writes docs/reliability.md.
	@echo "make soak takes about 4 hours: $(SIMULATE) of new seeds, then the mutants, then rollouts and faults."
	@$(MAKE) --no-print-directory soak-simulation
	@mkdir -p $(dir $(SOAK)) && rm -f $(SOAK)
	@code=0; $(TESTENV) ONBEAT_SOAK=1 $(GO) test $(RACE) -count=1 -p 1 -timeout 1h ./... || code=1; \
	($(OUTSIDE) $(TESTENV) $(GO) test $(RACE) -short -count=1 -p 1 -timeout 1h $(VIRTUAL)) || code=1; \
	($(OUTSIDE) $(TESTENV) ONBEAT_SOAK=1 ONBEAT_SOAK_TABLE=$(SOAK) $(GO) test $(RACE) -count=1 -p 1 -timeout 5h . ./network) || code=1; \
	[ -s $(SOAK) ] || exit 1; \
	awk '{ print } /^<!-- make soak/ { exit }' docs/reliability.md >bin/reliability.md && \
		{ printf '\nOf %s, commit %s, on %s cores with %s.\n\n' "$$(date -u +%F)" "$$(git rev-parse --short HEAD)" "$$(getconf _NPROCESSORS_ONLN)" \
			"$$(redis-server --version 2>/dev/null | cut -d' ' -f1-3)"; \
		head -n 2 $(SOAK); tail -n +3 $(SOAK) | LC_ALL=C sort; } >>bin/reliability.md && mv bin/reliability.md docs/reliability.md || code=1; \
	exit $$code

# The part of a soak in virtual time: how long seeds are tried, and the files that gather the figures.
SIMULATE ?= 1h
SEEDS    := $(CURDIR)/bin/simulation.md
MUTANTS  := $(CURDIR)/bin/mutants.md

.PHONY: soak-simulation
soak-simulation:
	@mkdir -p bin && rm -f $(SEEDS) $(MUTANTS)
	@code=0; ONBEAT_SIMULATE=$(SIMULATE) ONBEAT_SIMULATION_TABLE=$(SEEDS) sh -c "$(OUTSIDE) $(GO) test -short -count=1 -timeout 0 -run TestSeeds ./simulation" || code=1; \
	ONBEAT_MUTANTS=1 sh -c "$(OUTSIDE) $(GO) test -count=1 -timeout 0 ./model" || code=1; \
	ONBEAT_SOAK=1 ONBEAT_MUTANTS_TABLE=$(MUTANTS) sh -c "$(OUTSIDE) $(GO) test -count=1 -timeout 0 -run TestMutants ./simulation" || code=1; \
	[ -s $(SEEDS) ] || exit 1; \
	{ awk '{ print } /^<!-- make soak-simulation/ { exit }' docs/reliability.md; \
		printf '\nOf %s, commit %s, on %s cores.\n\n' "$$(date -u +%F)" "$$(git rev-parse --short HEAD)" "$$(getconf _NPROCESSORS_ONLN)"; \
		cat $(SEEDS) $(MUTANTS); echo; \
		awk '/^<!-- end of make soak-simulation/ { on = 1 } on { print }' docs/reliability.md; } >bin/reliability.md && mv bin/reliability.md docs/reliability.md || code=1; \
	exit $$code

# BullMQ is measured if Node and npm are there, River if PostgreSQL is.
BENCH_NODE = @if command -v npm >/dev/null 2>&1 && [ ! -d integration/bench/node/node_modules ]; then \
	cd integration/bench/node && npm install --no-package-lock --ignore-scripts --no-audit --no-fund --silent || echo "BullMQ could not be installed"; fi

.PHONY: bench
bench: ## Measure onbeat beside its peers (75 minutes), for docs/performance.md.
	$(BENCH_NODE)
	cd integration/bench && $(GO) run . $(BENCH)

.PHONY: bench-quick
bench-quick: ## The same with smaller numbers (5 minutes).
	$(BENCH_NODE)
	cd integration/bench && $(GO) run . -quick $(BENCH)

.PHONY: bench-beat
bench-beat: ## Put the same beats through the same rollouts and faults by onbeat and its peers (25 minutes).
	$(BENCH_NODE)
	cd integration/bench/beat && $(GO) run . $(BENCH)

.PHONY: bench-features
bench-features: ## What each feature costs, through the program (25 minutes).
	cd integration/bench && $(GO) run . -peers onbeat -scenarios F1,F2 -runs 5 $(BENCH)

# SIZE is how many schedules; there are ten times as many pending tasks.
SIZE ?= 100000
.PHONY: bench-size
bench-size: ## What each view and each step costs in a large namespace, by powers of ten (2 minutes; 20 for a million).
	cd integration && ONBEAT_SIZE=$(SIZE) $(GO) test -run TestSize -v -count=1 -timeout 2h .

# Servers that neither Debian nor npm has: MATRIX_SERVERS names a folder with their programs. MATRIX has flags, such as -only=Valkey.
.PHONY: matrix
matrix: ## Run tests on each server that can be had here, for docs/support.md (40 minutes).
	$(OUTSIDE) $(GO) run ./matrix $(MATRIX)

.PHONY: lint
lint: ## Check style and structure.
	@lint="$(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)"; \
	if command -v golangci-lint >/dev/null 2>&1 && golangci-lint version 2>/dev/null | grep -q 'version v\{0,1\}2\.'; then \
		lint=golangci-lint; \
	fi; \
	code=0; for dir in . examples integration; do (cd $$dir && set -x && $$lint run ./...) || code=1; done; exit $$code

.PHONY: vuln
vuln: ## Look for known vulnerabilities.
	$(GO) run golang.org/x/vuln/cmd/govulncheck@$(VULN_VERSION) ./...

.PHONY: licences
licences: ## Write THIRD_PARTY_LICENSES anew.
	@$(GO) run ./internal/licences >THIRD_PARTY_LICENSES.new && mv THIRD_PARTY_LICENSES.new THIRD_PARTY_LICENSES || { rm -f THIRD_PARTY_LICENSES.new; exit 1; }

# The tools of a release are run at these versions. SKIP leaves out what this machine lacks, such as SKIP=docker without buildx.
RELEASER := github.com/goreleaser/goreleaser/v2@v2.15.1
SYFT     := github.com/anchore/syft/cmd/syft@v1.57.1
SKIP     ?=

.PHONY: release-snapshot
release-snapshot: release-tools ## Make all of a release in dist, and publish nothing.
	PATH="$(CURDIR)/bin/tools:$$PATH" HOMEBREW_TAP_TOKEN=none goreleaser release --snapshot --clean $(if $(SKIP),--skip=$(SKIP))

.PHONY: release
release: release-tools
	PATH="$(CURDIR)/bin/tools:$$PATH" goreleaser release --clean

.PHONY: release-tools
release-tools:
	@mkdir -p bin/tools && GOBIN=$(CURDIR)/bin/tools GOOS= GOARCH= $(GO) install $(RELEASER) && GOBIN=$(CURDIR)/bin/tools GOOS= GOARCH= $(GO) install $(SYFT)

.PHONY: fuzz
fuzz: ## Run each fuzz test for FUZZTIME (20s).
	@grep -rhoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . >/dev/null || { echo "there are no fuzz tests"; exit 0; }; \
	set -e; for pkg in $$($(GO) list ./...); do \
		for name in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$name"; \
			$(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done

.PHONY: cover
cover: ## Show how much of each core package the tests reach.
	@mkdir -p bin
	@for pkg in $(CORE); do \
		$(GO) test -count=1 -coverprofile=bin/cover-$$(basename $$pkg).out ./$$pkg >bin/cover.log 2>&1 || { cat bin/cover.log; exit 1; }; \
		printf '  %-10s %s\n' $$pkg "$$($(GO) tool cover -func=bin/cover-$$(basename $$pkg).out | awk '/^total:/ {print $$3}')"; \
	done

.PHONY: clean
clean: ## Remove what was built and measured.
	rm -rf bin dist
