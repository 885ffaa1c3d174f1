//! When a process must notice that its store lost data, and when an alarm about a loss is wrong.

use super::report;
use crate::history::{Invariant, InvariantResult};

/// The data are gone at 2 s; the store answers again at 4 s, and the loss is accepted at 7 s.
const LOSS: &str = r#"{"start":{"t":0,"wall":1795000000000000}}
{"fault":{"t":1500000,"f":1,"kind":"wiped-redis","class":"store"}}
{"loss":{"t":2000000,"since":0,"answered":4000000}}
{"fault":{"t":2500000,"f":2,"kind":"lost-data","class":"amnesia"}}
{"healed":{"t":7000000,"f":2}}
{"healed":{"t":9000000,"f":1}}
"#;

/// The result of the invariant if processes report at these times that the store lost data. Asserts that no other
/// invariant is violated.
fn verdict(lines: &str, alarms: &[u64]) -> InvariantResult {
    let alarms: String =
        alarms.iter().map(|t| format!("{{\"alarm\":{{\"t\":{t},\"pid\":101}}}}\n")).collect();
    let report = report(format!("{lines}{alarms}").as_bytes());
    let violations = report.violations.iter().filter(|one| one.invariant == Invariant::LossNoticed).count();
    assert_eq!(violations, report.violations.len(), "{report}");
    report.standing(Invariant::LossNoticed).verdict
}

#[test]
fn a_loss_is_noticed_soon_after_the_first_answer() {
    for alarm in [2_600_000, 4_100_000, 6_500_000] {
        assert_eq!(verdict(LOSS, &[alarm]), InvariantResult::Held, "{alarm}");
    }
    assert_eq!(verdict(LOSS, &[]), InvariantResult::Violated);
    assert_eq!(verdict(LOSS, &[6_500_001]), InvariantResult::Violated);
    let unknown = LOSS.replace(",\"answered\":4000000", "");
    assert_eq!(verdict(&unknown, &[5_000_000]), InvariantResult::Held);
    assert_eq!(
        verdict(&unknown, &[5_000_001]),
        InvariantResult::Violated,
        "counted from the begin of the fault"
    );
    let earlier =
        unknown.replace("\"f\":1}}\n", "\"f\":1}}\n{\"loss\":{\"t\":1,\"since\":1,\"answered\":9}}\n");
    assert_eq!(verdict(&earlier, &[5_000_001]), InvariantResult::Violated, "another loss does not count");
}

#[test]
fn time_in_which_the_machine_or_the_store_stood_still_does_not_count() {
    let stalled = |since: u64, t: u64| format!("{LOSS}{{\"stall\":{{\"t\":{t},\"since\":{since}}}}}\n");
    // Stalls that began before the store answered, and within the limit.
    for (since, t, last) in [(3_000_000, 4_500_000, 7_000_000), (4_900_000, 6_000_000, 7_600_000)] {
        assert_eq!(verdict(&stalled(since, t), &[last]), InvariantResult::Held, "{since}");
        assert_eq!(verdict(&stalled(since, t), &[last + 1]), InvariantResult::Violated, "{since}");
    }
    // Time in which both the machine and the store stood still counts once.
    let both = stalled(4_900_000, 6_000_000)
        + "{\"stall\":{\"t\":6500000,\"since\":5500000,\"of\":\"store\"}}\n"
        + "{\"stall\":{\"t\":5900000,\"since\":5800000,\"of\":\"store\"}}\n";
    assert_eq!(verdict(&both, &[8_100_000]), InvariantResult::Held);
    assert_eq!(verdict(&both, &[8_100_001]), InvariantResult::Violated);
    // Stalls before the limit began, and too late.
    for (since, t) in [(3_000_000, 4_000_000), (6_500_000, 7_500_000)] {
        assert_eq!(verdict(&stalled(since, t), &[6_500_001]), InvariantResult::Violated, "{since}");
    }
}

#[test]
fn nobody_speaks_of_a_loss_before_it_or_long_after_it_was_accepted() {
    let in_time = 4_500_000;
    for alarm in [2_000_000, 9_000_000, 11_500_000] {
        assert_eq!(verdict(LOSS, &[in_time, alarm]), InvariantResult::Held, "{alarm}");
    }
    for alarm in [1_999_999, 11_500_001, 60_000_000] {
        assert_eq!(verdict(LOSS, &[in_time, alarm]), InvariantResult::Violated, "{alarm}");
    }
    // A loss of data that no replica had does not explain the alarm.
    let failed_over = r#"{"start":{"t":0,"wall":1795000000000000}}
{"fault":{"t":1500000,"f":1,"kind":"kill-master","class":"store"}}
{"loss":{"t":2000000,"since":2000000}}
{"healed":{"t":9000000,"f":1}}
"#;
    assert_eq!(verdict(failed_over, &[2_100_000]), InvariantResult::Violated);
}
