//! Whether other callers have been active in the last 2 s: a caller is made to wait for others only while there are
//! some.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ringback_admission::Principal;
use ringback_service::http_server::{Holder, Peer};
use tokio::time::Instant;

/// How long a caller counts as active after a request.
const ACTIVE: Duration = Duration::from_secs(2);

/// The two callers that have sent the latest requests: enough to know whether there is another one.
#[derive(Default)]
pub(crate) struct Activity(Mutex<Latest>);

#[derive(Default)]
struct Latest {
    last: Option<(Holder, Instant)>,
    /// The last one that was another.
    before: Option<(Holder, Instant)>,
}

impl Activity {
    pub(crate) fn note(&self, caller: &Principal, peer: Peer) {
        let (mut latest, now) = (self.lock(), Instant::now());
        match &mut latest.last {
            Some((last, at)) if caller.is_holder(peer, last) => *at = now,
            _ => latest.before = latest.last.replace((caller.holder(peer), now)),
        }
    }

    pub(crate) fn has_others(&self, holder: &Holder) -> bool {
        let latest = self.lock();
        let is_own = |(last, _): &&(Holder, Instant)| last == holder;
        let other = if latest.last.as_ref().is_some_and(|last| is_own(&last)) {
            &latest.before
        } else {
            &latest.last
        };
        other.as_ref().is_some_and(|(_, at)| at.elapsed() < ACTIVE)
    }

    fn lock(&self) -> MutexGuard<'_, Latest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;
    use crate::limits::of_tenant;

    #[tokio::test(start_paused = true)]
    async fn a_caller_has_others_only_while_they_send_requests() {
        let (activity, peer) = (Activity::default(), Peer::of([127, 0, 0, 1].into()));
        let has_others = |name: &str| activity.has_others(&Holder::Name(name.into()));
        assert!(!has_others("a"));
        activity.note(&of_tenant("a"), peer);
        assert!(!has_others("a") && has_others("b"));
        activity.note(&of_tenant("b"), peer);
        assert!(has_others("a") && has_others("b"));
        for _ in 0..3 {
            advance(ACTIVE / 2).await;
            activity.note(&of_tenant("a"), peer);
        }
        assert!(!has_others("a") && has_others("b"), "b has sent nothing for three seconds");
    }
}
