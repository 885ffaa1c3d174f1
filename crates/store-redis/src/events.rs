//! The stream of events of jobs: watches a shard, subscribes to the channel, and unpacks messages, whose format
//! `prelude/events.lua` describes.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use rand::rngs::StdRng;
use ringback_core::clock::{Timestamp, millis_up};
use ringback_core::job::{JobKey, Tags, Topic};
use ringback_core::store_types::{
    AttemptEnded, AttemptOutcome, Event, EventKind, Shard, StoreError, StreamItem,
};

use super::channel::{Channel, Heard};
use super::redis_store::RedisStore;
use super::script;

/// The first byte of a message.
const FORMAT: u8 = 1;
const WITH_TAGS: u8 = 2;

impl RedisStore {
    pub async fn watch(&self, shard: Shard, lasts: Duration) -> Result<Timestamp, StoreError> {
        self.call(&script::WATCH, shard).arg(millis_up(lasts)).run().await.map(Timestamp::from_millis)
    }

    pub fn events(self: &Arc<Self>, rng: StdRng) -> Events {
        Events(Channel::new(Arc::clone(self), self.keys.channel("events"), rng))
    }
}

/// The stream of events. It reconnects by itself and never ends.
pub struct Events(Channel);

impl Events {
    pub async fn next(&mut self) -> StreamItem {
        match self.0.next().await {
            Heard::Subscribed => StreamItem::Gap,
            Heard::Lost => StreamItem::Lost,
            Heard::Message(raw) => unpack(raw.into()).map_or_else(
                || {
                    tracing::debug!("events that this version cannot read are skipped");
                    StreamItem::Missed
                },
                StreamItem::Events,
            ),
        }
    }
}

/// Reads a message; `None` if any part of it cannot be read.
fn unpack(mut raw: Bytes) -> Option<Vec<Event>> {
    let has_tags = match raw.try_get_u8().ok()? {
        FORMAT => false,
        WITH_TAGS => true,
        _ => return None,
    };
    let at = time(&mut raw)?;
    let names = usize::from(raw.try_get_u16().ok()?);
    let topics = (0..names).map(|_| Topic::from_stored(&text(&mut raw)?)).collect::<Option<Vec<Topic>>>()?;
    let mut events = Vec::new();
    while raw.has_remaining() {
        let topic = topics.get(usize::from(raw.try_get_u16().ok()?))?.clone();
        let id = text(&mut raw)?.parse().ok()?;
        let tags = if has_tags { tags(&mut raw)? } else { Tags::default() };
        events.push(Event { at, key: JobKey { topic, id }, tags, kind: kind(&mut raw)? });
    }
    Some(events)
}

fn tags(raw: &mut Bytes) -> Option<Tags> {
    let length = usize::from(raw.try_get_u16().ok()?);
    let packed = (raw.len() >= length).then(|| raw.split_to(length))?;
    Some(std::str::from_utf8(&packed).ok().and_then(Tags::from_stored).unwrap_or_default())
}

fn kind(raw: &mut Bytes) -> Option<EventKind> {
    Some(match raw.try_get_u8().ok()? {
        1 => EventKind::Submitted { due: time(raw)? },
        2 => EventKind::Promoted,
        3 => EventKind::Attempt(ended(raw)?),
        4 => EventKind::Done,
        5 => EventKind::Dead { reason: text(raw)?.into() },
        6 => EventKind::Cancelled,
        _ => return None,
    })
}

