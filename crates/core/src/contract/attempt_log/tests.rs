//! Packing, order and bounds of a log.

use super::*;

fn attempt(number: u32) -> Attempt {
    Attempt {
        number,
        at: Timestamp::from_millis(1_000 + u64::from(number)),
        duration: Duration::from_millis(7),
        status: Some(500),
        error: None,
        answer: Bytes::from_static(b"no"),
        by: "n".to_owned(),
    }
}

fn log(numbers: impl IntoIterator<Item = u32>, room: u64) -> AttemptLog {
    let mut log = AttemptLog::of(9, None);
    for number in numbers {
        log.add(&pack(&attempt(number)), room, |bytes| bytes as u64);
    }
    log
}

fn numbers(log: &AttemptLog) -> Vec<u32> {
    let raw = Some(Bytes::from(log.0.clone()));
    shown(raw, Some(9), 0, 1).unwrap().iter().map(|attempt| attempt.number).collect()
}

#[test]
fn an_attempt_is_read_as_it_was_packed() {
    let failed =
        Attempt { status: None, error: Some("timeout".to_owned()), answer: Bytes::new(), ..attempt(2) };
    let mut log = log([1], 9_999);
    log.add(&pack(&failed), 9_999, |bytes| bytes as u64);
    assert_eq!(shown(Some(log.0.into()), Some(9), 0, 1), Some(vec![attempt(1), failed]));
}

#[test]
fn attempts_are_kept_by_number_each_once_and_only_the_last_twenty() {
    assert_eq!(numbers(&log([3, 1, 2, 3, 1], 9_999)), [1, 2, 3]);
    assert_eq!(numbers(&log((1..=25).rev(), 9_999)), (6..=25).collect::<Vec<_>>());
    assert_eq!(numbers(&log(1..=25, 9_999)), (6..=25).collect::<Vec<_>>());
}

#[test]
fn the_oldest_attempts_are_evicted_first_and_one_that_never_fits_leaves_none() {
    let one = pack(&attempt(1)).len() as u64;
    assert_eq!(numbers(&log(1..=9, 6 + 3 * one)), [7, 8, 9]);
    assert!(log(1..=9, one).is_empty());
}

#[test]
fn another_job_with_the_same_key_has_its_own_log() {
    let first = log([1], 9_999).0;
    assert_eq!(AttemptLog::of(9, Some(first.clone())).0, first);
    assert!(AttemptLog::of(10, Some(first.clone())).is_empty());
    assert_eq!(shown(Some(first.clone().into()), Some(10), 0, 1), Some(Vec::new()));
    assert_eq!(shown(Some(first.into()), None, 0, 1), Some(vec![attempt(1)]));
}

#[test]
fn attempts_that_are_too_old_are_not_shown_and_an_unknown_job_has_no_log() {
    let raw = Bytes::from(log([1, 2], 9_999).0);
    assert_eq!(shown(Some(raw.clone()), Some(9), 1_102, 100).unwrap().len(), 1);
    assert_eq!(shown(Some(raw), None, 1_103, 100), None);
    assert_eq!(shown(None, None, 0, 1), None);
    assert_eq!(shown(None, Some(9), 0, 1), Some(Vec::new()));
}

#[test]
fn damaged_logs_show_what_can_be_read() {
    let raw = log([1, 2], 9_999).0;
    for end in 0..raw.len() {
        let read = shown(Some(Bytes::copy_from_slice(&raw[..end])), None, 0, 1).unwrap_or_default();
        assert!(read.len() < 2);
    }
}

#[test]
fn long_texts_and_responses_are_cut() {
    let long = Attempt {
        error: Some("ä".repeat(100)),
        answer: Bytes::from(vec![255; 3_000]),
        by: "x".repeat(300),
        ..attempt(1)
    };
    let mut log = AttemptLog::of(9, None);
    log.add(&pack(&long), 9_999, |bytes| bytes as u64);
    let read = shown(Some(log.0.into()), Some(9), 0, 1).unwrap().remove(0);
    assert_eq!((read.answer.len(), read.by.len()), (MAX_ANSWER, 64));
    assert_eq!(read.error.unwrap(), "ä".repeat(64));
}
