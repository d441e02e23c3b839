# The commands of this project; `make` alone lists them.

GO      ?= go
# Without cgo everywhere but for the race detector: with it the standard library is compiled twice.
export CGO_ENABLED = 0
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# What init pins; -dirty where the tree is not the commit's. A release has none: it pins its version.
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null)$(if $(shell git status --porcelain 2>/dev/null),-dirty)
LDFLAGS  = -s -w -X main.version=$(VERSION)
TOOLS    = $(GO) tool -modfile=.ci/tools.mod
# The tests that try every way out in whole runs.
BATTERY  = ^TestNothingGetsOutOfARun$$|^TestCachesStayUnpoisoned$$|^TestLandlockProtectsCheckoutGit$$|^TestHidesFilesInReadOnlyCheckout$$
# The tests that run programs of others: act, toolchains, databases, package managers, npm's.
OUTSIDE  = ^TestActionRunsInAct$$|^TestSoakCases$$|^TestOverlayChanges|^TestToolchains|^TestDatabasesAsServices$$|^TestRealBugFixes$$
OUTSIDE := $(OUTSIDE)|^TestPackageManagersUseSecretsSafely$$|^TestNPMServersAnswerCalls$$|^TestMCPConformance$$|^TestAjvAcceptsExamples$$|^TestTutorials$$
# The tests that take longest, which make e2e has in any case: all but the kills under
# the race detector, and the kills by themselves.
SLOW    = ^TestKilled(AtEachRequest|WhilePublishing|DuringCompaction|WhileAgentsWork|RunsResume|WhileEnding|AfterTimeLimit)|^TestNothingGetsOut(OfARun)?$$|^TestOverlayChanges|^TestSoak$$
SLOW   := $(SLOW)|^TestLayerChangesMatchCopy$$|^TestListCoversStartedPrograms$$|^TestRebaseAsGit$$|^TestRunsOrdinaryTools$$|^TestToolchains
SLOW   := $(SLOW)|^TestScripts$$/^(failures|services_trouble|pull_request_trouble|red_proof|hooks_replay|mcp_setup|lessons|kept_baseline|drift|repair_tests)$$
# FRESH=-count=1 has make test run what the cache has results of.
FRESH   ?=
# How long the tests of one package may take. Where others use the cores, those of
# cmd/agent-ci take more than the 10 minutes that go test gives them.
LIMIT   ?= 20m
# What make mutants is about.
PKG     ?= ./gitops/charset
N       ?= 30
SEED    ?= 1
ALSO    ?=
OTHER   ?=
# The clients of TestPackageManagersUseSecretsSafely that may not be missing.
CLIENTS ?=
# How long make soak goes on.
SOAK    ?= 10m
TARGETS  = linux/amd64 linux/arm64 darwin/arm64

.PHONY: help demo test mutants race lint first-minutes e2e e2e-cluster kills campaign soak bench models pictures build cross clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: build ## run a whole job on an example repository, with scripted answers instead of a model
	@./examples/demo/run.sh bin/agent-ci

# Packages wait for much of their time: twice as many as cores are tested at once. Test programs
# without DWARF and symbols link in half of the time. Linkers and tests are short, so collecting
# garbage rarely saves a fifteenth of the processor time.
test: ## the tests, except the slowest, which are in e2e
	GOGC=400 $(GO) test -ldflags='-s -w' -p $$((2 * $$(getconf _NPROCESSORS_ONLN))) -timeout $(LIMIT) -skip '$(SLOW)' $(FRESH) ./... ./.ci/mutants

mutants: ## which tests of the packages PKG fail by which of N=30 seeded faults; SEED repeats
	@$(GO) run ./.ci/mutants -n $(N) -seed $(SEED) -other '$(OTHER)' -also '$(ALSO)' $(PKG)

# Without GORACE, each process of a test would sleep for a second before it exits.
race: ## the tests of packages with goroutines under the race detector (needs a C compiler)
	CGO_ENABLED=1 GORACE=atexit_sleep_ms=0 $(GO) test -race -ldflags=-w -timeout 30m $$(.ci/concurrent)

lint: ## vet, a build for macOS, staticcheck, gofumpt, actionlint, tidy modules, methods that the linker must keep, known vulnerabilities
	@.ci/lint

