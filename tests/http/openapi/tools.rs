//! schemathesis and redocly, if installed: schemathesis finds no mismatch between the API and its document on each
//! store, and redocly nothing wrong with the document. `make openapi-tools` installs both; `exceptions.json` lists
//! what they may find.

use std::path::{Path, PathBuf};
use std::process::Command;

use ringback_testkit::{Stack, StackOptions, variable};
use serde_json::Value;
use tokio::task::spawn_blocking;

use super::exceptions::exceptions;

/// How many cases are made up for each operation, unless `RINGBACK_TEST_CASES` says more. With that variable both
/// stores get the cases at the edges of the schemas too, of all operations; this takes minutes.
const CASES: &str = "8";
/// The seed of schemathesis, unless `RINGBACK_TEST_SEED` says another.
const SEED: &str = "1";
/// Operations whose edges are left out unless more is asked for: thousands, most of them those of a submit.
const MANY_EDGES: [&str; 2] = ["POST /v1/jobs/batch", "POST /v1/import"];

#[tokio::test]
async fn schemathesis_finds_no_mismatch_on_redis() {
    schemathesis(Stack::options().in_one_process(), "examples,fuzzing").await;
}

#[tokio::test]
async fn schemathesis_finds_no_mismatch_on_the_embedded_store() {
    schemathesis(Stack::options().in_one_process().store("embedded:data"), "examples,coverage").await;
}

#[tokio::test]
async fn redocly_finds_nothing_wrong_with_the_document() {
    let Some(tool) = installed("redocly") else { return };
    let stack = Stack::options().in_one_process().store("embedded:data").start().await;
    let document = stack.get("/openapi.json").await.json();
    let directory = tempfile::tempdir().expect("a directory");
    let (file, config) = (directory.path().join("openapi.json"), directory.path().join("redocly.yaml"));
    std::fs::write(&file, document.to_string()).expect("a file");
    std::fs::write(&config, redocly_config()).expect("a file");
    std::fs::write(directory.path().join(".redocly.lint-ignore.yaml"), ignored(&document)).expect("a file");
    let mut command = Command::new(tool);
    command.args(["lint", "--max-problems", "50"]).arg("--config").arg(config).arg(file);
    command
        .current_dir(directory.path())
        .env("REDOCLY_TELEMETRY", "off")
        .env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true");
    run(command).await;
}

async fn schemathesis(options: StackOptions, phases: &str) {
    let Some(tool) = installed("schemathesis") else { return };
    let stack = options.start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let config = directory.path().join("schemathesis.toml");
    std::fs::write(&config, schemathesis_config()).expect("a file");
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("http/openapi");
    let cases = variable::<String>("RINGBACK_TEST_CASES");
    let mut command = Command::new(tool);
    command.arg("--config-file").arg(config).args(["run", &stack.url("/openapi.json"), "--no-color"]);
    let phases = if cases.is_some() { "examples,coverage,fuzzing" } else { phases };
    command.args(["--url", &stack.url(""), "--phases", phases, "--continue-on-failure"]);
    for name in MANY_EDGES.iter().filter(|_| phases == "examples,coverage") {
        command.args(["--exclude-name", name]);
    }
    command.args(["--max-examples", cases.as_deref().unwrap_or(CASES)]);
    command.args(["--seed", variable::<String>("RINGBACK_TEST_SEED").as_deref().unwrap_or(SEED)]);
    command.current_dir(directory.path()).env("SCHEMATHESIS_HOOKS", here.join("schemathesis_hooks.py"));
    run(command).await;
}

/// The path of a tool in `target` or `PATH`; `None`, after a message, without it, and then the test does nothing.
#[expect(clippy::print_stdout, reason = "a test that is skipped says why")]
pub(super) fn installed(name: &str) -> Option<PathBuf> {
    let below = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/openapi-tools");
    let folders = [below.join("bin"), below.join("node_modules/.bin")];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = folders.into_iter().chain(std::env::split_paths(&path)).map(|place| place.join(name));
    let found = found.into_iter().find(|path| path.is_file());
    if found.is_none() {
        println!("skipped: {name} is not installed; `make openapi-tools` installs it");
    }
    found
}

/// Runs a tool and prints its output. Panics unless it succeeds.
#[expect(clippy::print_stdout, reason = "how many cases were tried")]
async fn run(command: Command) {
    println!("{}", output(command).await);
}

/// Runs a tool and returns its output. Panics unless it succeeds.
pub(super) async fn output(mut command: Command) -> String {
    let output = spawn_blocking(move || command.output()).await.expect("it ends").expect("it starts");
    let text =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "{text}");
    text
}

fn schemathesis_config() -> String {
    // The hooks have these checks in another form, which knows the exceptions.
    let mut config = "[cache]\nenabled = false\n\
        [checks]\npositive_data_acceptance.enabled = false\nnegative_data_rejection.enabled = false\n"
        .to_owned();
    for name in exceptions()["not sent"].as_array().expect("a list").iter().flat_map(operations) {
        config += &format!("[[operations]]\ninclude-name = \"{name}\"\nenabled = false\n");
    }
    config
}

fn redocly_config() -> String {
    let mut config = "extends: [recommended-strict]\nrules:\n".to_owned();
    for exception in exceptions()["linter"].as_array().expect("a list") {
        if operations(exception).any(|name| name == "*") {
            config += &format!("  {}: off\n", exception["rule"].as_str().expect("a rule"));
        }
    }
    config
}

/// The file in which redocly reads the places where a rule need not hold.
fn ignored(document: &Value) -> String {
    let mut text = "openapi.json:\n".to_owned();
    for exception in exceptions()["linter"].as_array().expect("a list") {
        let names: Vec<_> = operations(exception).filter(|name| *name != "*").collect();
        if !names.is_empty() {
            text += &format!("  {}:\n", exception["rule"].as_str().expect("a rule"));
        }
        for name in names {
            let (method, path) = name.split_once(' ').expect("a method and a path");
            let method = method.to_lowercase();
            assert!(document["paths"][path].get(&method).is_some(), "there is no {name}");
            text += &format!("    - '#/paths/{}/{method}/responses'\n", path.replace('/', "~1"));
        }
    }
    text
}

fn operations(exception: &Value) -> impl Iterator<Item = &str> {
    exception["operations"].as_array().into_iter().flatten().filter_map(Value::as_str)
}
