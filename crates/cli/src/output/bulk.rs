//! Renders bulk operations as rows and details, and the results of dry runs, as text.

use ringback_wire::{BulkResponse, DryRunResponse, FilterDetails};
use serde_json::Value;

use super::job::{JOB_COLUMNS, job_row, state, whose};
use super::{Cell, Table, View};

/// The row of a bulk operation in a list.
pub(crate) fn bulk_row(bulk: &BulkResponse, view: &View) -> [Cell; 8] {
    [
        Cell::from(whose(bulk.tenant.as_deref(), &bulk.id)),
        Cell::from(&bulk.action),
        state(&bulk.state),
        Cell::from(bulk.changed),
        Cell::from(bulk.rate),
        Cell::from(view.time(&bulk.started_at)),
        Cell::from(view.relative(&bulk.started_at)),
        Cell::from(written(&bulk.filter)),
    ]
}

/// The details of a bulk operation, one per line.
pub(crate) fn bulk_details(bulk: &BulkResponse, view: &View) -> String {
    let time = |time: &str| Cell::from(view.both(time));
    let mut rows = vec![
        [Cell::from("operation"), Cell::from(&bulk.id)],
        [Cell::from("action"), Cell::from(&bulk.action)],
        [Cell::from("filter"), Cell::from(written(&bulk.filter))],
        [Cell::from("state"), state(&bulk.state)],
        [Cell::from("changed"), Cell::from(bulk.changed)],
        [Cell::from("rate"), Cell::from(format!("{}/s", bulk.rate))],
        [Cell::from("started"), time(&bulk.started_at)],
    ];
    rows.extend(bulk.ended_at.as_deref().map(|at| [Cell::from("ended"), time(at)]));
    rows.extend(bulk.delay_ms.map(|ms| [Cell::from("delay"), Cell::from(format!("{ms} ms"))]));
    rows.extend(bulk.at.as_deref().map(|at| [Cell::from("due"), time(at)]));
    rows.extend(bulk.died_after.as_deref().map(|at| [Cell::from("died after"), time(at)]));
    rows.extend(bulk.died_before.as_deref().map(|at| [Cell::from("died before"), time(at)]));
    Table::new([""; 2], view.colour).page(&rows)
}

/// The result of a dry run: a sentence with the number of jobs, and a table of the examples.
pub(crate) fn dry_run(action: &str, answer: &DryRunResponse, view: &View) -> String {
    let DryRunResponse { count, exact, examples, examined } = answer;
    let sentence = if *exact {
        format!("{action} would change {count} jobs\n")
    } else {
        let from = examined.map_or_else(String::new, |examined| format!(" from {examined}"));
        format!("{action} would change about {count} jobs, by an estimate{from}\n")
    };
    if examples.is_empty() {
        return sentence;
    }
    let rows: Vec<_> = examples.iter().map(|job| job_row(job, view)).collect();
    format!("{sentence}\n{}", Table::new(JOB_COLUMNS, view.colour).page(&rows))
}

fn written(filter: &FilterDetails) -> String {
    let Ok(Value::Object(fields)) = serde_json::to_value(filter) else { return String::new() };
    if fields.is_empty() {
        return "--all".to_owned();
    }
    let flag = |(name, value): (&String, &Value)| {
        let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
        format!("--{} {text}", name.replace('_', "-"))
    };
    fields.iter().map(flag).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation() -> BulkResponse {
        BulkResponse {
            id: "0123456789abcdef".to_owned(),
            tenant: None,
            action: "cancel".to_owned(),
            filter: FilterDetails {
                tag: Some("customer:42".to_owned()),
                status: Some(503),
                created_before: Some("2025-11-20T00:00:00.000Z".to_owned()),
                ..FilterDetails::default()
            },
            state: "running".to_owned(),
            changed: 17,
            rate: 100,
            started_at: "2025-11-20T00:53:20.000Z".to_owned(),
            ended_at: None,
            died_after: None,
            died_before: None,
            delay_ms: None,
            at: None,
        }
    }

    #[test]
    fn an_operation_is_shown_with_its_filter_as_flags() {
        let text = bulk_details(&operation(), &View::plain(1_763_600_060_000));
        let expected = "\
operation  0123456789abcdef
action     cancel
filter     --created-before 2025-11-20T00:00:00.000Z --status 503 --tag customer:42
state      running
changed    17
rate       100/s
started    2025-11-20T00:53:20.000Z (1m ago)
";
        assert_eq!(text, expected);
        assert_eq!(written(&FilterDetails::default()), "--all");
    }

    #[test]
    fn a_dry_run_says_whether_its_number_is_exact() {
        let answer = |exact| DryRunResponse { count: 12, exact, examples: Vec::new(), examined: Some(500) };
        let view = View::plain(0);
        assert_eq!(dry_run("cancel", &answer(true), &view), "cancel would change 12 jobs\n");
        let estimate = "purge would change about 12 jobs, by an estimate from 500\n";
        assert_eq!(dry_run("purge", &answer(false), &view), estimate);
    }
}
