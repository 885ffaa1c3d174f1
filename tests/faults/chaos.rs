//! A short run of the program `chaos` on Redis, a cluster and the embedded store, with a fresh seed, and runs with seeds
//! that failed once. The program checks the history and prints the report; the tests require that it finds nothing.
//!
//! `RINGBACK_TEST_CHAOS_SECONDS` is how long load and faults last, `RINGBACK_TEST_CHAOS_SEED` repeats a run.

use std::process::Output;

use ringback_testkit::{ProcessSpec, attempts, seed, server_binary, variable};

/// How long load and faults last, unless `RINGBACK_TEST_CHAOS_SECONDS` says another.
const SECONDS: u64 = 10;
/// The same where a run takes longer for its start or its end.
const SHORT: u64 = 5;

/// The exit status of `chaos` if the checker has found something. With any other the run itself has failed.
const VIOLATED: i32 = 1;

/// Arguments of runs that failed once, and what was wrong.
const FAILED_ONCE: [(&str, &str); 3] = [
    (
        "--store=redis --seconds=4 --seed=1 --faults=kill-api,kill-carrier,kill-notifier",
        "the checker took the first retry policy of a replaced job for that of its successor",
    ),
    (
        "--store=sentinel --seconds=10 --seed=961459481 --rate=60",
        "a replica that was parted from the others with the master confirmed in place of the one that took over",
    ),
    (
        "--store=embedded --seconds=10 --seed=3496681453 --rate=60",
        "the checker did not see that a process was killed between an answer and the end of its attempt",
    ),
];

#[test]
fn a_run_on_redis_violates_nothing() {
    fresh(&["--store=redis"], SECONDS);
}

#[test]
fn a_run_on_redis_that_loses_data_violates_nothing() {
    fresh(&["--store=redis", "--faults=wiped-redis,older-redis,torn-redis"], SHORT);
}

#[test]
fn a_run_on_a_cluster_violates_nothing() {
    fresh(&["--store=cluster"], SHORT);
}

#[test]
fn a_run_on_a_cluster_whose_connections_fail_and_that_is_parted_violates_nothing() {
    let network = "cut,swallow,blackhole,delay,half-close,cut-replies,one-way,hold,partition";
    fresh(&["--store=cluster", &format!("--faults={network}")], SHORT);
}

#[test]
fn a_run_on_the_embedded_store_violates_nothing() {
    fresh(&["--store=embedded"], SECONDS);
}

#[test]
fn runs_that_failed_once_violate_nothing() {
    for (args, why) in FAILED_ONCE {
        let args: Vec<_> = args.split(' ').map(str::to_owned).collect();
        clean(&args, &format!("{why}, and is again: "));
    }
}

#[test]
fn a_fault_that_a_store_cannot_have_is_refused() {
    let output = chaos(&["--faults=kill-everything".to_owned()]);
    assert_eq!(output.status.code(), Some(64), "{}", text(&output));
}

#[expect(clippy::print_stdout, reason = "the seed that repeats the run")]
fn fresh(args: &[&str], seconds: u64) {
    let seconds: u64 = variable("RINGBACK_TEST_CHAOS_SECONDS").unwrap_or(seconds);
    let seed = seed("RINGBACK_TEST_CHAOS_SEED");
    let mut args: Vec<_> = args.iter().map(|arg| (*arg).to_owned()).collect();
    args.extend([format!("--seconds={seconds}"), format!("--seed={seed}")]);
    let report = clean(&args, "");
    let first = report.lines().next().unwrap_or_default();
    let repeat = report.lines().find(|line| line.starts_with("repeat:")).unwrap_or_default();
    println!("{first}: clean; {repeat}");
}

/// Makes a run and asserts that nothing is violated. Returns its report. If it finds something, later attempts fail too.
fn clean(args: &[String], why: &str) -> String {
    let test = format!("chaos {}", args.join(" "));
    attempts::fail_if_found(&test);
    let output = chaos(args);
    let report = text(&output);
    if output.status.code() == Some(VIOLATED) {
        attempts::remember(&test, &report);
    }
    assert!(output.status.success(), "{why}{:?}: {report}", output.status);
    report
}

fn chaos(args: &[String]) -> Output {
    let spec = args.iter().fold(ProcessSpec::new("chaos"), |spec, arg| spec.arg(arg));
    let mut command = spec.command();
    command.env("REDIS_SERVER", server_binary()).output().expect("chaos is beside the tests")
}

fn text(output: &Output) -> String {
    let both = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8_lossy(&both).into_owned()
}
