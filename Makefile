# Everything a change must pass. `make help` lists the targets; CI runs .ci/run.
#
# Portable to GNU make 3.81. The modules are those of go.work: a new one is named
# there, and every target below covers it.

GOLANGCI_LINT = github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOVULNCHECK   = golang.org/x/vuln/cmd/govulncheck@v1.8.0

# As in releases. What is compiled does not change when scripts/deps installs a C compiler, either.
export CGO_ENABLED ?= 0

# How long each fuzz target runs.
FUZZTIME ?= 5s

# More flags for go test, such as -run or -v.
TESTFLAGS ?=

# The directories of all modules, and the packages in them, evaluated where they are used. One
# command for all packages compiles what they share once and works on several at a time. The
# last modules and redisstore come first, because their tests take longest.
MODULES = $(shell go list -m -f '{{.Dir}}')
PACKAGES = $(CURDIR)/redisstore $(shell go list -m -f '{{.Dir}}/...' | sort -r)

# The build tags of tests that make test leaves out, because they need more programs.
TAGS = clients,gateways,grpcjs,upstream

# $(call each,COMMANDS) runs COMMANDS in every module, and fails in the end if they failed in one.
define each
@modules="$(MODULES)"; test -n "$$modules" || exit 1; failed=; for module in $$modules; do \
	name=.$${module#$(CURDIR)}; echo "--- $@: $$name"; \
	(cd "$$module" && { $(1); }) || failed="$$failed $$name"; \
done; test -z "$$failed" || { echo "$@ failed in:$$failed" >&2; exit 1; }
endef

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: check
check: test gateways sdks clients grpc-js alerts upstream race cross lint fix-check tidy-check fmt-check vuln fuzz bench-quick release-check api-check soak newest ## Do all that CI does

DEPS = scripts/deps redis cc chromium python node curl grpcio lua h2load

.PHONY: deps
deps: ## Install the programs that the tests need, except Go (see scripts/deps)
	@$(DEPS)

# Many tests wait for servers and browsers, so each core has the tests of two packages.
BUSY = $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))

# While programs are installed, Go fetches modules and compiles. make lint does what vet would.
.PHONY: test
test: ## Run the tests of every module
	@go list -export -deps -test $(PACKAGES) >/dev/null 2>&1 & compiling=$$!; \
	$(DEPS); code=$$?; { kill $$compiling; wait $$compiling; } 2>/dev/null; \
	[ $$code = 0 ] || exit $$code; \
	go test -p $(BUSY) -vet=off $(TESTFLAGS) $(PACKAGES)

# How long soak takes, about: seconds, or a number with s, m or h.
SOAK ?= 2m

.PHONY: soak
soak: deps ## Run the property tests and all faults with random seeds for SOAK
	@scripts/soak $(SOAK)

# How long the load lasts for each fault.
CHAOS_SPAN ?= 20s

.PHONY: chaos
chaos: deps ## Break real Redis servers under load, and print what was granted (minutes)
	@cd e2e/chaos && go test -count=1 -timeout 30m -run '^TestChaos$$' -chaos.span $(CHAOS_SPAN) -chaos.together 3
	@cd e2e/serve && go test -count=1 -timeout 30m -parallel 1 -v -serve.long

.PHONY: gateways
gateways: ## Run the configurations of docs/gateways with real gateways, and Redis behind Envoy
	@scripts/deps nginx nginx-lua apache caddy haproxy python redis envoy envoy-old
	@go test -count=1 -tags gateways -skip '^TestVendors' $(TESTFLAGS) ./e2e/gateways

.PHONY: sdks
sdks: ## Call model APIs through the proxy with the SDKs of their vendors, which pip and npm install
	@scripts/deps sdks
	@go test -count=1 -tags gateways -run '^TestVendors' $(TESTFLAGS) ./e2e/gateways

.PHONY: clients
clients: ## Test the packages for Python and Node, and their types, with what pip and npm install
	@scripts/deps redis clients
	@go test -count=1 -tags clients $(TESTFLAGS) ./e2e/clients

.PHONY: grpc-js
grpc-js: ## Test headgate serve with gRPC for Node, which npm installs
	@scripts/deps grpc-js
	@go test -count=1 -tags grpcjs $(TESTFLAGS) ./cmd/headgate/e2e/strangers/grpcjs

.PHONY: alerts
alerts: ## Check the alert rules of deploy/prometheus, and test them
	@scripts/deps promtool
	@promtool check rules deploy/prometheus/alerts.yaml
	@promtool test rules deploy/prometheus/alerts_test.yaml

.PHONY: upstream
upstream: ## Run the tests of envoyproxy/ratelimit, compare both behind Envoy (3 minutes)
	@scripts/deps redis stunnel envoy
	@go test -count=1 -timeout 10m -tags upstream $(TESTFLAGS) ./cmd/headgate/e2e/upstream/integration
	@built=$$(mktemp -d) && trap 'rm -r "$$built"' EXIT && cd cmd/headgate/e2e/upstream && \
		go mod download github.com/envoyproxy/ratelimit && \
		module=$$(go list -m -f '{{.Dir}}' github.com/envoyproxy/ratelimit) && \
		(cd "$$module" && GOWORK=off go build -o "$$built/ratelimit" ./src/service_cmd) && cd $(CURDIR) && \
		go test -count=1 -tags gateways -run '^TestSameRequests$$' $(TESTFLAGS) ./e2e/gateways \
			-ratelimit "$$built/ratelimit"