fn ended(raw: &mut Bytes) -> Option<AttemptEnded> {
    let outcome = match raw.try_get_u8().ok()? {
        1 => AttemptOutcome::Complete,
        2 => AttemptOutcome::Retry,
        3 => AttemptOutcome::Bury,
        4 => AttemptOutcome::Release,
        5 => AttemptOutcome::Lost,
        _ => return None,
    };
    let number = raw.try_get_u32().ok()?;
    let due = Some(time(raw)?).filter(|due| due.as_millis() > 0);
    let status = Some(raw.try_get_u16().ok()?).filter(|status| *status > 0);
    let took = Some(raw.try_get_u32().ok()?).filter(|ms| *ms < u32::MAX);
    let duration = took.map(|ms| Duration::from_millis(ms.into()));
    let error = Some(text(raw)?).filter(|error| !error.is_empty()).map(Into::into);
    Some(AttemptEnded { number, outcome, due, status, error, duration })
}

fn time(raw: &mut Bytes) -> Option<Timestamp> {
    raw.try_get_uint(6).ok().map(Timestamp::from_millis)
}

/// Reads a text after its length (1 byte); `None` if the message is too short.
fn text(raw: &mut Bytes) -> Option<String> {
    let length = usize::from(raw.try_get_u8().ok()?);
    (raw.len() >= length).then(|| String::from_utf8_lossy(&raw.split_to(length)).into_owned())
}

#[cfg(test)]
mod tests {
    use ringback_core::store_types::EventName;

    use super::*;

    fn message() -> Vec<u8> {
        let mut raw = vec![FORMAT, 0, 0, 0, 0, 4, 210, 0, 1, 3];
        raw.extend(b"pay");
        // A failed attempt of job `a`, its second, that is tried again.
        raw.extend([0, 0, 1, b'a', 3, 2, 0, 0, 0, 2, 0, 0, 0, 0, 8, 0, 1, 247, 0, 0, 0, 17, 2, b'n', b'o']);
        raw.extend([0, 0, 1, b'b', 5, 4, b'g', b'o', b'n', b'e']);
        raw
    }

    #[test]
    fn a_message_is_read_whole() {
        let events = unpack(message().into()).unwrap();
        let key = |id: &str| JobKey { topic: "pay".parse().unwrap(), id: id.parse().unwrap() };
        let at = Timestamp::from_millis(1234);
        let attempt = EventKind::Attempt(AttemptEnded {
            number: 2,
            outcome: AttemptOutcome::Retry,
            due: Some(Timestamp::from_millis(2048)),
            status: Some(503),
            error: Some("no".into()),
            duration: Some(Duration::from_millis(17)),
        });
        let expected = [
            Event { at, key: key("a"), tags: Tags::default(), kind: attempt },
            Event {
                at,
                key: key("b"),
                tags: Tags::default(),
                kind: EventKind::Dead { reason: "gone".into() },
            },
        ];
        assert_eq!(events, expected);
    }

    #[test]
    fn a_message_with_tags_has_those_of_each_event() {
        let mut raw = vec![WITH_TAGS, 0, 0, 0, 0, 4, 210, 0, 1, 3];
        raw.extend(b"pay");
        raw.extend([0, 0, 1, b'a', 0, 3, b'x', b' ', b'y', 4]);
        raw.extend([0, 0, 1, b'b', 0, 0, 2]);
        let events = unpack(raw.into()).unwrap();
        let found: Vec<_> =
            events.iter().map(|event| (event.tags.to_vec(), EventName::from(&event.kind))).collect();
        let tags = vec!["x".to_owned(), "y".to_owned()];
        assert_eq!(found, [(tags, EventName::Done), (Vec::new(), EventName::Promoted)]);
    }

    #[test]
    fn a_message_that_is_cut_off_or_foreign_is_no_message() {
        let whole = message();
        let head = 1 + 6 + 2 + 4;
        let first = head + 25;
        for end in (0..whole.len()).filter(|end| *end != head && *end != first) {
            assert_eq!(unpack(Bytes::copy_from_slice(&whole[..end])), None, "{end}");
        }
        let mut foreign = whole.clone();
        foreign[0] = WITH_TAGS + 1;
        assert_eq!(unpack(foreign.into()), None);
        let mut strange = whole;
        strange[head + 4] = 9;
        assert_eq!(unpack(strange.into()), None);
    }
}
