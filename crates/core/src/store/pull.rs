//! The consumer's side: jobs without a URL are reserved by whoever asks for their topic, and
//! settled by a receipt alone, which can be written down and handed on.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::Rng;

use super::lease::Receipt;
use super::redis::{LaneId, lane_words};
use super::{Backend, Pass, Renewed, Settled, Shard, Store, StoreError};
use crate::clock::Timestamp;
use crate::job::{Delivery, JobKey, Locator, Topic};
use crate::outcome::Reason;
use crate::retry::RetryPolicy;

/// Bytes of a receipt before it is written down.
const RECEIPT: usize = 30;
/// Characters of it.
const WRITTEN: usize = 40;

/// The queue of a topic's jobs for pull, as wake-ups name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PullLane(pub(super) LaneId);

impl PullLane {
    /// That of a topic.
    pub fn of(topic: &Topic) -> Self {
        Self(LaneId::of(&lane_words(topic, "")))
    }
}

/// Proof that a job was reserved for pull, written as 40 characters of URL-safe base64:
/// where the job lies, the lease's number, and random bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PullReceipt {
    pub(super) shard: Shard,
    pub(super) locator: Locator,
    pub(super) lease: Receipt,
}

impl PullReceipt {
    /// The shard that the job lies in.
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

/// What is no receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no receipt that a reserve has given")]
pub struct NoReceipt;

impl FromStr for PullReceipt {
    type Err = NoReceipt;

    fn from_str(text: &str) -> Result<Self, NoReceipt> {
        if text.len() != WRITTEN {
            return Err(NoReceipt);
        }
        let raw = URL_SAFE_NO_PAD.decode(text).map_err(|_| NoReceipt)?;
        let raw: [u8; RECEIPT] = raw.try_into().map_err(|_| NoReceipt)?;
        let part = |from: usize| raw[from..from + 8].try_into().map_err(|_| NoReceipt);
        let lease = Receipt { number: u64::from_be_bytes(part(14)?), bits: part(22)? };
        // Nothing was ever leased under it: it stands for none.
        if lease.number == 0 {
            return Err(NoReceipt);
        }
        let locator = Locator(raw[2..14].try_into().map_err(|_| NoReceipt)?);
        Ok(Self { shard: Shard(u16::from_be_bytes([raw[0], raw[1]])), locator, lease })
    }
}

/// What a consumer asks for.
#[derive(Clone, Copy, Debug)]
pub struct Pull<'a> {
    /// Who asks. One caller asks once at a time.
    pub caller: &'a str,
    /// Counts the caller's asks of this shard; the same again repeats the answer.
    pub sequence: u64,
    /// Jobs of this topic that have no URL.
    pub topic: &'a Topic,
    /// At most so many.
    pub limit: usize,
    /// For so long; `None`: for as long as each job says.
    pub ttr: Option<Duration>,
    /// For so long where neither says.
    pub default_ttr: Duration,
    /// Random bits for the receipts.
    pub bits: [u8; 8],
}

/// What a consumer is given.
#[derive(Debug, Default)]
pub struct Pulled {
    /// The jobs.
    pub jobs: Vec<PulledJob>,
    /// There is more that could be taken.
    pub more: bool,
}

/// A job in a consumer's hands.
#[derive(Clone, Debug)]
pub struct PulledJob {
    /// What it is settled by.
    pub receipt: PullReceipt,
    /// Its name.
    pub key: JobKey,
    /// Which hand-over this is, from 1.
    pub attempt: u32,
    /// Until when, by the store's clock.
    pub deadline: Timestamp,
    /// What it brought along.
    pub delivery: Delivery,
}

/// What chooses the tier of a job that fails.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tries {
    /// How many attempts have failed so far.
    pub failures: u32,
    /// Its own policy, if it brought one.
    pub retry: Option<RetryPolicy>,
    /// Its topic, whose policy counts then; `None` where that cannot be told.
    pub topic: Option<Topic>,
}

/// A job whose lease for pull has run out, to be settled as failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Lapsed {
    /// What it is settled by.
    pub receipt: PullReceipt,
    /// What chooses its tier.
    pub tries: Tries,
}

/// What a recover came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Recovered {
    /// The pass.
    pub pass: Pass,
    /// Jobs for pull, which the caller has to settle with [`Store::settle_lapsed`]; they are
    /// answered again until somebody has.
    pub lapsed: Vec<Lapsed>,
}

/// A consumer's word on a job that it has reserved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// Done.
    Finish,
    /// Failed: one more failure, and again after the delay.
    Retry {
        /// How long to wait, counted by the store's clock.
        after: Duration,
        /// What went wrong; at most 128 bytes are kept.
        error: Option<String>,
    },
    /// Given up: the job is dead.
    Bury {
        /// Why; at most 64 bytes are kept.
        reason: String,
        /// What went wrong; at most 128 bytes are kept.
        error: Option<String>,
    },
    /// Not to be counted: ready again, or after a delay.
    Release {
        /// Zero: at once.
        after: Duration,
    },
}

