# Every target that is meant for people has a line that begins with ##; `make help` prints them.

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS   += --no-print-directory

# One static binary, everywhere.
export CGO_ENABLED := 0

VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
REVISION ?= $(shell git rev-parse --short HEAD 2>/dev/null)
LDFLAGS  := -s -w -X main.version=$(VERSION) -X main.revised=$(REVISION)

# How long the whole of `make test` may take per package before it is called hung.
TEST_TIMEOUT ?= 12m

# The long suites. Each is a target test/NAME once it exists; `make test` names them at its end.
LONG_SUITES := browser crash soak failover clients containers postgres security mutants

# What the program is made from.
SOURCES := $(shell find . -type f \( -name '*.go' -o -name '*.sql' -o -name '*.json' -o -name '*.yaml' -o -name '*.html' -o -name '*.css' -o -name '*.js' -o -name '*.svg' \) \
	-not -name '*_test.go' -not -path './.*' -not -path '*/node_modules/*' -not -path '*/testdata/*' 2>/dev/null) go.mod go.sum

.PHONY: help
help: ## Explain every target
	@echo 'cutonce: agents prepare, people approve, and it is applied exactly once'
	@echo
	@grep -hE '^[a-z/]+:.*##' $(firstword $(MAKEFILE_LIST)) | sed -E 's/^([a-z/]+):[^#]*## *(.*)/  make \1\t\2/' | expand -t 26

# To be told of what happens, say whom: CUTONCE_NOTIFY_FILE=examples/notify.yaml make run (its last receiver is a local one, commented out).
.PHONY: run
run: build ## Build, then run everything on this machine: Postgres, simulated platforms, the service (ARGS="--listen …")
	@exec bin/cutonce dev $(ARGS)

.PHONY: demo
demo: build ## Build, then tell the whole story in under 90 seconds, against an instance of its own
	@exec bin/cutonce demo $(ARGS)

.PHONY: build
build: bin/cutonce ## Build the one static binary, bin/cutonce

bin/cutonce: $(SOURCES)
	@mkdir -p bin
	go build -trimpath -ldflags '$(LDFLAGS)' -o $@ ./cmd/cutonce

.PHONY: test
test: lint ## Run every test but the long suites, and say which Postgres was used and what was not run, and why
	@go test -json -timeout $(TEST_TIMEOUT) ./... | go run ./internal/testreport
	@$(MAKE) long-suites

.PHONY: long-suites
long-suites:
	@echo 'Long suites, which this command does not run:'
	@for suite in $(LONG_SUITES); do \
		if grep -qE "^test/$$suite:" $(firstword $(MAKEFILE_LIST)); then echo "  make test/$$suite"; missing=$${missing:-}; \
		else missing="$${missing:-} $$suite"; fi; done; \
		if [ -n "$${missing:-}" ]; then echo "  not written yet:$$missing"; fi

# Points of the console's checklist, separated by commas; empty means all.
POINTS ?=

.PHONY: test/browser
test/browser: build ## Look at the console with a real browser, at every point of its checklist (POINTS=17,18 for some)
	@go build -o bin/test-browser ./test/browser
	@bin/test-browser -binary bin/cutonce -points '$(POINTS)' -failures bin/browser-failures

.PHONY: screenshots
screenshots: build ## Take pictures of every screen in both languages, light and dark, wide and on a phone, into bin/screenshots
	@go build -o bin/test-browser ./test/browser
	@bin/test-browser -binary bin/cutonce -screenshots bin/screenshots

.PHONY: test/clients
test/clients: build ## Drive the service with MCP clients that others have written (they and, if need be, Node come from npm)
	@go run ./test/clients -binary bin/cutonce

# Rows of the crash suite, separated by commas; empty means all.
ROWS ?=

.PHONY: test/crash
test/crash: ## Kill and freeze real processes at every failure point, and recover in two ways (ROWS=C3,X4 for some)
	@go build -trimpath -tags stops -o bin/cutonce-stops ./cmd/cutonce
	@go run ./test/crash -binary bin/cutonce-stops -rows '$(ROWS)'

# How long the soak goes on, and which schedule it replays: 0 draws a fresh seed, which it prints.
SOAK ?= 60s
SEED ?= 0

.PHONY: test/soak
test/soak: build ## Let many clients use three replicas that are killed and paused, then check every promise (SOAK=60s SEED=n)
	@go run ./test/soak -binary bin/cutonce -for $(SOAK) -seed $(SEED)

# Attacks of the security suite, separated by commas; empty means all.
ATTACKS ?=

.PHONY: test/security
test/security: build ## Attack a real service over the network: nothing may come of any of it (ATTACKS=T1,S4 for some)
	@go run ./test/security -binary bin/cutonce -attacks '$(ATTACKS)'

.PHONY: test/mutants
test/mutants: ## Take the guards out of the program one at a time: cutonce verify must turn red each time
	@go run ./test/mutants

# How often the failover suite loses the primary.
ROUNDS ?= 20

.PHONY: test/failover
test/failover: build ## Lose the primary of a synchronous pair between claim and record, and go on at its standby (ROUNDS=20)
	@go build -o bin/test-failover ./test/failover
	@bin/test-failover -binary bin/cutonce -rounds $(ROUNDS)

.PHONY: test/containers
test/containers: build ## Prove it in containers: tests with Postgres in one, the image, docker-compose.yml (needs a Docker engine)
	@test/containers/run

.PHONY: test/postgres
test/postgres: ## Run the tests that need a database on Postgres 15, 17 and 18 (binaries from npm where there are none)
	@test/postgres/run

.PHONY: bench
bench: build ## Measure whole changes a second beside the limit their commits set (BENCH_SECONDS=3 a cell, CLIENTS=1,8,32)
	@cd bench && go run -mod=mod . -binary ../bin/cutonce $(ARGS)

.PHONY: bench/scale
bench/scale: build ## Measure the calls on an empty database and on one that holds N changes (N=1000000), side by side
	@cd bench && go run -mod=mod ./scale -binary ../bin/cutonce -n $(or $(N),1000000) $(ARGS)

.PHONY: lint
lint: ## Check the formatting and vet the code (and run staticcheck, if it is installed)
	@unformatted="$$(find . -name '*.go' -not -path './.*' -not -path '*/node_modules/*' -print0 | xargs -0 gofmt -l)"; \
		if [ -n "$$unformatted" ]; then echo "not formatted (gofmt -w):"; echo "$$unformatted"; exit 1; fi
	@go vet ./...
	@if [ "$@" = "$(firstword $(MAKECMDGOALS))" ] && command -v staticcheck >/dev/null; then staticcheck ./...; fi

.PHONY: clean
clean: ## Remove what was built and fetched; keys and data of development stay (they are in .cutonce)
	rm -rf bin .cache
