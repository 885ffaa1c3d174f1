//! Serialises the events of one message as server-sent events (HTML standard, section 9.2), once
//! for all listeners. Each listener gets the bytes of the events that its filter matches.

use std::ops::Range;

use bytes::Bytes;
use ringback_core::store_types::{Event, EventName};
use ringback_wire::JobEvent;

use super::listener_queue::Filter;

pub(super) struct Batch<'a> {
    events: &'a [Event],
    /// The end of each event in `bytes`.
    ends: Vec<usize>,
    bytes: Bytes,
}

pub(super) struct Part {
    pub(super) bytes: Bytes,
    pub(super) events: usize,
}

impl<'a> Batch<'a> {
    pub(super) fn of(events: &'a [Event]) -> Self {
        let (mut bytes, mut ends) =
            (Vec::with_capacity(events.len() * 160), Vec::with_capacity(events.len()));
        for event in events {
            bytes.extend_from_slice(b"event: ");
            bytes.extend_from_slice(<&str>::from(EventName::from(&event.kind)).as_bytes());
            bytes.extend_from_slice(b"\ndata: ");
            // JSON has no line breaks outside of its strings, and escapes those within.
            serde_json::to_writer(&mut bytes, &JobEvent::from(event)).expect("plain data always serialises");
            bytes.extend_from_slice(b"\n\n");
            ends.push(bytes.len());
        }
        Self { events, ends, bytes: bytes.into() }
    }

    /// The events that `filter` matches; `None` if there are none. If all match, the bytes are shared. Otherwise they
    /// are copied, so that a small part does not keep the whole batch in memory.
    pub(super) fn part(&self, filter: &Filter) -> Option<Part> {
        let matching: Vec<_> = (0..self.events.len()).filter(|n| filter.matches(&self.events[*n])).collect();
        let events = matching.len();
        if events == self.events.len() {
            return (events > 0).then(|| Part { bytes: self.bytes.clone(), events });
        }
        let mut bytes = Vec::with_capacity(matching.iter().map(|n| self.range(*n).len()).sum());
        matching.into_iter().for_each(|n| bytes.extend_from_slice(&self.bytes[self.range(n)]));
        (events > 0).then(|| Part { bytes: bytes.into(), events })
    }

    fn range(&self, n: usize) -> Range<usize> {
        let start = if n == 0 { 0 } else { self.ends[n - 1] };
        start..self.ends[n]
    }
}

#[cfg(test)]
mod tests {
    use ringback_core::clock::Timestamp;
    use ringback_core::job::{JobKey, Tags};
    use ringback_core::store_types::{EventKind, EventName};

    use super::*;

    fn event(topic: &str, id: &str, what: EventKind) -> Event {
        let key = JobKey { topic: topic.parse().unwrap(), id: id.parse().unwrap() };
        Event { at: Timestamp::from_millis(0), key, tags: Tags::default(), kind: what }
    }

    fn text(events: &[Event], filter: &Filter) -> Option<String> {
        Batch::of(events).part(filter).map(|part| String::from_utf8(part.bytes.to_vec()).unwrap())
    }

    #[test]
    fn each_event_has_its_kind_and_one_line_of_data() {
        let events = [event("a", "1", EventKind::Dead { reason: "no\r\nway\u{2028}".into() })];
        let data = r#"{"topic":"a","id":"1","at":"1970-01-01T00:00:00.000Z","reason":"no\r\nway"#;
        let text = text(&events, &Filter::default()).unwrap();
        assert_eq!(text, format!("event: dead\ndata: {data}\u{2028}\"}}\n\n"));
    }

    #[test]
    fn a_filter_matches_a_topic_a_job_or_kinds() {
        let events = [
            event("a", "1", EventKind::Promoted),
            event("b", "1", EventKind::Done),
            event("a", "2", EventKind::Done),
            event("a", "1", EventKind::Done),
        ];
        let count = |filter: &Filter| Batch::of(&events).part(filter).map_or(0, |part| part.events);
        let topic = Filter { topic: Some("a".parse().unwrap()), ..Filter::default() };
        let job = Filter { id: Some("1".parse().unwrap()), ..topic.clone() };
        let kind = Filter { kinds: vec![EventName::Done], ..topic.clone() };
        let none = Filter { kinds: vec![EventName::Dead], ..Filter::default() };
        assert_eq!((count(&Filter::default()), count(&topic), count(&job)), (4, 3, 2));
        assert_eq!((count(&kind), count(&none)), (2, 0));
        let both = text(&events, &job).unwrap();
        assert!(both.starts_with("event: promoted\n") && both.contains("\n\nevent: done\n"), "{both}");
    }

    #[test]
    fn listeners_without_a_filter_share_the_bytes() {
        let events = [event("a", "1", EventKind::Done)];
        let batch = Batch::of(&events);
        let [one, two] = [(), ()].map(|()| batch.part(&Filter::default()).unwrap().bytes);
        assert_eq!(one.as_ptr(), two.as_ptr());
    }
}
