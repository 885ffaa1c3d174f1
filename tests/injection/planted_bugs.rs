//! Bugs that are planted in the real processes, by name, each in a short run of its own. The checker must find each
//! by the invariants that it violates, and must find nothing in the same run without a bug.
//!
//! `RINGBACK_TEST_PLANTED=all` runs all of them; by default a third does, chosen by the seed that is printed.

mod disturbed;
mod locks;
mod scenario;

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use ringback_testkit::figures::{Figure, Reached};
use ringback_testkit::history::{Invariant, Report};
use ringback_testkit::{attempts, variable};
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, LocalSet};

use Invariant::{
    I1, I2, I3, I4, I5, I6, I7, I8, I10, I11, I12, I13, I14, I15, I16, I17, I19, I21, I22, I23, I24,
};

use self::Scenario::{Calm, Disturbed};
use crate::seed::seed;

/// How many runs go on at the same time. Each has a server and three processes.
const AT_ONCE: usize = 4;

/// The name of the runs without a bug, for further attempts.
const WITHOUT: &str = "runs without a planted bug";

/// The runs, in each of which some of the bugs show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scenario {
    Calm,
    Disturbed,
}

/// Each bug, the run in which it shows, and the invariants of which it violates at least one; the first is what it is
/// about.
const BUGS: [(&str, Scenario, &[Invariant]); 51] = [
    ("accepted-not-counted", Calm, &[I11]),
    ("acknowledged-before-post", Calm, &[I1]),
    ("attempt-not-raised", Calm, &[I7]),
    ("attempts-counted-twice", Calm, &[I11]),
    ("body-serialised-again", Calm, &[I2]),
    ("broken-is-success", Calm, &[I12]),
    ("cancel-changes-nothing", Calm, &[I4]),
    ("cancel-ignores-reserved", Calm, &[I4]),
    ("client-error-is-gone", Calm, &[I16]),
    ("conflict-is-repetition", Calm, &[I14]),
    ("connection-kept-after-extra-bytes", Calm, &[I12]),
    ("counted-again-when-repeated", Disturbed, &[I11]),
    ("counted-outside-the-script", Disturbed, &[I11]),
    ("dead-letter-not-indexed", Calm, &[I10]),
    ("dead-letter-on-a-store-error", Calm, &[I12, I16]),
    ("delay-ignored", Calm, &[I3]),
    ("dropped-when-memory-is-full", Disturbed, &[I1, I23]),
    ("due-by-another-clock", Calm, &[I3]),
    ("due-time-missing", Calm, &[I19]),
    ("due-truncated-to-seconds", Calm, &[I3]),
    ("empty-store-accepted", Disturbed, &[I24]),
    ("expired-lease-kept", Calm, &[I17]),
    ("failures-counted-twice", Calm, &[I16]),
    ("fence-from-a-lost-counter", Disturbed, &[I7]),
    ("fence-not-compared", Disturbed, &[I7]),
    ("idempotency-key-ignored", Calm, &[I14]),
    ("idempotency-not-atomic", Calm, &[I14]),
    ("lease-is-timeout", Calm, &[I6, I8, I5, I16]),
    ("lease-too-short", Calm, &[I8, I13, I6, I11]),
    ("library-not-loaded-again", Disturbed, &[I17]),
    ("no-jitter", Calm, &[I6]),
    ("one-retry-too-few", Calm, &[I16]),
    ("one-retry-too-many", Calm, &[I5]),
    ("panic-at-a-broken-answer", Calm, &[I21]),
    ("popped-and-not-pushed", Calm, &[I1, I10]),
    ("promoted-early", Calm, &[I3]),
    ("query-cut-off", Calm, &[I2]),
    ("redirect-is-success", Calm, &[I12]),
    ("released-is-done", Calm, &[I1]),
    ("renewal-forgotten", Calm, &[I8]),
    ("repeated-submit-makes-a-job", Calm, &[I14]),
    ("retries-at-one-time", Calm, &[I6]),
    ("retry-after-ignored", Calm, &[I6]),
    ("retry-at-once", Calm, &[I6]),
    ("retry-not-scheduled", Calm, &[I10]),
    ("stale-receipt-accepted", Calm, &[I15]),
    ("success-is-released", Calm, &[I13]),
    ("timeout-is-success", Calm, &[I12]),
    ("two-call-move", Disturbed, &[I1, I10, I17]),
    ("webhook-id-per-attempt", Calm, &[I22]),
    ("webhook-timestamp-in-milliseconds", Calm, &[I22]),
];

#[tokio::test]
async fn each_planted_bug_is_found_by_what_it_violates_and_nothing_without_one() {
    attempts::fail_if_found(WITHOUT);
    let seed = seed();
    let which = variable::<String>("RINGBACK_TEST_PLANTED");
    let share = usize::try_from(seed % 3).expect("it is small");
    let is_chosen = |place: usize, name: &str| match which.as_deref() {
        None => place % 3 == share,
        Some("all") => true,
        Some(wanted) => name == wanted,
    };
    let chosen = BUGS.iter().enumerate().filter(|(place, (name, ..))| is_chosen(*place, name));
    let chosen: Vec<_> =
        chosen.map(|(_, (name, scenario, violated))| (Some(*name), *scenario, *violated)).collect();
    let count = chosen.len() as u64;
    show(&format!("seed {seed}: {count} bugs"));
    // The longer runs come first.
    let without = [(None, Disturbed, &[][..]), (None, Calm, &[][..])];
    let mut runs: Vec<_> = without.into_iter().chain(chosen).collect();
    runs.sort_by_key(|(_, scenario, _)| *scenario == Calm);
    let wrong = LocalSet::new().run_until(judged(runs)).await;
    let caught = Reached::new(Figure::PlantedBugs, "planted bugs", count).of(count);
    caught.wrong(wrong.len() as u64).write();
    assert!(wrong.is_empty(), "seed {seed}: {}", wrong.join("\n"));
}

/// Makes some runs. Returns those whose report is not as it must be.
async fn judged(planned: Vec<(Option<&'static str>, Scenario, &'static [Invariant])>) -> Vec<String> {
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    let mut runs = JoinSet::new();
    for (bug, scenario, violated) in planned {
        let permits = Arc::clone(&permits);
        runs.spawn_local(async move {
            let _permit = permits.acquire().await.expect("it is never closed");
            let report = match scenario {
                Calm => scenario::run(bug).await,
                Disturbed => disturbed::run(bug).await,
            };
            (bug, violated, report)
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
        if bug.is_none() && !report.clean {
            attempts::remember(WITHOUT, &text(&report));
        }
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
    let mut listed: Vec<_> = BUGS.iter().map(|(name, ..)| (*name).to_owned()).collect();
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
