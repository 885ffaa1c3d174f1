//! Bugs that are planted in real processes, each in a short run of its own: the checker of histories must find each by
//! an invariant that it violates, and must find nothing in the same runs without a bug.
//!
//! `RINGBACK_TEST_PLANTED=all` runs all of them; by default a third does, chosen by the seed that is printed.

mod bugs;
mod disturbed;
mod locks;
mod plant;
mod scenario;

use std::collections::BTreeSet;
use std::sync::Arc;

use ringback_testkit::figures::{Figure, Reached};
use ringback_testkit::history::{Invariant, Report};
use ringback_testkit::{attempts, variable};
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, LocalSet};

use self::Scenario::{Calm, Disturbed};
use self::bugs::{BUGS, Bug};
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
    let chosen = BUGS.iter().copied().enumerate().filter(|(place, bug)| is_chosen(*place, bug.name));
    let chosen: Vec<_> = chosen.map(|(_, bug)| (Some(bug), bug.scenario)).collect();
    let count = chosen.len() as u64;
    show(&format!("seed {seed}: {count} bugs"));
    // The longer runs come first.
    let without = [(None, Disturbed), (None, Calm)];
    let mut runs: Vec<_> = without.into_iter().chain(chosen).collect();
    runs.sort_by_key(|(_, scenario)| *scenario == Calm);
    let wrong = LocalSet::new().run_until(judged(runs)).await;
    let caught = Reached::new(Figure::PlantedBugs, "planted bugs", count).of(count);
    caught.wrong(wrong.len() as u64).write();
    assert!(wrong.is_empty(), "seed {seed}: {}", wrong.join("\n"));
}

/// Makes runs, a few at a time. Returns a text for each run that panicked, whose bug was not found, or that found
/// something without a bug.
async fn judged(planned: Vec<(Option<Bug>, Scenario)>) -> Vec<String> {
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    let mut runs = JoinSet::new();
    for (bug, scenario) in planned {
        let permits = Arc::clone(&permits);
        runs.spawn_local(async move {
            let _permit = permits.acquire().await.expect("it is never closed");
            let report = match scenario {
                Calm => scenario::run(bug.as_ref()).await,
                Disturbed => disturbed::run(bug.as_ref()).await,
            };
            (bug, report)
        });
    }
    let mut wrong = Vec::new();
    while let Some(run) = runs.join_next().await {
        let (bug, report) = match run {
            Ok(run) => run,
            Err(error) => {
                wrong.push(error.to_string());
                continue;
            }
        };
        let found: BTreeSet<Invariant> =
            report.violations.iter().map(|violation| violation.invariant).collect();
        let (name, violated) = bug.map_or(("no bug", &[][..]), |bug| (bug.name, bug.violates));
        show(&format!("{name}: {found:?}"));
        let is_found = violated.iter().any(|wanted| found.contains(wanted));
        if bug.is_none() && !report.clean {
            attempts::remember(WITHOUT, &text(&report));
        }
        let is_wrong = if bug.is_some() { !is_found } else { !report.clean };
        if is_wrong {
            wrong.push(format!("{name}: expected {violated:?}, found {}", text(&report)));
        }
    }
    wrong
}

fn text(report: &Report) -> String {
    let violations: Vec<_> = report.violations.iter().map(ToString::to_string).collect();
    format!("{violations:#?}")
}

#[expect(clippy::print_stdout, reason = "the report is read by people")]
fn show(text: &str) {
    println!("{text}");
}
