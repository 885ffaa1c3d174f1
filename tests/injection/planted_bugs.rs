//! Bugs that are planted in the real processes, by name, each in a short run of its own. The checker must find each
//! by the invariants that it violates, and must find nothing in the same run without a bug.
//!
//! `RINGBACK_TEST_PLANTED=all` runs all of them; by default a third does, chosen by the seed that is printed.

mod scenario;

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use ringback_testkit::figures::{Figure, Reached};
use ringback_testkit::history::{Invariant, Report};
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, LocalSet};

use Invariant::{I1, I2, I3, I4, I5, I6, I7, I8, I10, I11, I12, I13, I14, I15, I16, I17, I19, I21, I22};

use crate::seed::seed;

/// How many runs go on at the same time. Each has a server and three processes.
const AT_ONCE: usize = 4;

/// Each bug, and the invariants of which it violates at least one; the first is what it is about.
const BUGS: [(&str, &[Invariant]); 38] = [
    ("accepted-not-counted", &[I11]),
    ("acknowledged-before-post", &[I1]),
    ("attempt-not-raised", &[I7]),
    ("attempts-counted-twice", &[I11]),
    ("body-serialised-again", &[I2]),
    ("broken-is-success", &[I12]),
    ("cancel-changes-nothing", &[I4]),
    ("cancel-ignores-reserved", &[I4]),
    ("client-error-is-gone", &[I16]),
    ("conflict-is-repetition", &[I14]),
    ("dead-letter-not-indexed", &[I10]),
    ("dead-letter-on-a-store-error", &[I12, I16]),
    ("delay-ignored", &[I3]),
    ("due-time-missing", &[I19]),
    ("due-truncated-to-seconds", &[I3]),
    ("expired-lease-kept", &[I17]),
    ("failures-counted-twice", &[I16]),
    ("idempotency-key-ignored", &[I14]),
    ("lease-too-short", &[I8, I13, I6, I11]),
    ("no-jitter", &[I6]),
    ("one-retry-too-few", &[I16]),
    ("one-retry-too-many", &[I5]),
    ("panic-at-a-broken-answer", &[I21]),
    ("popped-and-not-pushed", &[I1, I10]),
    ("promoted-early", &[I3]),
    ("query-cut-off", &[I2]),
    ("redirect-is-success", &[I12]),
    ("released-is-done", &[I1]),
    ("renewal-forgotten", &[I8]),
    ("repeated-submit-makes-a-job", &[I14]),
    ("retry-after-ignored", &[I6]),
    ("retry-at-once", &[I6]),
    ("retry-not-scheduled", &[I10]),
    ("stale-receipt-accepted", &[I15]),
    ("success-is-released", &[I13]),
    ("timeout-is-success", &[I12]),
    ("webhook-id-per-attempt", &[I22]),
    ("webhook-timestamp-in-milliseconds", &[I22]),
];

#[tokio::test]
async fn each_planted_bug_is_found_by_what_it_violates_and_nothing_without_one() {
    let seed = seed();
    let which = std::env::var_os("RINGBACK_TEST_PLANTED").and_then(|which| which.into_string().ok());
    let share = usize::try_from(seed % 3).expect("it is small");
    let is_chosen = |place: usize, name: &str| match which.as_deref() {
        None => place % 3 == share,
        Some("all") => true,
        Some(wanted) => name == wanted,
    };
    let chosen = BUGS.iter().enumerate().filter(|(place, (name, _))| is_chosen(*place, name));
    let chosen: Vec<_> = chosen.map(|(_, (name, violated))| (Some(*name), *violated)).collect();
    let count = chosen.len() as u64;
    show(&format!("seed {seed}: {count} bugs"));
    let runs = [(None, &[][..])].into_iter().chain(chosen);
    let wrong = LocalSet::new().run_until(judged(runs)).await;
    let caught = Reached::new(Figure::PlantedBugs, "planted bugs", count).of(BUGS.len() as u64);
    caught.wrong(wrong.len() as u64).write();
    assert!(wrong.is_empty(), "seed {seed}: {}", wrong.join("\n"));
}

/// Makes some runs. Returns those whose report is not as it must be.
async fn judged(planned: impl Iterator<Item = (Option<&'static str>, &'static [Invariant])>) -> Vec<String> {
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    let mut runs = JoinSet::new();
    for (bug, violated) in planned {
        let permits = Arc::clone(&permits);
        runs.spawn_local(async move {
            let _permit = permits.acquire().await.expect("it is never closed");
            (bug, violated, scenario::run(bug).await)
        });
    }
    let mut wrong = Vec::new();
    while let Some(run) = runs.join_next().await {
        let (bug, violated, report) = match run {
            Ok(run) => run,
            Err(error) => {
                wrong.push(error.to_string());
                continue;
            }
        };
        let found: BTreeSet<Invariant> =
            report.violations.iter().map(|violation| violation.invariant).collect();
        let name = bug.unwrap_or("no bug");
        show(&format!("{name}: {found:?}"));
        let is_found = violated.iter().any(|wanted| found.contains(wanted));
        if if bug.is_some() { !is_found } else { !report.clean } {
            wrong.push(format!("{name}: expected {violated:?}, found {}", text(&report)));
        }
    }
    wrong
}

fn text(report: &Report) -> String {
    let violations: Vec<_> = report.violations.iter().map(ToString::to_string).collect();
    format!("{violations:#?}")
}

#[test]
fn each_bug_in_the_source_is_planted_once() {
    let mut listed: Vec<_> = BUGS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let mut found = Vec::new();
    for file in crate::sources::sources() {
        let text = fs::read_to_string(&file).expect("a source file");
        found.extend(names_after(&text, "is_planted!(\""));
        if file.ends_with("store-redis/src/planted.rs") {
            let table = text.split("plant! { library:").nth(1).expect("the table");
            let first = table.lines().filter(|line| line.trim_start().starts_with('"'));
            let first = first.filter_map(|line| line.split('"').nth(1)).map(str::to_owned);
            found.extend(first.filter(|name| listed.contains(name)));
        }
    }
    found.sort();
    found.dedup();
    listed.sort();
    assert_eq!(found, listed);
}

/// The literals that follow a text.
fn names_after(text: &str, before: &str) -> Vec<String> {
    text.split(before).skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
}

#[expect(clippy::print_stdout, reason = "the report is read by people")]
fn show(text: &str) {
    println!("{text}");
}
