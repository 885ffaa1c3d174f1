//! Pull jobs: what a consumer asks for and gets, and the receipt by which it settles a job. Pull jobs
//! have no URL. A receipt is a text that can be stored and passed on.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::Rng;

use super::lease::Receipt;
use super::shard::Shard;
use crate::clock::Timestamp;
use crate::job::{Delivery, JobKey, Locator, Topic};
use crate::outcome::Reason;
use crate::retry::RetryPolicy;

/// Bytes of a receipt.
const RECEIPT: usize = 30;
/// Characters of a receipt as text.
const WRITTEN: usize = 40;

/// Proof that a consumer has reserved a job. Its text is 40 characters of URL-safe base64: the job's
/// shard and place, and the number and random bits of the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PullReceipt {
    /// The job's shard.
    pub shard: Shard,
    /// The job's place in the shard.
    pub locator: Locator,
    /// The lease.
    pub lease: Receipt,
}

impl PullReceipt {
    /// The job's shard.
    pub const fn shard(&self) -> Shard {
        self.shard
    }
}

impl fmt::Display for PullReceipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut raw = Vec::with_capacity(RECEIPT);
        raw.extend_from_slice(&self.shard.0.to_be_bytes());
        raw.extend_from_slice(&self.locator.0);
        raw.extend_from_slice(&self.lease.number.to_be_bytes());
        raw.extend_from_slice(&self.lease.bits);
        f.write_str(&URL_SAFE_NO_PAD.encode(raw))
    }
}

/// A text that is not a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no receipt that a reserve has given")]
pub struct InvalidReceipt;

impl FromStr for PullReceipt {
    type Err = InvalidReceipt;

    fn from_str(text: &str) -> Result<Self, InvalidReceipt> {
        if text.len() != WRITTEN {
            return Err(InvalidReceipt);
        }
        let raw = URL_SAFE_NO_PAD.decode(text).map_err(|_| InvalidReceipt)?;
        let raw: [u8; RECEIPT] = raw.try_into().map_err(|_| InvalidReceipt)?;
        let part = |from: usize| raw[from..from + 8].try_into().map_err(|_| InvalidReceipt);
        let lease = Receipt { number: u64::from_be_bytes(part(14)?), bits: part(22)? };
        // Zero stands for no lease.
        if lease.number == 0 {
            return Err(InvalidReceipt);
        }
        let locator = Locator(raw[2..14].try_into().map_err(|_| InvalidReceipt)?);
        Ok(Self { shard: Shard(u16::from_be_bytes([raw[0], raw[1]])), locator, lease })
    }
}

/// What a consumer asks for.
#[derive(Clone, Copy, Debug)]
pub struct Pull<'a> {
    /// Identifies the caller, who makes one call at a time.
    pub caller: &'a str,
    /// Counts the caller's reserves of this shard. Repeating a number returns the same jobs again.
    pub sequence: u64,
    /// The topic.
    pub topic: &'a Topic,
    /// The most jobs to reserve.
    pub limit: usize,
    /// How long the leases last; `None`: as long as each job says.
    pub ttr: Option<Duration>,
    /// How long a lease lasts if neither the consumer nor the job says.
    pub default_ttr: Duration,
    /// Random bits for the receipts.
    pub bits: [u8; 8],
}

/// The result of a consumer's reserve.
#[derive(Debug, Default)]
pub struct Pulled {
    /// The jobs.
    pub jobs: Vec<PulledJob>,
    /// Whether more jobs could be reserved now.
    pub more: bool,
}

/// A job that a consumer has reserved.
#[derive(Clone, Debug)]
pub struct PulledJob {
    /// Settles the job.
    pub receipt: PullReceipt,
    /// The job's key.
    pub key: JobKey,
    /// The number of this attempt, from 1.
    pub attempt: u32,
    /// When the lease runs out, by the store's clock.
    pub deadline: Timestamp,
    /// The body and what belongs to it.
    pub delivery: Delivery,
}

/// What decides when a job is retried if it fails now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RetryContext {
    /// How many attempts have failed so far.
    pub failures: u32,
    /// The job's own policy, if it has one.
    pub retry: Option<RetryPolicy>,
    /// The job's topic, whose policy counts otherwise; `None` if it is not known.
    pub topic: Option<Topic>,
}

/// How a consumer settles a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PullOutcome {
    /// The job is done.
    Finish,
    /// The attempt failed. The job is retried after a delay.
    Retry {
        /// The delay, by the store's clock.
        after: Duration,
        /// What went wrong; at most 128 bytes are kept.
        error: Option<String>,
    },
    /// The job is dead.
    Bury {
        /// Why; at most 64 bytes are kept.
        reason: String,
        /// What went wrong; at most 128 bytes are kept.
        error: Option<String>,
    },
    /// The attempt does not count as a failure. The job is ready again after a delay.
    Release {
        /// The delay; zero: at once.
        after: Duration,
    },
}

impl PullOutcome {
    /// The outcome of one more failure: a retry after the next delay of the job's policy, or `exhausted`
    /// after its last. `default` is the policy of a job without its own.
    pub fn failed(
        tries: &RetryContext,
        default: &RetryPolicy,
        error: Option<String>,
        rng: &mut impl Rng,
    ) -> Self {
        let policy = tries.retry.as_ref().unwrap_or(default);
        match policy.delay(tries.failures.saturating_add(1), None, rng) {
            Some(after) => Self::Retry { after, error },
            None => Self::Bury { reason: Reason::Exhausted.name().to_owned(), error },
        }
    }
}

/// Which leases a settle by receipt accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseCheck {
    /// Every current lease.
    Current,
    /// Only leases that have run out.
    Expired,
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng as _;
    use rand::rngs::StdRng;

    fn receipt() -> PullReceipt {
        let lease = Receipt { number: 1_763_600_000_000_000, bits: [0xfe; 8] };
        PullReceipt { shard: Shard(3), locator: Locator([7; 12]), lease }
    }

    #[test]
    fn a_receipt_is_read_as_it_is_written() {
        let text = receipt().to_string();
        assert_eq!(text.len(), WRITTEN);
        assert!(text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'), "{text}");
        assert_eq!(text.parse(), Ok(receipt()));
    }

    #[test]
    fn other_texts_are_not_receipts() {
        let text = receipt().to_string();
        let wrong = [&text[1..], &format!("{text}A"), "", "finish", &format!("{}=", &text[1..])];
        for text in wrong.into_iter().chain([format!("+{}", &text[1..]).as_str()]) {
            assert_eq!(text.parse::<PullReceipt>(), Err(InvalidReceipt), "{text}");
        }
        assert_eq!("ä".repeat(20).parse::<PullReceipt>(), Err(InvalidReceipt));
        assert_eq!("A".repeat(WRITTEN).parse::<PullReceipt>(), Err(InvalidReceipt));
    }

    #[test]
    fn a_failure_goes_by_the_job_s_own_policy_then_by_the_default_and_ends_after_the_last_tier() {
        let mut rng = StdRng::seed_from_u64(1);
        let default = RetryPolicy::new(vec![Duration::from_secs(9)], crate::retry::Max::Tiers, 0.0).unwrap();
        let mut failed = |failures, retry| {
            let tries = RetryContext { failures, retry, topic: None };
            PullOutcome::failed(&tries, &default, None, &mut rng)
        };
        assert_eq!(failed(0, None), PullOutcome::Retry { after: Duration::from_secs(9), error: None });
        let over = PullOutcome::Bury { reason: "exhausted".to_owned(), error: None };
        assert_eq!(failed(1, None), over);
        assert_eq!(failed(0, Some(RetryPolicy::none())), over);
    }
}
