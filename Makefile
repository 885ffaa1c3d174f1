# What is done with a checkout. `make` lists the targets.

.DEFAULT_GOAL := help
.PHONY: help up stack down demo test test-quick test-server figures chaos soak openapi-tools guard check docs bench advisories

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14

# Receivers on this machine, to which the address guard lets no callback go by default.
up stack: export RINGBACK_EGRESS_ALLOW ?= 127.0.0.0/8,::1
up stack: export RINGBACK_EGRESS_HOSTS ?= localhost

up: ## Start Ringback in the foreground: one process, API on 127.0.0.1:7411, data in ringback-data, callbacks to this machine allowed; Ctrl-C ends it
	cargo build --release --locked --package ringback
	@exec target/release/ringback up

stack: ## Start the local stack in the background: redis, api, two carriers, two notifiers; callbacks to this machine allowed
	cargo build --release --locked --workspace --bins
	@deploy/local/stack.sh start

down: ## End the local stack and keep its data
	@deploy/local/stack.sh stop

demo: ## Jobs that end in different ways, against what is up, and whether each arrived as it should
	@# Named with ringback, so that what `make up` has compiled is of use here.
	cargo build --release --locked --package ringback --package ringback-testkit --bin demo
	@target/release/demo

test: ## Get what the tests need, then run all of them
	cargo build --locked --workspace --bins
	@.ci/test

test-quick: ## Only the units, the contract in memory and on one Redis, and one end-to-end test of each part
	cargo build --locked --workspace --bins
	@.ci/test quick

# The tests whose result depends on the server, on SERVER=valkey-9.1 or another that deploy/local/redis-version.sh knows.
test-server: ## The contract and the faults on another server: SERVER=redis-8.0, valkey-8.0, valkey-8.1, valkey-9.0 or valkey-9.1
	cargo build --locked --workspace --bins
	@server=$$(deploy/local/redis-version.sh $(SERVER)) && REDIS_SERVER=$$server RINGBACK_TEST_TOPOLOGIES=all \
	  cargo test --locked --package e2e --test e2e -- contract::redis contract::cluster contract::sentinel redis_layout faults::

figures: ## What the last `make test` reached of each fault: kills, pauses, lost replies, recovery times
	@cargo run --quiet --locked --package ringback-testkit --bin figures

chaos: ## An installation under load and faults, and whether its history is right; SECONDS= SEED= STORE=redis, cluster, sentinel or embedded, ARGS=--help
	cargo build --locked --workspace --bins
	@server=$$(deploy/local/redis-server.sh) && REDIS_SERVER=$$server target/debug/chaos $(if $(SECONDS),--seconds=$(SECONDS)) \
	  $(if $(SEED),--seed=$(SEED)) $(if $(STORE),--store=$(STORE)) $(ARGS)

soak: ## The long forms of the tests, and chaos for an hour or for SECONDS=; ONLY= chooses by name
	cargo build --locked --workspace --bins
	@SOAK_SECONDS=$(or $(SECONDS),3600) SOAK_ONLY='$(ONLY)' .ci/soak

openapi-tools: ## Install schemathesis, redocly and two generators of clients below target/: with them, the tests check the OpenAPI document too
	@deploy/local/openapi-tools.sh

guard: ## Run only the tests of what a job costs in calls, memory, allocations and instructions; print the figures
	cargo build --locked --workspace --bins
	@.ci/test guard

check: ## Format, lints, rustdoc, shell and sample files, licences and bans
	@.ci/check

docs: ## Write docs/reference from the declarations of the code
	RINGBACK_WRITE_DOCS=1 cargo test --quiet --locked --package e2e --test tree reference

# What `make bench` builds; dev is enough to see that the benchmarks work.
BENCH_PROFILE ?= dist

bench: ## The benchmarks, in about twenty minutes; QUICK=1 only sees that they work, ARGS="drain idle" chooses
	cargo build --profile $(BENCH_PROFILE) --locked --workspace --bins
	@server=$$(deploy/local/redis-server.sh) && REDIS_SERVER=$$server \
	  target/$(if $(filter dev,$(BENCH_PROFILE)),debug,$(BENCH_PROFILE))/bench $(if $(QUICK),--quick) $(ARGS)

advisories: ## Look the dependencies up in the advisory database (needs the internet)
	cargo deny check advisories
