//! The report: counts, times, text and JSON; and files that cannot be read.

use super::{history, report};
use crate::history::{Report, check};

#[test]
fn the_report_counts_what_the_history_has() {
    let report = report(&history(1, 3_000, true));
    let totals = &report.totals;
    assert!(totals.jobs >= 3_000, "{totals:?}");
    assert!(totals.deliveries > 2_000 && totals.leases > 300 && totals.unknown_outcomes > 50, "{totals:?}");
    assert_eq!((totals.kills, totals.faults.values().sum::<u64>()), (1, 4));
    assert_eq!((totals.lost, totals.early, totals.invented, totals.duplicates_unexplained), (0, 0, 0, 0));
    assert!(totals.duplicates_explained > 20, "{totals:?}");
    let late = report.lateness_ms;
    assert!(late.p50 > 0.1 && late.p50 < 5.0 && late.max >= late.p99_9 && late.p99_9 >= late.p99, "{late:?}");
    let killed = &report.lateness_by_fault_ms["kill-notifier"];
    assert!(killed.max > 1_000.0, "jobs whose notifier was killed are late: {killed:?}");
    assert!(report.recovery_ms["kill-notifier"].max > 0.0);
    assert_eq!(report.recovery_ms["empty-redis"].without_effect, 1);
}

#[test]
fn the_report_is_text_and_json() {
    let report = report(&history(1, 200, true));
    let text = report.to_string();
    assert!(text.contains("NothingLost           held ") && text.ends_with("clean\n"), "{text}");
    let json = serde_json::to_vec(&report).expect("it can be written");
    let back: Report = serde_json::from_slice(&json).expect("it can be read");
    assert_eq!(back.to_string(), text);
}

#[test]
fn what_cannot_be_read_is_named_by_its_line() {
    let start = r#"{"start":{"t":0,"wall":1795000000000000}}"#;
    for (line, rest, wanted) in [
        (1, "", "empty"),
        (1, "{\"end\":{\"t\":1,\"dumped\":true,\"drained\":true}}\n", "not a start"),
        (2, &format!("{start}\n{start}\n"), "second start"),
        (2, &format!("{start}\n{{\"surprise\":{{\"t\":1}}}}\n"), "unknown variant"),
        (2, &format!("{start}\n{{\"healed\":{{\"t\":1,\"f\":1,\"g\":1}}}}\n"), "unknown field"),
        (2, &format!("{start}\n{{\"healed\":{{\"t\":1,\"f\":1}}}}\n"), "no fault"),
        (2, &format!("{start}\n{{\"fail\":{{\"t\":1,\"n\":1,\"status\":409}}}}\n"), "no call"),
        (2, &format!("{start}\n{{\"respond\":{{\"t\":1,\"d\":1,\"status\":200}}}}\n"), "no delivery"),
        (2, &format!("{start}\n{{\"end\":{{\"t\":1"), "no end"),
        (
            3,
            &format!("{start}\n{{\"reserve\":{{\"t\":1,\"n\":1}}}}\n{{\"reserve\":{{\"t\":1,\"n\":1}}}}\n"),
            "under way",
        ),
    ] {
        let unreadable = check(rest.as_bytes()).expect_err(rest);
        assert_eq!(unreadable.line, line, "{unreadable}");
        assert!(unreadable.why.contains(wanted), "{unreadable}");
    }
}
