# Every target that a builder or a newcomer needs. `make help` lists them.
.DEFAULT_GOAL := help
SHELL := bash

GO          ?= go
BIN         := $(CURDIR)/bin
TOOLS       := $(CURDIR)/.bin
OUT         ?= penstock-out
PKG         ?= ./...
T           ?= .

GOLANGCI_VERSION := v2.15.0
GOFUMPT_VERSION  := v0.12.0

.PHONY: help
help: ## List the targets.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

.PHONY: build
build: ## Build the binary into bin/.
	@mkdir -p $(BIN)
	$(GO) build -o $(BIN)/penstock ./pipeline/cmd/penstock

.PHONY: run
run: build ## Run the paper's day through the whole loop on an embedded bus; the report is in penstock-out/.
	@mkdir -p $(OUT)
	$(BIN)/penstock import workload infra/examples/paper-day.yaml -o $(OUT)/paper-day.parquet
	$(BIN)/penstock replay $(OUT)/paper-day.parquet --config infra/examples/paper.yaml --out $(OUT)

.PHONY: live-demo
live-demo: build ## Three sites, their entry points, a redirector and a crowd that moves: its data follows while writes go on.
	$(BIN)/penstock demo live --out $(OUT)/live-demo

.PHONY: split-demo
split-demo: build ## Two sites of six services: one gets slow at one site three times, and calls go to the other; beside it closest and redirect. 18 min.
	$(BIN)/penstock demo split --out $(OUT)/split-demo

.PHONY: coding-demo
coding-demo: build ## A coder over a store with made-up delays, load rising and falling, the store getting slower; beside it (1,1) and (12,6). 5 min.
	$(BIN)/penstock demo coding --out $(OUT)/coding-demo

.PHONY: servers-demo
servers-demo: build ## A pool of servers of unequal speed and a day of load in minutes: queues by deadline, servers on and off; beside it all on and least connections. 5 min.
	$(BIN)/penstock demo servers --out $(OUT)/servers-demo

.PHONY: coding-live
coding-live: build ## The coding experiment's sweep with the real coder: five loads, tofec beside (1,1) and (12,6) and the simulation. 7 min.
	$(BIN)/penstock experiment coding-live --out $(OUT)/experiment

.PHONY: test
test: ## Run all tests with the race detector off; T=Name PKG=./folder/ narrow it down.
	$(GO) test -timeout 15m -run '$(T)' $(PKG)

.PHONY: race
race: ## Run all tests under the race detector.
	$(GO) test -race -timeout 20m -run '$(T)' $(PKG)

.PHONY: lint
lint: $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION) ## Run the linters, import floors included.
	$(TOOLS)/golangci-lint-$(GOLANGCI_VERSION) run ./...

.PHONY: fmt
fmt: $(TOOLS)/gofumpt-$(GOFUMPT_VERSION) ## Format the code.
	$(TOOLS)/gofumpt-$(GOFUMPT_VERSION) -w infra schemas producers consumers pipeline

.PHONY: bench
bench: ## Measure the rows of the design's speed table; ratios are of one run. PLACEMENT_OWNERS=N, DIRECTORY_OWNERS=N for fewer than 10 million owners.
	PLACEMENT_OWNERS=$${PLACEMENT_OWNERS:-10000000} DIRECTORY_OWNERS=$${DIRECTORY_OWNERS:-10000000} $(GO) test -run '^$$' -bench . -benchtime 1x -timeout 60m -p 1 $(if $(filter ./...,$(PKG)),./pipeline/bench/ ./consumers/decider/placement/,$(PKG))
ifeq ($(PKG),./...)
	$(GO) test -run '^$$' -bench 'Decide|Pick' -timeout 10m -p 1 ./consumers/decider/split/ ./infra/shares/
	$(GO) test -run '^$$' -bench 'Decide|BenchmarkIncrease$$' -timeout 20m -p 1 ./consumers/executor/dispatcher/pool/ ./consumers/executor/dispatcher/line/
	$(GO) test -run '^$$' -bench AgainstBare -benchtime 100x -timeout 10m ./consumers/executor/coder/object/
endif

.PHONY: golden
golden: ## Write the golden files anew; the diff is the review.
	$(GO) test $$(grep -rlE --include='*_test.go' 'flag\.Bool\("update"|"penstock/infra/golden"' . | xargs -n1 dirname | sort -u) -run Golden -update

.PHONY: crash
crash: build ## Kill the whole process at 20 seeded points of make run; the results must not differ.
	$(GO) test -count 1 -timeout 60m -run TestKill ./pipeline/cmd/penstock/ -args -kills 20

# Folder with measured round trips and prices between clouds, if it is there.
DATA ?= $(wildcard ../shared/data)

.PHONY: experiment
experiment: build ## Run the placement paper's evaluation: tables, and plots in penstock-out/experiment. DATA=DIR adds measured clouds.
	$(BIN)/penstock experiment placement --out $(OUT)/experiment $(if $(wildcard $(DATA)/clouds-skyplane),--data $(DATA))

.PHONY: split-experiment
split-experiment: build ## Run the request-splitting paper's evaluation: tables, and plots in penstock-out/experiment. DATA=DIR adds recorded arrivals.
	$(BIN)/penstock experiment split --out $(OUT)/experiment $(if $(wildcard $(DATA)/azure-llm-2023),--data $(DATA))

