//! Histories that are right are accepted.

use super::lines::Lines;
use super::{history, report};
use crate::history::{Invariant, InvariantResult};

#[test]
fn right_histories_are_clean() {
    for seed in 0..12 {
        for has_faults in [false, true] {
            let report = report(&history(seed, 900, has_faults));
            assert!(report.clean, "seed {seed}: {report}");
        }
    }
}

#[test]
fn a_history_with_faults_brings_data_for_all_invariants() {
    let report = report(&history(1, 3_000, true));
    for standing in &report.invariants {
        assert_eq!(standing.verdict, InvariantResult::Held, "{:?}", standing.invariant);
    }
}

#[test]
fn a_history_of_several_stretches_is_clean() {
    let report = report(&history(2, 30_000, true));
    assert!(report.clean, "{report}");
    assert_eq!(report.totals.kills, 2, "one in each stretch");
}

#[test]
fn lines_of_receivers_may_come_late() {
    let mut lines = Lines::read(&history(3, 900, true));
    lines.move_to_end(&["arrive", "respond", "fault", "healed", "clock"]);
    // The end of a delivery and of a fault still comes after its begin.
    let report = report(&lines.text());
    assert!(report.clean, "{report}");
}

#[test]
fn what_a_history_has_no_data_for_is_not_checked() {
    let text = r#"{"start":{"t":0,"wall":1795000000000000}}
{"submit":{"t":10,"n":1,"job":"a/1","body":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","headers":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","url":"http://h/"}}
{"ok":{"t":20,"n":1,"status":201,"job":"a/1"}}
"#;
    let report = report(text.as_bytes());
    assert!(report.clean, "{report}");
    let verdict = |standing: &crate::history::Standing| standing.verdict;
    let checked: Vec<_> =
        report.invariants.iter().filter(|one| verdict(one) != InvariantResult::NotChecked).collect();
    assert!(checked.is_empty(), "without deliveries and an end nothing can be said: {checked:?}");
    assert_eq!(report.standing(Invariant::NothingLost).checks, 0);
    assert_eq!((report.totals.jobs, report.totals.accepted), (1, 1));
}
