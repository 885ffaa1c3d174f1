//! Tests that records are read as they were packed, agree with the prelude of the scripts, and survive random bytes.

use ringback_core::job::{Body, Callback, Delivery, Due, IfExists, MAX_BODY};
use strum::VariantArray as _;

use super::tombstone::{DONE, MAYBE_IN_FLIGHT, TOMBSTONE};
use super::*;

#[test]
fn short_records_are_unreadable_and_never_a_panic() {
    let record = [vec![1; RECORD - 1], vec![3], b"abc".to_vec()].concat();
    for n in 0..record.len() {
        assert!(
            OptionalFields::parse("t https://a", Bytes::copy_from_slice(&record[..n])).is_err(),
            "{n} bytes"
        );
    }
    for n in 0..RECORD {
        assert!(FixedFields::parse(State::Ready, Bytes::new(), &record[..n]).is_err(), "{n} bytes");
    }
    for n in 1..STATE {
        assert!(FixedFields::parse(State::Ready, Bytes::from(vec![1; n]), &record).is_err(), "{n} bytes");
    }
    assert!(OptionalFields::parse("no-origin", Bytes::from(record.clone())).is_err());
    assert_eq!(OptionalFields::parse("t https://a", Bytes::from(record)).unwrap().key.id.as_str(), "abc");
}

/// Bytes that no compression makes shorter.
fn noise(size: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..size).map(|_| next()).collect()
}

fn job(body: usize, if_exists: IfExists) -> NewJob {
    let key = JobKey { topic: "t".parse().unwrap(), id: "abc".parse().unwrap() };
    let body = Body { bytes: noise(body).into(), content_type: None };
    let delivery = Delivery::new(Callback::parse("https://a/b").unwrap(), body);
    let due = Due::In(Duration::ZERO);
    NewJob { key, due, delivery, content: ContentHash::default(), if_exists, limits: None }
}

fn packed(body: usize, if_exists: IfExists, tags: &str) -> (OptionalFields, Bytes) {
    let mut job = job(body, if_exists);
    job.delivery.tags = Tags::from_stored(tags).unwrap();
    let Packed { rest, external } = pack(&job, LaneId::default());
    let record = [vec![0; FLAGS], rest].concat();
    (OptionalFields::parse("t https://a", record.into()).unwrap(), external.into())
}

#[test]
fn token_and_tags_stand_before_the_payload_and_an_external_payload_is_that_of_its_record() {
    let tokens = [None, Some(Token([7; 8])), Some(Token([8; 8]))];
    let if_exists =
        |token: Option<Token>| token.map_or(IfExists::Refuse, |token| IfExists::Replace { token });
    for (token, tags) in tokens.into_iter().flat_map(|token| [(token, ""), (token, "customer:42 b")]) {
        let (tail, external) = packed(10, if_exists(token), tags);
        assert!(external.is_empty() && tail.token == token && tail.key.id.as_str() == "abc");
        assert_eq!(tail.tags.as_str(), tags);
        assert!(payload::unpack(&tail.payload, "https://a".to_owned(), None, Tags::default()).is_some());
        let (tail, external) = packed(5000, if_exists(token), tags);
        assert_eq!(tail.tags.as_str(), tags);
        let payload = tail.external(external.clone()).unwrap();
        assert!(payload::unpack(&payload, "https://a".to_owned(), None, Tags::default()).is_some());
        for (other, size) in [(tokens[0], 4992), (tokens[1], 5001), (tokens[1], 5000), (tokens[2], 5000)] {
            let (_, stored) = packed(size, if_exists(other), tags);
            assert_eq!(tail.external(stored.clone()).is_some(), stored == external);
        }
        assert!(tail.external(Bytes::new()).is_none());
        let longer = [&external[..], b"\0"].concat().into();
        assert_eq!(tail.external(longer).is_some(), token.is_some());
    }
}

