//! Prints lists that the API returns page by page, up to a limit, for all commands that list something.

use http::Method;
use ringback_wire::MAX_PAGE;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::session::Session;
use crate::args::Format;
use crate::client::{Call, ClientError, LONG};
use crate::failure::CommandOutcome;
use crate::output::{Cell, Table, View, note};

/// A page of a list. Its items keep their JSON unchanged.
#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
    next: Option<String>,
}

/// The list to print, and how many of its items.
pub(crate) struct List<'a> {
    pub(crate) path: &'a [&'a str],
    pub(crate) query: Vec<(&'static str, String)>,
    pub(crate) limit: u64,
    /// The items, in the plural.
    pub(crate) of: &'static str,
    /// The feature that is missing in a server that does not know the path.
    pub(crate) feature: &'static str,
}

/// Prints page after page: the JSON of the items unchanged, or rows of a table. A note says if there are more items
/// than the limit, or none.
pub(crate) async fn print<T: DeserializeOwned, R: AsRef<[Cell]>>(
    session: &mut Session,
    list: List<'_>,
    mut table: Table,
    row: impl Fn(&T, &View) -> R,
) -> anyhow::Result<CommandOutcome> {
    let List { path, query, limit, of, feature } = list;
    let (mut shown, mut cursor) = (0, None);
    loop {
        let mut call = Call { query: query.clone(), ..Call::new(Method::GET, path) };
        call.query.extend(cursor.iter().map(|cursor: &String| ("cursor", cursor.clone())));
        call.query.push(("limit", (limit - shown).min(MAX_PAGE as u64).to_string()));
        let body = session.client.ask(call, LONG).await.map_err(|error| error.for_route(feature))?.body;
        let page: Page<'_> = serde_json::from_slice(&body).map_err(|error| unreadable(&error))?;
        match session.out.format {
            Format::Json => page.items.iter().try_for_each(|item| session.out.line(item.get()))?,
            Format::Table => {
                let items = page.items.iter().map(|item| serde_json::from_str::<T>(item.get()));
                let items = items.collect::<Result<Vec<_>, _>>().map_err(|error| unreadable(&error))?;
                let view = session.out.view();
                let rows: Vec<_> = items.iter().map(|item| row(item, &view)).collect();
                if !rows.is_empty() {
                    session.out.bytes(table.page(&rows).as_bytes())?;
                }
            }
        }
        shown += page.items.len() as u64;
        match page.next {
            None => break,
            Some(_) if shown >= limit => {
                session.out.note(&format!("the first {shown} {of}; more with --limit or --all"))?;
                return Ok(CommandOutcome::Done);
            }
            next => cursor = Some(next_cursor(cursor.as_ref(), next)?),
        }
    }
    if shown == 0 && session.out.format == Format::Table {
        note(&format!("no {of}"));
    }
    Ok(CommandOutcome::Done)
}

/// The cursor of the next page. Fails if there is none, or if it is the same as that of this page, `cursor`.
pub(crate) fn next_cursor(cursor: Option<&String>, next: Option<String>) -> Result<String, ClientError> {
    next.filter(|next| cursor != Some(next))
        .ok_or_else(|| ClientError::Unreadable("a page that follows itself".to_owned()))
}

fn unreadable(error: &serde_json::Error) -> ClientError {
    ClientError::Unreadable(error.to_string())
}