first-minutes: ## the demo and the tests that need it most, from a fresh clone with nothing cached, closed folders for temporary files and busy cores; as an ordinary user too if you are root
	@.ci/first-minutes

e2e: race build ## what takes longer: race detector, the slowest tests, some kills, the whole battery, a minute of soak, a release, the action by act, databases as services, package managers with secrets, real bug fixes with the arms that agents come with, MCP servers and the conformance suite from npm, Ajv on the examples, the tutorials, the report in a browser, the image
	AGENT_CI_KILLS=12 $(GO) test -count=1 -timeout 30m -run '^TestKilled|$(SLOW)' -skip '$(BATTERY)|^TestOverlayChanges|^TestToolchains' ./cmd/agent-ci
	AGENT_CI_E2E=1 $(GO) test -count=1 -timeout 30m -run '^TestClassifiesProofs$$' ./runner/check/verify
	AGENT_CI_E2E=1 AGENT_CI_SEED=$${AGENT_CI_SEED:-1} AGENT_CI_CLIENTS='$(CLIENTS)' $(GO) test -count=1 -timeout 40m -parallel 4 -run '$(BATTERY)|$(OUTSIDE)' ./cmd/agent-ci
	@AGENT_CI_SEED=$${AGENT_CI_SEED:-1} $(MAKE) --no-print-directory soak SOAK=60s
	.ci/release --dry-run
	@.ci/browser bin/agent-ci
	@.ci/image bin/agent-ci $(IMAGE_IS)

e2e-cluster: build ## a campaign on a real Kubernetes of one node, which is built once and kept in AGENT_CI_KUBE (root, Debian or Ubuntu)
	@.ci/cluster bin/agent-ci

kills: ## 100 kills of each kind, and 200 sequences of a person beside a run that is killed
	AGENT_CI_KILLS=100 AGENT_CI_SEQUENCES=200 $(GO) test -count=1 -timeout 20m -v -run '^TestKilled' ./cmd/agent-ci

campaign: ## campaigns of 200 targets that are killed, restarted and started twice at random; AGENT_CI_SEED repeats
	AGENT_CI_TARGETS=200 $(GO) test -count=1 -timeout 30m -v -run '^TestKilledCampaigns' ./cmd/agent-ci

soak: ## files that change at random beside random calls of tools, for SOAK=10m; AGENT_CI_SEED repeats
	AGENT_CI_SOAK=$(SOAK) $(GO) test -count=1 -timeout 60m -v -run '^TestSoak$$' ./cmd/agent-ci

bench: build ## figures, with the machine they were measured on; CODEX=PATH is the program of Codex, which npm installs otherwise; FILES=50000 makes its largest repository smaller than 500,000 files, IGNORED=10000 the copied ignored files fewer than 100,000
	@.ci/bench

models: ## the table of models and prices; API=api.json AT=COMMIT ON=DAY: from what models.dev says there (docs/reference/model.md)
	$(GO) run ./runner/agent/model/catalog/internal/tabulate -api '$(API)' -commit '$(AT)' -date '$(ON)'

pictures: build ## the pictures of the documentation: drawings, and screenshots of a run of the demo in Chromium
	@.ci/pictures bin/agent-ci

# Without -trimpath, which cross has, so that the compiled packages serve the tests, the demo's
# commands and go run, too: with it the standard library is compiled once more for each.
build: ## the static binary, bin/agent-ci
	@echo 'Building bin/agent-ci; with empty caches this takes some minutes.'
	@$(GO) build -ldflags '$(LDFLAGS) -X main.commit=$(COMMIT)' -o bin/agent-ci ./cmd/agent-ci
	@ls -l bin/agent-ci | awk '{printf "bin/agent-ci: %.1f MB\n", $$5/1000000}'

cross: ## static binaries for all released targets, in dist/
	@for target in $(TARGETS); do \
		os=$${target%/*} arch=$${target#*/} out=dist/agent-ci-$${target%/*}-$${target#*/}; \
		GOOS=$$os GOARCH=$$arch $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $$out ./cmd/agent-ci || exit 1; \
		ls -l $$out | awk -v f=$$out '{printf "%s: %.1f MB\n", f, $$5/1000000}'; \
	done

clean: ## remove what the commands above made
	rm -rf bin dist demo