impl Word {
    /// That of a job that failed once more: again after its tier, dead by `exhausted` after
    /// the last one. `default` is for jobs without a policy of their own.
    pub fn failed(tries: &Tries, default: &RetryPolicy, error: Option<String>, rng: &mut impl Rng) -> Self {
        let policy = tries.retry.as_ref().unwrap_or(default);
        match policy.delay(tries.failures.saturating_add(1), None, rng) {
            Some(after) => Self::Retry { after, error },
            None => Self::Bury { reason: Reason::Exhausted.name().to_owned(), error },
        }
    }
}

/// Which leases a settle counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counting {
    /// All that are current.
    Current,
    /// Those that have run out.
    Lapsed,
}

impl Store {
    /// reserve, for a consumer: ready → reserved.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating with the same caller and sequence gives what was
    /// reserved.
    pub async fn pull(&self, shard: Shard, ask: &Pull<'_>) -> Result<Pulled, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.pull(shard, ask).await,
            Backend::Embedded(store) => store.pull(shard, ask).await,
        }
    }

    /// Lanes of a shard for pull that are not empty, in pages: those after the first
    /// `from`, at most `limit`. No edge.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn pulls(&self, shard: Shard, from: usize, limit: usize) -> Result<Vec<PullLane>, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.pulls(shard, from, limit).await,
            Backend::Embedded(store) => store.pulls(shard, from, limit).await,
        }
    }

    /// Whether a receipt can be one of this store; a stale one can too.
    pub fn knows(&self, receipt: &PullReceipt) -> bool {
        receipt.shard.0 < self.shards
    }

    /// What chooses the tier of a job that fails; `None` when the receipt is not current. No
    /// edge.
    ///
    /// # Errors
    /// Any [`StoreError`].
    pub async fn held(&self, receipt: &PullReceipt) -> Result<Option<Tries>, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.held(receipt).await,
            Backend::Embedded(store) => store.held(receipt).await,
        }
    }

    /// renew, by receipt: the lease lasts `by` from now on, or longer where it did before.
    /// Answers the new deadline.
    ///
    /// # Errors
    /// Any [`StoreError`]; repeating does no harm.
    pub async fn renew_receipt(
        &self,
        receipt: &PullReceipt,
        by: Duration,
    ) -> Result<(Renewed, Timestamp), StoreError> {
        let deadline = match &self.backend {
            Backend::Redis(store) => store.renew_receipt(receipt, by).await?,
            Backend::Embedded(store) => store.renew_receipt(receipt, by).await?,
        };
        Ok(deadline.map_or((Renewed::Stale, Timestamp::default()), |at| (Renewed::Extended, at)))
    }

    /// settle, by receipts, all of one shard. An answer per receipt, in order; never
    /// [`Settled::Late`]: a receipt that is not current counts no more, but for the
    /// repetition of the very word that was the job's last: of a finish, or of one that was
    /// none.
    ///
    /// # Errors
    /// Any [`StoreError`]; settling again does no harm.
    pub async fn settle_receipts(
        &self,
        shard: Shard,
        words: &[(PullReceipt, Word)],
    ) -> Result<Vec<Settled>, StoreError> {
        self.settle_words(shard, words, Counting::Current).await
    }

    /// The same for leases that have run out; those that were renewed meanwhile are stale.
    ///
    /// # Errors
    /// Those of [`Store::settle_receipts`].
    pub async fn settle_lapsed(
        &self,
        shard: Shard,
        words: &[(PullReceipt, Word)],
    ) -> Result<Vec<Settled>, StoreError> {
        self.settle_words(shard, words, Counting::Lapsed).await
    }

    async fn settle_words(
        &self,
        shard: Shard,
        words: &[(PullReceipt, Word)],
        counting: Counting,
    ) -> Result<Vec<Settled>, StoreError> {
        match &self.backend {
            Backend::Redis(store) => store.settle_receipts(shard, words, counting).await,
            Backend::Embedded(store) => store.settle_receipts(shard, words, counting).await,
        }
    }
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
    fn what_no_reserve_has_given_is_no_receipt() {
        let text = receipt().to_string();
        let wrong = [&text[1..], &format!("{text}A"), "", "finish", &format!("{}=", &text[1..])];
        for text in wrong.into_iter().chain([format!("+{}", &text[1..]).as_str()]) {
            assert_eq!(text.parse::<PullReceipt>(), Err(NoReceipt), "{text}");
        }
        assert_eq!("ä".repeat(20).parse::<PullReceipt>(), Err(NoReceipt));
        assert_eq!("A".repeat(WRITTEN).parse::<PullReceipt>(), Err(NoReceipt));
    }

    #[test]
    fn a_failure_goes_by_the_job_s_own_policy_then_by_the_default_and_ends_after_the_last_tier() {
        let mut rng = StdRng::seed_from_u64(1);
        let default = RetryPolicy::new(vec![Duration::from_secs(9)], crate::retry::Max::Tiers, 0.0).unwrap();
        let mut failed =
            |failures, retry| Word::failed(&Tries { failures, retry, topic: None }, &default, None, &mut rng);
        assert_eq!(failed(0, None), Word::Retry { after: Duration::from_secs(9), error: None });
        let over = Word::Bury { reason: "exhausted".to_owned(), error: None };
        assert_eq!(failed(1, None), over);
        assert_eq!(failed(0, Some(RetryPolicy::none())), over);
    }
}
