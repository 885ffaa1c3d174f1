//! Instructions per operation, counted by valgrind on the build for tests: compare the figures only with themselves.

use std::process::{Child, Command, Stdio};

use crate::table::Table;
use crate::{bounds, turn};

/// The operations, which are in `operations.rs`, and how often each is done in the shorter of two runs.
const PARSE: (&str, u64) = ("parse", 50);
const DELAY: (&str, u64) = ("delay", 2_000);
const LIFE: (&str, u64) = ("life", 10);

#[tokio::test]
async fn no_operation_takes_more_instructions_than_it_may() {
    let _turn = turn().await;
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("instructions are left out: there is no valgrind (apt-get install valgrind)");
        return;
    }
    let mut table = Table::default();
    table.row(bounds::PARSE_INSTRUCTIONS, per_operation(PARSE));
    table.row(bounds::DELAY_INSTRUCTIONS, per_operation(DELAY));
    table.row(bounds::LIFE_INSTRUCTIONS, per_operation(LIFE));
    table.judge();
}

/// The instructions of one operation, without those of start and end: from the difference of two runs.
fn per_operation((name, times): (&str, u64)) -> f64 {
    let [short, long] = [times, times * 2].map(|times| start(name, times)).map(instructions);
    (long - short) as f64 / times as f64
}

fn start(name: &str, times: u64) -> Child {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    valgrind.arg(env!("CARGO_BIN_EXE_budgets-operations")).args([name, &times.to_string()]);
    valgrind.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("valgrind starts")
}

fn instructions(run: Child) -> u64 {
    let output = run.wait_with_output().expect("valgrind ends");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    let number = text.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok());
    number.unwrap_or_else(|| panic!("no count in {text}"))
}
