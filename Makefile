# basetensor: how to build, test and measure it. `make test` is all a fresh machine with Go needs.
# A cold first build compiles a NATS server: some 3 min 20 s of processor time (200 s, measured with an empty cache; a minute and three quarters on two cores); nothing hangs.

GO ?= go
# Reference models are not part of the repository; tests that use them skip with a reason when this folder is absent.
export BTN_DATA ?= $(wildcard $(abspath ../shared/data))

.PHONY: test commands build laboratory man image release lint deadcode fuzz bench bench-kernel bench-models bench-counting race acceptance faults simulate truth goldens nightly deps figures help

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

# TIMEOUT is that of one package, which a machine with one busy core needs a part of.
TIMEOUT ?= 40m
# Packages tested at a time: two a core, because many tests wait for servers.
PACKAGES ?= $(shell expr 2 '*' $$(getconf _NPROCESSORS_ONLN 2> /dev/null || echo 2))
# The commands that tests run are linked, and the server is looked for, once for all of them.
SERVER = BTN_NATS_SERVER="$${BTN_NATS_SERVER:-$$($(GO) tool -n nats-server 2> /dev/null)}"
test: export BTN_COMMANDS = $(abspath bin/tested)
test: deps commands ## all tests, against real servers where they can be had (7 minutes on two cores that have nothing else to do, half an hour on busy ones)
	$(SERVER) $(GO) test -p $(PACKAGES) $(TESTFLAGS) -timeout $(TIMEOUT) ./...
	$(SERVER) $(GO) test -C lab -p $(PACKAGES) $(TESTFLAGS) -timeout $(TIMEOUT) ./...

commands: ## the six commands as the tests run them, without symbols, into bin/tested/
	GOBIN=$(abspath bin/tested) $(GO) install -ldflags='-s -w' ./cmd/...
	GOBIN=$(abspath bin/tested) $(GO) install -C lab -ldflags='-s -w' ./cmd/...

deps: ## find or install redis-server, build nats-server; says clearly what it could not get
	$(GO) run ./internal/testing/testserver/install

build: ## btn and the four workers, into bin/
	$(GO) build -trimpath -o bin/ ./cmd/...

laboratory: ## btnlab, which measures, into bin/
	$(GO) build -C lab -trimpath -o ../bin/ ./cmd/...

man: ## the manual pages of btn, into bin/man/
	$(GO) run ./cmd/btn help --man bin/man

VERSION ?= devel
image: ## the container image, as an OCI layout in bin/image, with its bill of materials bin/image.cdx.json (VERSION=v1.2.3); no engine needed
	$(GO) run -C lab ./image/build -version $(VERSION)

PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
REVISION = $(shell git rev-parse HEAD)$(shell git status --porcelain --untracked-files=no | grep -q . && echo +dirty)
TELEMETRY = github.com/basetensor/basetensor/internal/queue/telemetry
release: ## btn for every one of PLATFORMS, and the Python client with each btn and without, into bin/release with SHA256SUMS (VERSION=v1.2.3); the same bytes from the same sources
	@rm -rf bin/release && mkdir -p bin/release
	@set -e; programs=; for platform in $(PLATFORMS); do os=$${platform%/*}; arch=$${platform#*/}; end=; [ $$os != windows ] || end=.exe; \
	  btn=bin/release/btn_$(VERSION)_$${os}_$$arch$$end; programs="$$programs $$platform=$$btn"; \
	  CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch $(GO) build -trimpath -buildvcs=false \
	    -ldflags "-s -w -buildid= -X $(TELEMETRY).release=$(VERSION) -X $(TELEMETRY).revision=$(REVISION)" \
	    -o $$btn ./cmd/btn; \
	done; python3 clients/python/backend.py bin/release $$programs > /dev/null
	@cd bin/release && { command -v sha256sum > /dev/null && sha256sum * || shasum -a 256 *; } > ../SHA256SUMS && mv ../SHA256SUMS . && cat SHA256SUMS

VET ?= $(GO) vet
lint: ## gofmt, go vet, staticcheck (checks and reasons in staticcheck.conf)
	@test -z "$$(gofmt -l cmd pkg internal lab schemas examples)" || { gofmt -l cmd pkg internal lab schemas examples; echo "not gofmt'ed"; exit 1; }
	$(VET) ./...
	$(VET) -C lab ./...
	$(GO) tool staticcheck ./...
	cd lab && "$$($(GO) tool -C .. -n staticcheck)" ./...

deadcode: ## functions that nothing reaches (exceptions and reasons in .ci/deadcode.txt): two minutes of one core
	.ci/deadcode commands
	.ci/deadcode tests

