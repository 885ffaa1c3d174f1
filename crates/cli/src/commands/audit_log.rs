//! `ringback audit-log`: lists who has changed what by calls of the API.

use clap::Args;
use ringback_wire::{AuditLogEntry, AuditLogOutcome};
use serde_json::Value;

use super::pages::{self, List};
use super::session::Session;
use crate::args::{Page, values};
use crate::failure::CommandOutcome;
use crate::output::{Cell, Table, View};

const EXAMPLES: &str = "\
Examples:
  ringback audit-log
  ringback audit-log --topic pay.notify --after 2026-11-20T00:00:00Z
  ringback audit-log --operation put_policy --json | jq '{at, who, before, after}'
  ringback audit-log --who key:key_01KAR8Z6V5Q0M5W8C1T3N9X2YB --all

The newest calls come first. Submits, and what consumers do with jobs, are not in it. A key needs the scope manage.";

/// The most characters of a change in a row.
const MAX_CHANGE: usize = 120;

/// The filter and the size of the list.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AuditLogArgs {
    /// Only calls about this topic
    #[arg(long, value_parser = values::topic)]
    topic: Option<String>,
    /// Only calls of this operation, such as cancel, pause or import
    #[arg(long, value_name = "OPERATION")]
    operation: Option<String>,
    /// Only calls of this caller: key: and the id of a key, root, or open where there is no root key
    #[arg(long, value_name = "WHO")]
    who: Option<String>,
    /// Only calls at this time or later (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    after: Option<String>,
    /// Only calls before this time (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    before: Option<String>,
    #[command(flatten)]
    page: Page,
}

pub(crate) async fn run(session: &mut Session, args: AuditLogArgs) -> anyhow::Result<CommandOutcome> {
    let AuditLogArgs { topic, operation, who, after, before, page } = args;
    let filter =
        [("topic", topic), ("operation", operation), ("who", who), ("after", after), ("before", before)];
    let query = filter.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    let path = ["v1", "audit-log"];
    let list = List {
        path: &path,
        query,
        limit: page.limit(),
        of: "calls in the audit log",
        feature: "the audit log",
    };
    let columns = ["AT", "", "WHO", "FROM", "TENANT", "OPERATION", "TARGET", ">COUNT", "CHANGE"];
    let table = Table::new(columns, session.out.colour);
    pages::print(session, list, table, row).await
}

fn row(entry: &AuditLogEntry, view: &View) -> [Cell; 9] {
    let target: Vec<_> = entry.target.parts().map(|(name, part)| format!("{name}={part}")).collect();
    let optional = |text: &Option<String>| Cell::from(text.as_deref().unwrap_or_default());
    [
        Cell::from(view.time(&entry.at)),
        Cell::from(view.relative(&entry.at)),
        Cell::from(&entry.who),
        optional(&entry.address),
        optional(&entry.tenant),
        Cell::from(&entry.operation),
        Cell::from(target.join(" ")),
        Cell::from(entry.count.map(|count| count.to_string()).unwrap_or_default()),
        Cell::from(change(entry)),
    ]
}

fn change(entry: &AuditLogEntry) -> String {
    if entry.outcome == AuditLogOutcome::Unknown {
        return "its outcome is unknown".to_owned();
    }
    let json = |value: &Option<Value>| value.as_ref().map(ToString::to_string);
    let change = match (json(&entry.before), json(&entry.after)) {
        (Some(before), Some(after)) => format!("{before} -> {after}"),
        (before, after) => before.or(after).unwrap_or_default(),
    };
    match change.char_indices().nth(MAX_CHANGE) {
        Some((cut, _)) => format!("{}…", &change[..cut]),
        None => change,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Colour;

    #[test]
    fn an_entry_is_a_row_whatever_texts_it_has() {
        let json = r#"{"id":"01ARYZ6S41TSV4RRFFQ69G5FAV","at":"2025-11-20T00:53:20.000Z","who":"root","address":"::1","tenant":null,
            "operation":"pause","target":{"topic":"a\u001b[31m\nb"},"before":{"paused":false},"after":{"paused":true},
            "count":null,"outcome":"done","trace_id":null}"#;
        let mut entry: AuditLogEntry = serde_json::from_str(json).unwrap();
        assert_eq!(change(&entry), r#"{"paused":false} -> {"paused":true}"#);
        let view = View::plain(1_763_600_060_000);
        let text = Table::new([""; 9], Colour::No).page(&[row(&entry, &view)]);
        assert!(!text.contains('\u{1b}') && text.trim_end().lines().count() == 1, "{text:?}");
        entry.after = Some("x".repeat(1_000).into());
        assert!(change(&entry).chars().count() == MAX_CHANGE + 1);
        entry.outcome = AuditLogOutcome::Unknown;
        assert!(change(&entry).contains("unknown"));
    }
}
