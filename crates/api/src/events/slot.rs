//! The place that a listener occupies among the allowed number of listeners, and in the metric.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;

use crate::metrics::Metrics;

/// One of the allowed listeners. Dropping it frees the place.
pub(super) struct Slot {
    metrics: Arc<Metrics>,
    _permit: OwnedSemaphorePermit,
}

impl Slot {
    pub(super) fn new(permit: OwnedSemaphorePermit, metrics: &Arc<Metrics>) -> Self {
        metrics.listener_came();
        Self { metrics: Arc::clone(metrics), _permit: permit }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.metrics.listener_left();
    }
}