# Left out for their time are packages whose tests mostly start programs, and those without goroutines.
# The faults come last and alone, since a machine that is busy with other tests is another fault.
RACE = $(shell go list $(PACKAGES) | grep -Ev \
	'/(scripts|examples/with|e2e|bench/simulation)(/|$$)|internal/(cli|replay|report)$$')

.PHONY: race
race: deps ## Run the tests with goroutines of their own, shortened, under the race detector
	@test -n "$(RACE)" && CGO_ENABLED=1 go test -race -short -p $(BUSY) $(TESTFLAGS) $(RACE)
	@CGO_ENABLED=1 go test -race -short -timeout 30m $(TESTFLAGS) ./e2e/chaos

.PHONY: redises
redises: deps ## Run the Redis tests with other versions of Redis and Valkey (a quarter of an hour)
	@scripts/redises

.PHONY: newest
newest: deps ## Run the Redis tests with the newest Redis and Valkey, and with 32 bits (minutes)
	@scripts/redises redis-newest valkey-newest redis-32bit

# What somebody imports. The tests of 32 bits need a processor that runs programs of 32 bits.
LIBRARY = . ./internal/algorithm ./internal/memtable ./internal/usage ./gate ./concurrency ./denycache \
	./lease ./observe ./fallback ./httplimit ./limittest ./redisstore ./ratelimiter

ADAPTERS = $(patsubst %,./%/...,$(wildcard *limit))

.PHONY: cross
cross: deps ## Run the tests of the library with 32 bits, and vet it and the command for Windows and macOS
	@GOARCH=386 CGO_ENABLED=0 go test -short -p $(BUSY) $(LIBRARY)
	@GOOS=windows go vet $(LIBRARY) $(ADAPTERS) ./cmd/headgate/...
	@GOOS=darwin go vet $(LIBRARY) $(ADAPTERS) ./cmd/headgate/...

.PHONY: release-check
release-check: ## Prove that each module can be fetched by its version, without go.work (see scripts/release)
	@go run ./scripts/release -check

HELM = helm.sh/helm/v3/cmd/helm@v3.22.0

.PHONY: chart-check
chart-check: ## Check the Helm chart with helm, and compare it with the manifest
	@go run $(HELM) lint deploy/helm/headgate
	@made=$$(mktemp) && go run $(HELM) template headgate deploy/helm/headgate --kube-version 1.30.0 >"$$made" && \
		go test -count=1 -run TestChartIsTheManifest ./cmd/headgate/internal/cli -chart "$$made"; \
		code=$$?; rm -f "$$made"; exit $$code

GORELEASER = github.com/goreleaser/goreleaser/v2@v2.15.0

# Images and lists of contents need programs that Go does not have (docker, syft).
.PHONY: dist-check
dist-check: ## Check the configuration of releases, and build all but images (minutes)
	@IMAGE=headgate go run $(GORELEASER) check
	@IMAGE=headgate go run $(GORELEASER) release --snapshot --clean --skip=docker,sbom

APIDIFF = golang.org/x/exp/cmd/apidiff@v0.0.0-20261014143641-f0251eb4aa3e

.PHONY: api-check
api-check: ## Compare the API of the library and its adapters with that of the last tag
	@scripts/api-check $(APIDIFF)

.PHONY: lint
lint: ## Run the linters of .golangci.yml, go vet among them
	@go run $(GOLANGCI_LINT) run $(PACKAGES)

.PHONY: fix-check
fix-check: ## Check that go fix has nothing to modernise
	@go fix -diff -tags $(TAGS) $(PACKAGES)

.PHONY: tidy-check
tidy-check: ## Check that every go.mod is tidy
	$(call each,go mod tidy -diff)

.PHONY: fmt-check
fmt-check: ## Check that every file is as gofmt has it
	@files=$$(git ls-files -co --exclude-standard -z '*.go' | xargs -0 gofmt -l) || exit 1; \
	if [ -n "$$files" ]; then echo "not formatted, run make fmt:"; echo "$$files"; exit 1; fi

.PHONY: fmt
fmt: ## Format every file, apply go fix, tidy every go.mod
	$(call each,go fix ./... && gofmt -w . && go mod tidy)

.PHONY: lines
lines: ## Count the lines of the library and of the program, and those that are too wide
	@scripts/lines

# The database of vulnerabilities is on the network. If it cannot be reached, there is nothing to
# check against: vuln says so, and does not fail.
.PHONY: vuln
vuln: ## Look for known vulnerabilities in what is called
	@out=$$(go run $(GOVULNCHECK) $(PACKAGES) 2>&1) && echo "$$out" || { \
		echo "$$out"; \
		echo "$$out" | grep -q 'fetching vulnerabilities:' || exit 1; \
		echo "NOT CHECKED: the database of vulnerabilities cannot be reached"; \
	}

.PHONY: fuzz
fuzz: deps ## Run every fuzz target for FUZZTIME
	@scripts/fuzz $(FUZZTIME)

# More flags for the benchmarks, such as -strict or -only memory.
BENCHFLAGS ?=

.PHONY: bench
bench: deps ## Measure the budgets beside other limiters, into bench/RESULTS.md (a quarter of an hour)
	@cd bench && go run . -out RESULTS.md $(BENCHFLAGS)

.PHONY: bench-quick
bench-quick: deps ## Run every benchmark briefly, to see that it runs
	@cd bench && go run . -quick

.PHONY: simulate
simulate: ## Simulate 1,000 instances and three regions, and write docs/simulation.* and regions.md (minutes)
	@cd bench && go test -count=1 -timeout 1h -run Simulation ./simulation -docs "$(CURDIR)/docs"

.PHONY: clean
clean: ## Remove cached test results and fuzz inputs
	@go clean -testcache -fuzzcache
