//! `Budget`: how many callbacks of a tenant may still fail, which of its lanes are closed because they failed, and when
//! these open. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

/// How many callbacks of a tenant may fail a second.
const RATE: f64 = 100.0;
/// How many may fail at once, and after how many further failures all lanes of the tenant are closed.
pub(super) const MOST: f64 = 100.0;
/// Closed lanes open when so many callbacks may fail again, so that callbacks come in batches.
const BATCH: f64 = 8.0;
/// How many failing lanes of a tenant are known. With more of them all of its lanes are closed.
pub(super) const MAX_LANES: usize = 256;
/// How long a tenant counts as one of several after a callback.
pub(super) const ACTIVE: Duration = Duration::from_secs(10);

/// A budget, and what it has closed.
pub(super) struct Budget {
    /// How many callbacks may still fail, or begin if that counts; less than 0 if more have failed.
    pub(super) left: f64,
    at: Instant,
    /// When a callback last began or ended.
    pub(super) seen: Instant,
    state: State,
    /// The lanes that have failed since the budget was full.
    pub(super) lanes: BTreeSet<String>,
    /// Whether lanes went on failing after they were closed, or more have failed than are known: then all lanes of the
    /// tenant are limited, and callbacks count when they begin.
    pub(super) fails_on: bool,
    /// The time of the last failure while that was so.
    failed_on: Instant,
    /// Whether a callback has succeeded.
    has_succeeded: bool,
    /// How many callbacks in flight counted when they began.
    pub(super) counted: usize,
    /// How many callbacks of the tenant the reserves in flight may bring.
    pub(super) requested: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// Closed: the lanes that fail, or all of them.
    Closed,
}

impl Budget {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            left: MOST,
            at: now,
            seen: now,
            state: State::Open,
            lanes: BTreeSet::new(),
            fails_on: false,
            failed_on: now,
            has_succeeded: false,
            counted: 0,
            requested: 0,
        }
    }

    /// Adds what the time since the last refill allows, and opens closed lanes if enough is left. Forgets failing lanes
    /// once the budget is full.
    pub(super) fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        (self.left, self.at) = ((self.left + RATE * passed).min(MOST), now);
        if self.state == State::Closed && self.left >= BATCH {
            self.state = State::Open;
        }
        if self.left >= MOST {
            self.lanes.clear();
            self.fails_on &= now.saturating_duration_since(self.failed_on) < ACTIVE;
        }
    }

    /// Whether callbacks count when they begin, and not when they fail.
    pub(super) fn counts_begun(&self) -> bool {
        self.fails_on || !self.has_succeeded
    }

    /// Records that a callback has begun, which costs 1 if callbacks count then.
    pub(super) fn began(&mut self) {
        if self.counts_begun() {
            self.counted += 1;
            self.left -= 1.0;
        }
    }

    /// Ends a callback, and returns whether it had counted when it began.
    fn was_counted(&mut self) -> bool {
        let was_counted = self.counted > 0;
        self.counted = self.counted.saturating_sub(1);
        was_counted
    }

    /// Records the end of a callback that did not show whether its receiver works. Returns its cost if it had counted.
    pub(super) fn came_to_nothing(&mut self) {
        if self.was_counted() {
            self.left = (self.left + 1.0).min(MOST);
        }
    }

    pub(super) fn failed(&mut self, lane: &str) {
        if !self.was_counted() {
            self.left -= 1.0;
        }
        if !self.lanes.contains(lane) {
            if self.lanes.len() < MAX_LANES {
                self.lanes.insert(lane.to_owned());
            } else {
                self.fails_on = true;
            }
        }
        if self.left <= 0.0 {
            self.state = State::Closed;
        }
        self.fails_on |= self.left <= -MOST;
        if self.fails_on {
            self.failed_on = self.at;
        }
    }

    pub(super) fn succeeded(&mut self, lane: &str) {
        self.has_succeeded = true;
        self.came_to_nothing();
        self.left = (self.left + 1.0).min(MOST);
        self.lanes.remove(lane);
    }

    /// How many callbacks may start in each lane that has failed; `None` for any number.
    pub(super) fn limit(&self) -> Option<usize> {
        match self.state {
            State::Closed => Some(0),
            State::Open if self.left < MOST => Some((self.left as usize).max(1)),
            State::Open => None,
        }
    }

    /// How many more callbacks may begin beside those of reserves in flight; 0 if less than a batch is left.
    pub(super) fn batch(&self) -> usize {
        let left = self.left - self.requested as f64;
        if left < BATCH { 0 } else { left as usize }
    }

    /// When the closed lanes open; `None` if none is closed.
    pub(super) fn opens(&self) -> Option<Instant> {
        let (left, is_closed) = if self.counts_begun() {
            (self.left - self.requested as f64, self.batch() == 0)
        } else {
            (self.left, self.state == State::Closed)
        };
        let missing = (BATCH - left).max(0.0) / RATE;
        is_closed.then(|| self.at + Duration::from_secs_f64(missing))
    }
}
