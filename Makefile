# What is done with a checkout. `make` lists the targets.

.DEFAULT_GOAL := help
.PHONY: help up stack down demo test guard check advisories

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14

up: ## Start Ringback in the foreground: one process, API on 127.0.0.1:7411, data in ringback-data; Ctrl-C ends it
	cargo build --release --locked --package ringback
	@exec target/release/ringback up

stack: ## Start the local stack in the background: redis, api, two carriers, two notifiers
	cargo build --release --locked --workspace --bins
	@deploy/local/stack.sh start

down: ## End the local stack and keep its data
	@deploy/local/stack.sh stop

demo: ## Jobs of each kind against what is up, and whether all arrived as they should
	@# Named with ringback, so that what `make up` has compiled is of use here.
	cargo build --release --locked --package ringback --package ringback-testkit --bin demo
	@target/release/demo

test: ## Get what the tests need, then run all of them
	cargo build --locked --workspace --bins
	@.ci/test

guard: ## Of the tests, those of what a job costs in calls, memory, allocations and instructions; prints the figures
	cargo build --locked --workspace --bins
	@.ci/test guard

check: ## Format, lints, rustdoc, shell and sample files, licences and bans
	@.ci/check

advisories: ## Look the dependencies up in the advisory database (needs the internet)
	cargo deny check advisories
