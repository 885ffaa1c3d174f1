//! `ringback list`: page after page, shown as they come.

use bytes::Bytes;
use http::Method;
use ringback_core::wire::{JobAnswer, MAX_PAGE};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Session;
use crate::args::{Format, ListArgs};
use crate::client::{Call, ClientError, LONG};
use crate::failure::Verdict;
use crate::output::{Align, Table, job_row, say};

/// A page whose jobs are shown as they came.
#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
    next: Option<String>,
}

pub(super) async fn run(session: &mut Session, args: &ListArgs) -> anyhow::Result<Verdict> {
    let mut table = Table::new(
        [
            ("TOPIC", Align::Left),
            ("ID", Align::Left),
            ("STATE", Align::Left),
            ("DUE", Align::Left),
            ("", Align::Left),
            ("ATTEMPTS", Align::Right),
            ("FAILURES", Align::Right),
            ("REASON", Align::Left),
        ],
        session.out.colour,
    );
    let limit = if args.all { u64::MAX } else { args.limit };
    let (mut shown, mut cursor) = (0, None);
    loop {
        let body = page(session, args, cursor.as_ref(), limit - shown).await?;
        let page: Page<'_> = borrowed(&body)?;
        match session.out.format {
            Format::Json => page.items.iter().try_for_each(|item| session.out.line(item.get()))?,
            Format::Table => {
                let jobs = page.items.iter().map(|item| serde_json::from_str::<JobAnswer>(item.get()));
                let jobs = jobs.collect::<Result<Vec<_>, _>>();
                let jobs = jobs.map_err(|error| ClientError::Unreadable(error.to_string()))?;
                let rows: Vec<_> = jobs.iter().map(|job| job_row(job, session.now())).collect();
                if !rows.is_empty() {
                    session.out.bytes(table.page(&rows).as_bytes())?;
                }
            }
        }
        shown += page.items.len() as u64;
        match page.next {
            None => break,
            Some(_) if shown >= limit => {
                say(&format!("the first {shown} jobs; more with --limit or --all"));
                return Ok(Verdict::Done);
            }
            Some(next) if cursor.as_ref() == Some(&next) => {
                return Err(ClientError::Unreadable("a page that follows itself".to_owned()).into());
            }
            Some(next) => cursor = Some(next),
        }
    }
    if shown == 0 && session.out.format == Format::Table {
        say("no jobs");
    }
    Ok(Verdict::Done)
}

async fn page(
    session: &mut Session,
    args: &ListArgs,
    cursor: Option<&String>,
    wanted: u64,
) -> Result<Bytes, ClientError> {
    let mut call = Call::new(Method::GET, &["v1", "jobs"]);
    call.query = args.filter.query();
    call.query.extend(cursor.map(|cursor| ("cursor", cursor.clone())));
    call.query.push(("limit", wanted.min(MAX_PAGE as u64).to_string()));
    let answer = session.client.ask(call, LONG).await;
    answer.map(|answer| answer.body).map_err(|error| error.of_whole("lists of jobs"))
}

fn borrowed(body: &Bytes) -> Result<Page<'_>, ClientError> {
    serde_json::from_slice(body).map_err(|error| ClientError::Unreadable(error.to_string()))
}
