//! Events of both stores, side by side: each job has the same events in the same order.

use std::collections::BTreeMap;
use std::time::Duration;

use ringback_core::store_types::{AttemptEnded, Event, EventKind, EventName, StreamItem};
use ringback_service::random;
use ringback_store::{Events, Store};
use tokio::time::timeout;

use crate::contract::job_builders::{LONG, With, new_job};
use crate::contract::workbench::SOON;

/// The events of each job, in order.
type ByJob = BTreeMap<String, Vec<String>>;

pub(crate) struct WatchedEvents {
    streams: [Events; 2],
    events: [ByJob; 2],
}

impl WatchedEvents {
    /// Subscribes to both stores and watches every shard.
    pub(crate) async fn watch(stores: &[Store; 2]) -> Self {
        let mut streams = [&stores[0], &stores[1]].map(|store| store.events(random::generator()));
        for (store, stream) in stores.iter().zip(&mut streams) {
            assert_eq!(next(stream).await, StreamItem::Gap);
            for shard in store.shards() {
                store.watch(shard, LONG).await.expect("watch");
            }
        }
        Self { streams, events: [ByJob::new(), ByJob::new()] }
    }

    /// Reads the events published so far, before the buffer drops any.
    pub(crate) async fn drain(&mut self) {
        for (stream, events) in self.streams.iter_mut().zip(&mut self.events) {
            while let Ok(item) = timeout(Duration::ZERO, stream.next()).await {
                add(events, item);
            }
        }
    }

    /// Compares all events of both stores. A job in each shard marks the end, after which no earlier event can come.
    pub(crate) async fn compare(mut self, stores: &[Store; 2]) {
        for shard in stores[0].shards() {
            let key = (0..).map(|n| format!("mark-{n}")).find_map(|id| {
                let key = ringback_core::job::JobKey { topic: "marks".parse().ok()?, id: id.parse().ok()? };
                (stores[0].shard_of(&key) == shard).then_some(key)
            });
            let key = key.expect("every shard has names");
            let mark = new_job(key.clone()).after(LONG);
            for (n, store) in stores.iter().enumerate() {
                store.submit(shard, std::slice::from_ref(&mark)).await.expect("submit");
                while !self.events[n].contains_key(&key.to_string()) {
                    let item = next(&mut self.streams[n]).await;
                    add(&mut self.events[n], item);
                }
            }
        }
        let [redis, memory] = self.events;
        assert!(redis.len() > 2, "there are events");
        for job in redis.keys().chain(memory.keys()) {
            assert_eq!(redis.get(job), memory.get(job), "the events of {job}");
        }
    }
}

async fn next(stream: &mut Events) -> StreamItem {
    timeout(SOON, stream.next()).await.expect("events within the time allowed")
}

fn add(events: &mut ByJob, item: StreamItem) {
    let StreamItem::Events(published) = item else { panic!("something was lost: {item:?}") };
    for Event { key, kind: what, .. } in published {
        events.entry(key.to_string()).or_default().push(described(&what));
    }
}

/// An event as text without times, which are of two clocks.
fn described(what: &EventKind) -> String {
    match what {
        EventKind::Attempt(AttemptEnded { number, outcome, due, status, error, duration }) => format!(
            "attempt {number} {outcome:?} waits: {} {status:?} {error:?} timed: {}",
            due.is_some(),
            duration.is_some()
        ),
        EventKind::Dead { reason } => format!("dead {reason}"),
        EventKind::Submitted { .. } | EventKind::Promoted | EventKind::Done | EventKind::Cancelled => {
            EventName::from(what).to_string()
        }
    }
}
