# What is done with a checkout. `make` lists the targets.

.DEFAULT_GOAL := help
.PHONY: help up stack down demo test check advisories

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14

up: ## Start Ringback in the foreground, API on 127.0.0.1:7411; Ctrl-C ends it
	cargo build --release --locked --workspace --bins
	@deploy/local/stack.sh up

stack: ## Start the local stack in the background: redis, api, two carriers, two notifiers
	cargo build --release --locked --workspace --bins
	@deploy/local/stack.sh start

down: ## End the local stack and keep its data
	@deploy/local/stack.sh stop

demo: ## Jobs of each kind against what is up, and whether all arrived as they should
	cargo build --release --locked --workspace --bins
	@target/release/demo

test: ## Get what the tests need, then run all of them
	cargo build --locked --workspace --bins
	@.ci/test

check: ## Format, lints, rustdoc, shell and sample files, licences and bans
	@.ci/check

advisories: ## Look the dependencies up in the advisory database (needs the internet)
	cargo deny check advisories
