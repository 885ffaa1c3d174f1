//! `ringback reserve`: reserves pull jobs of a topic and prints their receipts.

use std::time::Duration;

use http::Method;
use ringback_core::wire::{MAX_WAIT, PulledAnswer, ReserveAnswer};

use super::session::{Session, object, parse};
use crate::args::{Format, ReserveArgs, Wait};
use crate::client::{Call, SHORT};
use crate::failure::Verdict;
use crate::output::{Align, Cell, Table, note};

/// The limit of the call: the longest wait of the API, and some time for the response.
const CALL_TIMEOUT: Duration = MAX_WAIT.saturating_add(SHORT);

pub(crate) async fn run(session: &mut Session, args: ReserveArgs) -> anyhow::Result<Verdict> {
    let value = |wait: Option<Wait>| wait.map(|Wait(value)| value);
    let ask = [("max", Some(args.max.into())), ("ttr", value(args.ttr)), ("wait", value(args.wait))];
    let call = Call::topic(Method::POST, &args.of.topic, &["reserve"]).json(&object(ask));
    let body = session.client.ask(call, CALL_TIMEOUT).await?.body;
    if session.out.format == Format::Table && parse::<ReserveAnswer>(&body)?.jobs.is_empty() {
        note("no job is ready");
        return Ok(Verdict::Done);
    }
    let columns =
        [("ID", Align::Left), ("ATTEMPT", Align::Right), ("DEADLINE", Align::Left), ("RECEIPT", Align::Left)];
    session.print(&body, |answer: &ReserveAnswer, view| {
        let row = |job: &PulledAnswer| {
            [Cell::from(&job.id), job.attempt.into(), Cell::from(&job.deadline), Cell::from(&job.receipt)]
        };
        Table::new(columns, view.colour).page(&answer.jobs.iter().map(row).collect::<Vec<_>>())
    })
}
