//! A client of `GET /v1/events`.

use std::collections::VecDeque;

use reqwest::Response;
use ringback_testkit::http_client;
use tokio::time::timeout;

use crate::prelude::*;

/// An open stream of events.
pub(crate) struct Listener {
    response: Response,
    read: Vec<u8>,
    events: VecDeque<(String, Value)>,
}

impl Listener {
    /// Opens the stream at a URL and waits for its first event, `ready`.
    pub(crate) async fn start(url: &str) -> Self {
        let mut listener = Self::open(url).await;
        assert_eq!(listener.next().await.0, "ready");
        listener
    }

    /// Opens the stream at a URL. Panics unless the answer is 200 with the right headers.
    async fn open(url: &str) -> Self {
        let response = http_client().get(url).send().await.expect("the api answers");
        assert_eq!(response.status(), 200, "{url}");
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert_eq!(response.headers()["cache-control"], "no-cache");
        Self { response, read: Vec::new(), events: VecDeque::new() }
    }

    /// The next event: its name and data. Panics at the end of the stream.
    pub(crate) async fn next(&mut self) -> (String, Value) {
        self.try_next().await.expect("the stream goes on")
    }

    /// The next event; `None` at the end of the stream. Panics after [`SOON`].
    pub(crate) async fn try_next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            let chunk = timeout(SOON, self.response.chunk()).await.expect("an event within the time allowed");
            self.read.extend_from_slice(&chunk.expect("the stream does not break")?);
            self.parse();
        }
    }

    /// The data of the next event. Panics unless it has this name and is about this job.
    pub(crate) async fn expect(&mut self, kind: &str, id: &str) -> Value {
        let (name, data) = self.next().await;
        assert_eq!((name.as_str(), &data["id"]), (kind, &Value::from(id)), "{data}");
        data
    }

    fn parse(&mut self) {
        while let Some(end) = self.read.windows(2).position(|pair| pair == b"\n\n") {
            let block: Vec<u8> = self.read.drain(..end + 2).collect();
            let block = String::from_utf8(block).expect("events are UTF-8");
            let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
            if let Some(data) = field("data:") {
                let data = serde_json::from_str(data).expect("data is JSON");
                self.events.push_back((field("event:").expect("an event has a name").to_owned(), data));
            }
        }
    }
}