race: deps ## the tests under the race detector (slow; needs cgo)
	$(GO) test -race -short -timeout $(TIMEOUT) ./...
	$(GO) test -C lab -race -short -timeout $(TIMEOUT) ./...

FUZZTIME ?= 10s
fuzz: ## every fuzz target for FUZZTIME each (default 10s); inputs worth keeping are committed in testdata/fuzz
	@set -e; for module in . lab; do for pkg in $$($(GO) list -C $$module ./...); do \
	  for target in $$($(GO) test -C $$module -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "$$pkg $$target"; $(GO) test -C $$module -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$pkg; \
	  done; done; done

bench: ## all benchmarks, ten runs each, for benchstat
	$(GO) test -run '^$$' -bench . -benchmem -count 10 ./...

bench-kernel: ## the loops of contractions by shape, beside the measured peak, a copy, gonum and OpenBLAS where it is found (two minutes, one core)
	$(GO) test -run '^$$' -bench '^Benchmark(Merge|Product|Peak)$$' ./internal/methods/exact/pairwise

# Fails when a model is not solved; the page is written all the same. Further flags: make bench-models BENCHFLAGS="--compare earlier.csv"
BENCHFLAGS ?=
MODELTIME ?= 60s
bench-models: ## every reference model against its solution: docs/benchmarks/exact.md (about MODELTIME each at worst)
	@test -n "$(BTN_DATA)" || { echo "no reference models: set BTN_DATA to their folder"; exit 1; }
	$(GO) build -o bin/ ./cmd/btn
	$(GO) build -C lab -o ../bin/ ./cmd/btnlab
	bin/btnlab bench "$(BTN_DATA)" --timeout $(MODELTIME) --memory 8GiB --mar $(BENCHFLAGS) --out docs/benchmarks --name exact

COUNTTIME ?= 60s
bench-counting: ## the weighted formulas beside their published counts: docs/benchmarks/counting.md (COUNTTIME of one core each at worst)
	@test -n "$(BTN_DATA)" || { echo "no formulas: set BTN_DATA to the folder of reference models"; exit 1; }
	$(GO) build -o bin/ ./cmd/btn
	$(GO) build -C lab -o ../bin/ ./cmd/btnlab
	GOMAXPROCS=1 bin/btnlab bench "$(BTN_DATA)/wcnf" --formulas --cpu $(COUNTTIME) --timeout 10m --memory 8GiB --threads 1 $(BENCHFLAGS) --out docs/benchmarks --name counting

figures: ## the figures and the tables of docs/evaluation/README.md, and other figures of docs/, anew from the CSV files beside them; nothing is measured
	$(GO) run -C lab ./cmd/btnlab evaluate all --redraw --out ../docs/evaluation --page ../docs/evaluation/README.md
	$(GO) run -C lab ./cmd/btnlab bench --redraw ../docs/benchmarks/exact.csv
	$(GO) run -C lab ./cmd/btnlab explain --redraw --out ../docs/benchmarks/explain.csv

acceptance: deps ## the end-to-end tests alone: the built commands, real servers, reference models
	$(GO) test -count 1 -timeout $(TIMEOUT) -v ./internal/testing/acceptance

# Runs add up in docs/benchmarks/faults.csv. FAULTFLAGS="--class pause,hole --seed 100 --for 30m", "--cluster", "--old COMMIT", …: btnlab faults --help
FAULTFLAGS ?=
faults: deps ## jobs while workers and servers are killed, paused, cut off and worse: docs/benchmarks/faults.md (ten minutes; FAULTFLAGS)
	$(GO) run -C lab ./cmd/btnlab faults --root .. --out ../docs/benchmarks/faults.csv $(FAULTFLAGS)

TRUTH_SEED ?= 1
truth: ## 20,000 wild and 20,000 tame models at random by every method, against exact arithmetic (seed: TRUTH_SEED=1)
	$(GO) run ./internal/testing/truth/run -seed $(TRUTH_SEED)

SCHEDULES ?= 100000
SEED ?= 1
simulate: ## the workers under SCHEDULES (default 100,000: 15 minutes) of faults in virtual time, from SEED on; a violation is printed with its transcript
	$(GO) test -count 1 -timeout 0 ./internal/testing/simulation -args -schedules $(SCHEDULES) -seed $(SEED) -processes $(shell nproc)

goldens: ## all answers to the last bit: small models, engines, decompositions, every reference model (GOLDENFLAGS=-update writes them)
	BTN_GOLDENS=1 $(GO) test -count 1 -timeout $(TIMEOUT) -v ./internal/testing/golden -args $(GOLDENFLAGS)

nightly: deps ## the long check, some hours: all tests in full, known vulnerabilities, races, fuzzing, truth, goldens, mutated messages, faults (.ci/nightly STEP runs one)
	.ci/nightly
