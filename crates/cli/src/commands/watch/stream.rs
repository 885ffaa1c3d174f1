//! Reads the stream of events: server-sent events (the HTML standard, section 9.2), as far as the API sends them.

use std::collections::VecDeque;

use reqwest::Response;
use ringback_wire::JobEvent;

use crate::client::{Call, Client, ClientError, cut_off};

/// The most bytes of an event.
const MAX_EVENT: usize = 1024 * 1024;

/// An item of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Event(String, Box<JobEvent>),
    /// Events may be missing.
    Missed,
}

/// An open stream.
pub(crate) struct Stream {
    response: Response,
    read: Events,
    pending: VecDeque<(String, String)>,
}

impl Stream {
    /// Opens the stream, and waits until it is ready: it has every event that happens after this returns.
    pub(crate) async fn open(client: &Client, call: &Call) -> Result<Self, ClientError> {
        let response = client.open(call.clone()).await?;
        let mut stream = Self { response, read: Events::default(), pending: VecDeque::new() };
        while stream.named().await?.0 != "ready" {}
        Ok(stream)
    }

    /// Waits for the next item. Events of unknown kinds are skipped. The error says why the stream has ended.
    pub(crate) async fn next(&mut self) -> Result<Item, ClientError> {
        loop {
            let (name, data) = self.named().await?;
            match name.as_str() {
                "missed" => return Ok(Item::Missed),
                "dropped" => {
                    let why = "the events were not read fast enough".to_owned();
                    return Err(ClientError::CutOff { why });
                }
                _ => {}
            }
            // An event of a later version is skipped.
            if let Ok(event) = serde_json::from_str::<JobEvent>(&data) {
                return Ok(Item::Event(name, Box::new(event)));
            }
        }
    }

    /// Whether all items that have arrived were returned.
    pub(crate) fn is_drained(&self) -> bool {
        self.pending.is_empty()
    }

    /// Waits for the next event, and returns its name and its data.
    async fn named(&mut self) -> Result<(String, String), ClientError> {
        loop {
            if let Some(item) = self.pending.pop_front() {
                return Ok(item);
            }
            let chunk = self.response.chunk().await.map_err(|error| cut_off(&error))?;
            let ended = || ClientError::CutOff { why: "the server ended it".to_owned() };
            self.pending.extend(self.read.add(&chunk.ok_or_else(ended)?)?);
        }
    }
}

/// The event that is being read.
#[derive(Default)]
struct Events {
    line: Vec<u8>,
    name: String,
    data: String,
}

impl Events {
    /// Adds a chunk; returns the events that it completes. Fails if an event is longer than [`MAX_EVENT`].
    fn add(&mut self, chunk: &[u8]) -> Result<Vec<(String, String)>, ClientError> {
        let mut whole = Vec::new();
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if self.line.len() + self.data.len() > MAX_EVENT {
                return Err(ClientError::Unreadable("an event is too long".to_owned()));
            }
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                whole.extend(self.end_line(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n'])));
            }
        }
        Ok(whole)
    }

    /// Adds a line. An empty line completes the event, if it has data.
    fn end_line(&mut self, line: &str) -> Option<(String, String)> {
        if line.is_empty() {
            let event = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
            return (!event.1.is_empty()).then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => self.data.push_str(value),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "retry: 1000\nevent: ready\ndata: {}\n\n:\n\nevent: done\r\ndata:{\"id\":\"ä\"}\r\n\r\n";

    fn events() -> Vec<(String, String)> {
        [("ready", "{}"), ("done", "{\"id\":\"ä\"}")].map(|(a, b)| (a.to_owned(), b.to_owned())).to_vec()
    }

    #[test]
    fn events_are_read_however_they_are_cut() {
        assert_eq!(Events::default().add(TEXT.as_bytes()).unwrap(), events());
        let mut read = Events::default();
        let one_by_one = TEXT.bytes().flat_map(|byte| read.add(&[byte]).unwrap());
        assert_eq!(one_by_one.collect::<Vec<_>>(), events());
    }

    #[test]
    fn an_event_without_end_is_not_waited_for() {
        let mut read = Events::default();
        assert!(read.add(&vec![b'x'; MAX_EVENT]).is_ok());
        assert!(matches!(read.add(b"x"), Err(ClientError::Unreadable(_))));
    }
}
