//! The stream of events as it is read: server-sent events (the HTML standard, section 9.2), as far
//! as the API sends them.

use std::collections::VecDeque;

use reqwest::Response;
use ringback_core::wire::EventAnswer;

use crate::client::{Call, Client, ClientError, cut_off};

/// No event is longer.
const MOST: usize = 1024 * 1024;

/// What the API says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Event(String, Box<EventAnswer>),
    /// Something may be missing.
    Missed,
}

/// A stream that has begun.
pub(super) struct Stream {
    response: Response,
    read: Events,
    said: VecDeque<(String, String)>,
}

impl Stream {
    /// Begins to listen: from here on nothing is left out.
    pub(super) async fn open(client: &Client, call: &Call) -> Result<Self, ClientError> {
        let response = client.open(call.clone()).await?;
        let mut stream = Self { response, read: Events::default(), said: VecDeque::new() };
        while stream.named().await?.0 != "ready" {}
        Ok(stream)
    }

    /// What is said next; the error says why there is no more.
    pub(super) async fn next(&mut self) -> Result<Said, ClientError> {
        loop {
            let (name, data) = self.named().await?;
            match name.as_str() {
                "missed" => return Ok(Said::Missed),
                "dropped" => {
                    let why = "the events were not read fast enough".to_owned();
                    return Err(ClientError::CutOff { why });
                }
                _ => {}
            }
            // One of a later version is passed over.
            if let Ok(event) = serde_json::from_str::<EventAnswer>(&data) {
                return Ok(Said::Event(name, Box::new(event)));
            }
        }
    }

    /// Whether all that has come by now was taken.
    pub(super) fn is_read(&self) -> bool {
        self.said.is_empty()
    }

    /// The next event by its name, and its data.
    async fn named(&mut self) -> Result<(String, String), ClientError> {
        loop {
            if let Some(said) = self.said.pop_front() {
                return Ok(said);
            }
            let chunk = self.response.chunk().await.map_err(|error| cut_off(&error))?;
            let ended = || ClientError::CutOff { why: "the server ended it".to_owned() };
            self.said.extend(self.read.add(&chunk.ok_or_else(ended)?)?);
        }
    }
}

/// What is read of an event so far.
#[derive(Default)]
struct Events {
    line: Vec<u8>,
    name: String,
    data: String,
}

impl Events {
    /// The events that a chunk completes.
    fn add(&mut self, chunk: &[u8]) -> Result<Vec<(String, String)>, ClientError> {
        let mut whole = Vec::new();
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if self.line.len() + self.data.len() > MOST {
                return Err(ClientError::Unreadable("an event is too long".to_owned()));
            }
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                whole.extend(self.end_line(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n'])));
            }
        }
        Ok(whole)
    }

    /// The event that a line completes: an empty one does, where there is data.
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
        assert!(read.add(&vec![b'x'; MOST]).is_ok());
        assert!(matches!(read.add(b"x"), Err(ClientError::Unreadable(_))));
    }
}
