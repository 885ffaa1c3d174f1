//! The session that all commands that call the API share: the client, the output, and how a response is parsed and
//! printed.

use bytes::Bytes;
use ringback_core::job::Tenant;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::args::Format;
use crate::client::{Call, Client, ClientError, SHORT};
use crate::failure::CommandOutcome;
use crate::output::{Cell, Output, Table, View, note};

/// The client and the output of one run.
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) out: Output,
    /// The tenant that was chosen with `--tenant`.
    pub(crate) tenant: Option<Tenant>,
}

impl Session {
    /// Prints the API's JSON unchanged.
    pub(crate) fn json(&mut self, body: &Bytes) -> anyhow::Result<()> {
        self.out.line(body.trim_ascii_end())
    }

    /// Makes a call within 10 s, and prints the response as [`Self::print`] does.
    pub(crate) async fn show<T: DeserializeOwned>(
        &mut self,
        call: Call,
        text: impl FnOnce(&T, &View) -> String,
    ) -> anyhow::Result<CommandOutcome> {
        let body = self.client.ask(call, SHORT).await?.body;
        self.print(&body, text)
    }

    /// Prints a response: its JSON unchanged, or the text that `text` makes of it.
    pub(crate) fn print<T: DeserializeOwned>(
        &mut self,
        body: &Bytes,
        text: impl FnOnce(&T, &View) -> String,
    ) -> anyhow::Result<CommandOutcome> {
        match self.out.format {
            Format::Json => self.json(body)?,
            Format::Table => self.out.bytes(text(&parse(body)?, &self.out.view()).as_bytes())?,
        }
        Ok(CommandOutcome::Done)
    }

    /// Prints a response: its JSON unchanged, or its rows as a table, or the note `none` if there are no rows.
    pub(crate) fn print_rows<T: DeserializeOwned, const N: usize>(
        &mut self,
        body: &Bytes,
        columns: [&'static str; N],
        rows: impl FnOnce(&T, &View) -> Vec<[Cell; N]>,
        none: &str,
    ) -> anyhow::Result<CommandOutcome> {
        self.print(body, |answer, view| {
            let rows = rows(answer, view);
            if rows.is_empty() {
                note(none);
                return String::new();
            }
            Table::new(columns, view.colour).page(&rows)
        })
    }
}

/// A JSON object of the fields that have a value.
pub(crate) fn object<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Parses a response of the API.
pub(crate) fn parse<T: DeserializeOwned>(body: &Bytes) -> Result<T, ClientError> {
    serde_json::from_slice(body).map_err(|error| ClientError::Unreadable(error.to_string()))
}
