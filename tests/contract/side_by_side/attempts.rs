//! Recorded attempts on both stores, side by side: by leases and receipts, with stale and repeated calls.

use ringback_core::clock::Timestamp;
use ringback_core::job::JobKey;
use ringback_core::store_types::{Attempt, AttemptLogEntry};

use super::{Pair, Times};
use crate::contract::job_builders::ms;
use crate::contract::workbench::now;

impl Pair {
    /// Records attempts of some of the leases and receipts so far, in one call for each shard.
    pub(crate) async fn note(&mut self, hands: &[usize], times: Times) {
        for shard in self.stores[0].shards() {
            let mut notes = [Vec::new(), Vec::new()];
            for hand in hands {
                self.sequence += 1;
                let answer = self.sequence.to_string();
                if let Some(hand) = self.hands.get(hand.checked_rem(self.hands.len()).unwrap_or(0))
                    && hand[0].shard() == shard
                {
                    let attempt =
                        Attempt { at: now(), duration: ms(1), answer: answer.into(), ..Attempt::default() };
                    notes[0].push(AttemptLogEntry::of(&hand[0], attempt.clone()));
                    notes[1].push(AttemptLogEntry::of(&hand[1], attempt));
                } else if let Some(held) = self.held.get(hand.checked_rem(self.held.len()).unwrap_or(0))
                    && held[0].receipt.shard == shard
                {
                    for (notes, job) in notes.iter_mut().zip(held) {
                        notes.push(AttemptLogEntry::failed(&job.receipt, Some(answer.clone())));
                    }
                }
            }
            for _ in 0..if matches!(times, Times::Twice) { 2 } else { 1 } {
                for (store, notes) in self.stores.iter().zip(&notes) {
                    store.log_attempts(shard, notes).await.expect("note");
                }
            }
        }
    }

    /// Asserts that both stores have the same recorded attempts, except for times.
    pub(crate) async fn same_attempts(&self, key: &JobKey) {
        let mut logs = Vec::new();
        for store in &self.stores {
            let mut log = store.attempts(key).await.expect("attempts");
            for attempt in log.iter_mut().flatten() {
                (attempt.at, attempt.duration) = (Timestamp::default(), ms(0));
            }
            logs.push(log);
        }
        assert_eq!(logs[0], logs[1], "{}: {key}", self.at);
    }
}
