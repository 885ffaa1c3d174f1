//! How an attempt log is packed, for both backends. First the time when its job was accepted (6 bytes),
//! then the attempts by number, each after its length (2): number (4), time (6), duration in ms (4),
//! status or 0 (2), the lengths of `error` and `by` (1 each), both texts, and the start of the response.
//! `prelude/attempt_logs.lua` does on Redis what [`AttemptLog::add`] does here.

use std::time::Duration;

use bytes::{Buf as _, Bytes};

use super::attempts::{Attempt, MAX_ANSWER, MAX_ATTEMPTS};
use crate::clock::Timestamp;
use crate::limits::{MAX_ERROR, truncated};

/// The longest `by`, in bytes.
const MAX_BY: usize = 64;

/// Bytes before the attempts.
const HEAD: usize = 6;
/// Bytes of an attempt between its length and its texts.
const FIXED: usize = 18;

/// Packs an attempt, its length first. Longer errors, names and responses than the limits are cut.
pub fn pack(attempt: &Attempt) -> Vec<u8> {
    let error = truncated(attempt.error.as_deref().unwrap_or_default(), MAX_ERROR);
    let by = truncated(&attempt.by, MAX_BY);
    let answer = &attempt.answer[..attempt.answer.len().min(MAX_ANSWER)];
    let size = FIXED + error.len() + by.len() + answer.len();
    let ms = u32::try_from(attempt.duration.as_millis()).unwrap_or(u32::MAX);
    let short = |length: usize| u8::try_from(length).unwrap_or(u8::MAX);
    let mut packed = Vec::with_capacity(2 + size);
    packed.extend_from_slice(&u16::try_from(size).unwrap_or(u16::MAX).to_be_bytes());
    packed.extend_from_slice(&attempt.number.to_be_bytes());
    packed.extend_from_slice(&six(attempt.at.as_millis()));
    packed.extend_from_slice(&ms.to_be_bytes());
    packed.extend_from_slice(&attempt.status.unwrap_or(0).to_be_bytes());
    packed.extend_from_slice(&[short(error.len()), short(by.len())]);
    packed.extend_from_slice(error.as_bytes());
    packed.extend_from_slice(by.as_bytes());
    packed.extend_from_slice(answer);
    packed
}

fn six(number: u64) -> [u8; 6] {
    let [_, _, six @ ..] = number.to_be_bytes();
    six
}

fn number(raw: &[u8]) -> u64 {
    raw.iter().fold(0, |n, b| n << 8 | u64::from(*b))
}

/// The attempts in a packed log that are not older than `keep` at the time `now`, all in ms. `created` is when the job
/// was accepted, `None` if there is no job; the log of an earlier job with the same key is not shown. `None` if there
/// is neither a job nor an attempt.
pub fn shown(raw: Option<Bytes>, created: Option<u64>, now: u64, keep: u64) -> Option<Vec<Attempt>> {
    let log =
        raw.filter(|raw| created.is_none_or(|created| raw.get(..HEAD).is_some_and(|c| number(c) == created)));
    let mut attempts = log.map_or_else(Vec::new, |mut raw| {
        raw.advance(HEAD.min(raw.len()));
        unpack(raw)
    });
    attempts.retain(|attempt| now <= attempt.at.as_millis().saturating_add(keep));
    (created.is_some() || !attempts.is_empty()).then_some(attempts)
}

/// Reads attempts up to the first one that is damaged.
fn unpack(mut raw: Bytes) -> Vec<Attempt> {
    let mut attempts = Vec::new();
    while let Some(attempt) = one(&mut raw) {
        attempts.push(attempt);
    }
    attempts
}

fn one(raw: &mut Bytes) -> Option<Attempt> {
    let size = usize::from(raw.try_get_u16().ok()?);
    if size < FIXED || raw.len() < size {
        return None;
    }
    let mut part = raw.split_to(size);
    let number = part.get_u32();
    let at = Timestamp::from_millis(part.get_uint(6));
    let duration = Duration::from_millis(part.get_u32().into());
    let status = Some(part.get_u16()).filter(|status| *status > 0);
    let (error, by) = (usize::from(part.get_u8()), usize::from(part.get_u8()));
    if part.len() < error + by {
        return None;
    }
    let mut text = |length| String::from_utf8_lossy(&part.split_to(length)).into_owned();
    let error = Some(text(error)).filter(|error| !error.is_empty());
    let by = text(by);
    Some(Attempt { number, at, duration, status, error, answer: part, by })
}

/// A packed log that attempts are added to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptLog(pub Vec<u8>);

impl AttemptLog {
    /// The log of the job that was accepted at `created` (in ms): the log `kept` under its key, or an empty one if
    /// there is none or it belongs to another job.
    pub fn of(created: u64, kept: Option<Vec<u8>>) -> Self {
        let head = six(created);
        Self(kept.filter(|kept| kept.starts_with(&head)).unwrap_or_else(|| head.to_vec()))
    }

    /// When the job of a packed log was accepted, in ms; `None` if the log is too short.
    pub fn created(kept: &[u8]) -> Option<u64> {
        Some(number(kept.get(..HEAD)?))
    }

    /// Adds an attempt from [`pack`] in the order of numbers; one whose number is present is a repetition and is
    /// ignored. Then drops the oldest attempts until at most [`MAX_ATTEMPTS`] are left and the `cost` of the log's
    /// length is at most `max_bytes`, if need be all.
    pub fn add(&mut self, entry: &[u8], max_bytes: u64, cost: impl Fn(usize) -> u64) {
        let mut starts = self.starts();
        let own = number(&entry[2..6]);
        let number_at = |at: usize| number(&self.0[at + 2..at + 6]);
        if starts.iter().any(|at| number_at(*at) == own) {
            return;
        }
        let place = starts.iter().position(|at| number_at(*at) > own).unwrap_or(starts.len());
        let at = starts.get(place).copied().unwrap_or(self.0.len());
        self.0.splice(at..at, entry.iter().copied());
        starts = self.starts();
        let end = self.0.len();
        let over = starts.len().saturating_sub(MAX_ATTEMPTS);
        let fits = |from: usize| cost(HEAD + end - from) <= max_bytes;
        let from = starts[over..].iter().copied().find(|from| fits(*from)).unwrap_or(end);
        self.0.drain(HEAD..from);
    }

    /// Whether the log has no attempts.
    pub fn is_empty(&self) -> bool {
        self.0.len() <= HEAD
    }

    /// The offset of each attempt, where its length is.
    fn starts(&self) -> Vec<usize> {
        let (mut starts, mut at) = (Vec::new(), HEAD);
        while at + 2 + FIXED <= self.0.len() {
            starts.push(at);
            at += 2 + usize::from(u16::from_be_bytes([self.0[at], self.0[at + 1]]));
        }
        starts
    }
}

#[cfg(test)]
mod tests {
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

    fn log(numbers: impl IntoIterator<Item = u32>, max_bytes: u64) -> AttemptLog {
        let mut log = AttemptLog::of(9, None);
        for number in numbers {
            log.add(&pack(&attempt(number)), max_bytes, |bytes| bytes as u64);
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
}