.PHONY: coding-experiment
coding-experiment: build ## Run the coded-storage paper's evaluation: tables, and plots in penstock-out/experiment. DATA=DIR adds recorded sizes.
	$(BIN)/penstock experiment coding --out $(OUT)/experiment $(if $(wildcard $(DATA)/cdn-adaptsize),--sizes $(DATA)/cdn-adaptsize/request.trace.gz)

.PHONY: servers-experiment
servers-experiment: build ## Run the evaluation of request distribution by perceptrons: tables, and plots in penstock-out/experiment. DATA=DIR adds recorded arrivals.
	$(BIN)/penstock experiment servers --out $(OUT)/experiment $(if $(wildcard $(DATA)/azure-llm-2023),--data $(DATA))

.PHONY: servers-long
servers-long: build ## The same with 20 seeds, and what it has to show.
	$(BIN)/penstock experiment servers --seeds 20 --out $(OUT)/experiment $(if $(wildcard $(DATA)/azure-llm-2023),--data $(DATA))
	PENSTOCK_WHOLE=1 $(GO) test -count 1 -timeout 60m -v -run WhatIsShown ./pipeline/experiment/serving/

.PHONY: whole
whole: ## Run what takes long as a whole: all seeds, a minute of fencing, 20 kills, the paper's evaluation.
	PENSTOCK_WHOLE=1 $(GO) test -count 1 -timeout 90m -v -run 'CheckIns|TwoAggregators|TestKill$$' ./pipeline/cmd/penstock/ -args -kills 20
	PENSTOCK_WHOLE=1 $(GO) test -count 1 -timeout 60m -v -run StandardModelPasses ./pipeline/experiment/
	PENSTOCK_WHOLE=1 $(GO) test -count 1 -timeout 60m -v -run WhatIsShown ./pipeline/experiment/splitting/ ./pipeline/experiment/coding/

.PHONY: stores
stores: ## Show what the stores promise: conformance suites, 100 moves of a busy owner on each backend and between all, 50 kills.
	PENSTOCK_WHOLE=1 $(GO) test -count 1 -timeout 60m ./infra/testserver/ ./infra/objectstore/...
	PENSTOCK_WHOLE=1 $(GO) test -count 1 -timeout 60m -v ./consumers/executor/mover/movertest/
	PENSTOCK_WHOLE=1 $(GO) test -count 1 -timeout 60m -v -run 'KillMovers|ComesBack|MixedStores|ADatabase' ./pipeline/cmd/penstock/

.PHONY: coding-long
coding-long: ## Show what coded storage promises as a whole: all ways to lose stores and kill writers, a gigabyte over each backend, 200 kills.
	PENSTOCK_WHOLE=1 $(GO) test -count 1 -timeout 60m ./consumers/executor/coder/ ./consumers/executor/coder/catalog/... ./consumers/executor/coder/object/
	PENSTOCK_WHOLE=1 $(GO) test -count 1 -timeout 60m -v -run 'TestBackends' ./consumers/executor/coder/s3front/
	PENSTOCK_WHOLE=1 $(GO) test -count 1 -timeout 60m -v -run 'KillCoder|StoresOfCoder|CoderLoses|CoderIsReplaced' ./pipeline/cmd/penstock/

.PHONY: live
live: ## Show what entry points promise as a whole: stale clients, a bus that is away for a minute, logs rotated and readers killed 20 times.
	PENSTOCK_WHOLE=1 $(GO) test -count 1 -timeout 60m -v -run 'OnTheClock/InTurn|ServicesThatKnow|FollowNGINX' ./pipeline/cmd/penstock/
	PENSTOCK_WHOLE=1 $(GO) test -count 1 -timeout 60m -v -run 'TestKill|TestWalk' ./producers/follow/
	PENSTOCK_WHOLE=1 $(GO) test -count 1 -timeout 60m ./infra/gate/ ./producers/entry/...

.PHONY: fence
fence: ## Stop and wake two aggregator processes on one partition in turn for 60 s; windows and account must not differ.
	PENSTOCK_WHOLE=1 $(GO) test -count 1 -timeout 10m -run TestTwoAggregatorsOnOnePartition ./pipeline/cmd/penstock/

.PHONY: fuzz
fuzz: ## Fuzz every decoder for FUZZTIME (default 20s) each.
	@for p in $$($(GO) list ./...); do for f in $$($(GO) test -list '^Fuzz' $$p 2>/dev/null | grep '^Fuzz'); do \
	  echo "$$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $${FUZZTIME:-20s} $$p || exit 1; done; done

.PHONY: clean
clean: ## Remove what was built and the default output folder.
	rm -rf $(BIN) $(OUT)

$(TOOLS)/golangci-lint-$(GOLANGCI_VERSION):
	@mkdir -p $(TOOLS)
	GOBIN=$(TOOLS) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv $(TOOLS)/golangci-lint $@

$(TOOLS)/gofumpt-$(GOFUMPT_VERSION):
	@mkdir -p $(TOOLS)
	GOBIN=$(TOOLS) $(GO) install mvdan.cc/gofumpt@$(GOFUMPT_VERSION)
	mv $(TOOLS)/gofumpt $@