#[test]
fn a_record_with_a_compressed_body_ends_with_its_size_as_sent() {
    for (body, is_external) in [(vec![b'x'; 5000], false), ([noise(5000), vec![b'x'; 5000]].concat(), true)] {
        let mut job = job(0, IfExists::Refuse);
        job.delivery.body.bytes = body.into();
        let Packed { rest, external } = pack(&job, LaneId::default());
        let record = [vec![0; FLAGS], rest].concat();
        assert_eq!(record[FLAGS], if is_external { COMPRESSED | EXTERNAL } else { COMPRESSED });
        let (before, last) = record.split_last_chunk::<4>().unwrap();
        let size = if is_external { before.last_chunk().unwrap() } else { last };
        assert_eq!(u32::from_be_bytes(*size) as usize, job.delivery.body.bytes.len());
        let tail = OptionalFields::parse("t https://a", record.into()).unwrap();
        let payload = tail.external(external.into()).unwrap_or(tail.payload);
        let delivery = payload::unpack(&payload, "https://a".to_owned(), None, Tags::default());
        assert_eq!(delivery, Some(job.delivery));
    }
}

#[test]
fn sizes_and_flags_are_those_of_the_prelude() {
    let records = include_str!("../prelude/records.lua");
    assert!(records.contains(&format!("local RECORD, STATE = {RECORD}, {STATE}")));
    let flags = format!(
        "local COMPRESSED, EXTERNAL, TOKEN, AT_ONCE, NUMBERED, FIRING, TAGGED = {COMPRESSED}, {EXTERNAL}, {TOKEN}, 8, {NUMBERED}, {FIRING}, {TAGGED}"
    );
    assert!(records.contains(&flags));
    let tombs = include_str!("../prelude/tombs.lua");
    assert!(tombs.contains(&format!("local MAYBE_IN_FLIGHT = {MAYBE_IN_FLIGHT}")));
    assert_eq!(State::VARIANTS[usize::from(DONE) - 1], State::Done);
}

#[test]
fn random_records_are_unreadable_or_lie_within_what_was_read() {
    let record = |body, if_exists| {
        let mut job = job(body, if_exists);
        // The small one is compressed.
        job.delivery.body.bytes = [noise(body), vec![b'x'; 600]].concat().into();
        job.delivery.retry = ringback_core::retry::RetryPolicy::preset("default");
        [vec![1; FLAGS], pack(&job, LaneId::default()).rest].concat()
    };
    let last = LastAttempt {
        at: Timestamp::from_millis(5),
        error: Some("timeout".into()),
        ..LastAttempt::default()
    };
    let mut state = vec![3; STATE - 14];
    push_last(&mut state, &last, "exhausted");
    let token = Token([7; 8]);
    let samples =
        [record(10, IfExists::Refuse), record(5000, IfExists::Replace { token }), state, vec![4; TOMBSTONE]];
    let key = JobKey { topic: "t".parse().unwrap(), id: "abc".parse().unwrap() };
    ringback_fuzz::run(&samples, |raw| {
        let (raw, whole) = (Bytes::copy_from_slice(raw), Bytes::from(samples[0].clone()));
        for &state in State::VARIANTS {
            for (job_state, record) in [(Bytes::new(), &raw), (raw.clone(), &whole), (raw.clone(), &raw)] {
                if let Ok(head) = FixedFields::parse(state, job_state, record) {
                    assert_eq!(head.into_job(key.clone(), Tags::default()).state, state);
                }
            }
        }
        for lane in ["t https://a", "t ", "t", ""] {
            let Ok(tail) = OptionalFields::parse(lane, raw.clone()) else { continue };
            assert!(tail.payload.len() <= raw.len());
            let payload = tail.external(raw.clone()).unwrap_or_else(|| tail.payload.clone());
            if let Some(delivery) = payload::unpack(&payload, tail.origin, None, tail.tags) {
                assert!(delivery.body.bytes.len() <= raw.len().max(MAX_BODY));
            }
        }
        let _ = (parse_tombstone(raw.clone(), key.clone()), lease_number(&raw), locator(&raw));
    });
}
