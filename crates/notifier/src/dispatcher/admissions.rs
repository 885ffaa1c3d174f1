//! Asks the store for places for the jobs of limited lanes, and begins the deliveries of those that have one.

use std::time::Duration;

use anyhow::Context as _;
use ringback_core::store_types::{Admission, Admitted, Lease, Shard, StoreError};
use ringback_service::telemetry::with_causes;
use tokio::task::JoinError;
use tokio::time::Instant;
use tracing::warn;

use super::Dispatcher;
use crate::shard_signals::Cause;

/// The pause after a call that failed.
const PAUSE: Duration = Duration::from_millis(200);

/// The answer to a call for admission.
pub(super) struct AdmissionReply {
    call: Admission,
    /// When the store has processed it, about.
    at: Instant,
    result: Result<Vec<Admitted>, StoreError>,
}

impl Dispatcher {
    /// Makes the next call for admission, if one is due and none is in flight.
    pub(super) fn ask_for_places(&mut self) {
        let (free, room) = self.lanes.room();
        let free = if self.held_back_until().is_some() { 0 } else { free };
        let Some(call) = self.flow.ask(Instant::now(), free, room) else { return };
        let store = self.store.clone();
        self.admissions.spawn(async move {
            let asked = Instant::now();
            let result = store.admit(&call).await;
            AdmissionReply { call, at: asked + asked.elapsed() / 2, result }
        });
    }

    pub(super) fn admitted(&mut self, reply: Result<AdmissionReply, JoinError>) -> anyhow::Result<()> {
        let AdmissionReply { call, at, result } = reply.context("a call for admission panicked")?;
        match result {
            Ok(answers) => {
                let shards = self.flow.admitted(call, answers, at);
                self.mark_for_places(shards);
            }
            Err(error) => {
                warn!(error = with_causes(&error), "no places for limited destinations; asking again");
                self.flow.failed(call, Instant::now() + PAUSE);
            }
        }
        Ok(())
    }

    /// Marks shards with jobs for which there are places.
    pub(super) fn mark_for_places(&self, shards: Vec<Shard>) {
        for shard in shards {
            self.signals.mark(shard, Cause::Local);
        }
    }

    /// Begins the delivery of a job of a limited lane. One without a place goes back to the store.
    pub(super) fn begin_limited(&mut self, lane: String, lease: Lease) {
        match self.flow.take(&lane) {
            Some(place) => {
                self.flow.hold(&lane, place, self.deliverer.timeout(&lease));
                self.begin(lane, lease, Some(place));
            }
            None => self.give_back(vec![(lane, lease)]),
        }
    }
}
