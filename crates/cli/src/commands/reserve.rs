//! `ringback reserve`: jobs of a topic that have no URL, with the receipts to settle them by.

use std::time::Duration;

use http::Method;
use ringback_core::wire::{MAX_WAIT, PulledAnswer, ReserveAnswer};
use serde::Serialize;
use serde_json::Value;

use super::{Session, parse};
use crate::args::{Format, ReserveArgs, Wait};
use crate::client::{Call, SHORT};
use crate::failure::Verdict;
use crate::output::{Align, Cell, Table, say};

/// The longest that an answer may take.
const WITHIN: Duration = MAX_WAIT.saturating_add(SHORT);

#[derive(Serialize)]
struct Ask {
    max: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttr: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wait: Option<Value>,
}

pub(super) async fn run(session: &mut Session, args: ReserveArgs) -> anyhow::Result<Verdict> {
    let value = |wait: Option<Wait>| wait.map(|Wait(value)| value);
    let ask = Ask { max: args.max, ttr: value(args.ttr), wait: value(args.wait) };
    let body = Some(("application/json", serde_json::to_vec(&ask)?.into()));
    let call = Call { body, ..Call::new(Method::POST, &["v1", "topics", &args.topic, "reserve"]) };
    let body = session.client.ask(call, WITHIN).await?.body;
    match session.out.format {
        Format::Json => session.json(&body)?,
        Format::Table => {
            let jobs = parse::<ReserveAnswer>(&body)?.jobs;
            if jobs.is_empty() {
                say("nothing is ready");
                return Ok(Verdict::Done);
            }
            let columns = [
                ("ID", Align::Left),
                ("ATTEMPT", Align::Right),
                ("DEADLINE", Align::Left),
                ("RECEIPT", Align::Left),
            ];
            let mut table = Table::new(columns, session.out.colour);
            let row = |job: PulledAnswer| {
                [Cell::from(job.id), job.attempt.into(), job.deadline.into(), job.receipt.into()]
            };
            let rows: Vec<_> = jobs.into_iter().map(row).collect();
            session.out.bytes(table.page(&rows).as_bytes())?;
        }
    }
    Ok(Verdict::Done)
}
