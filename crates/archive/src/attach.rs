//! Keeps the store informed of which ended jobs the archive wants, by the settings and by the policies of topics.

use std::time::Duration;

use ringback_core::store_types::{ArchiveSettings, EndedState, EndedStates, StoreError};
use ringback_core::topic_policy::Policies;
use ringback_service::outage::Outage;
use ringback_service::telemetry::with_causes;
use ringback_store::{SharedConfig, Store};
use strum::VariantArray as _;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::config::Config;

/// How often the policies are looked at.
const INTERVAL: Duration = Duration::from_secs(1);
/// How often the store is looked at: an archive is attached again if it was detached, or if the store has lost its data.
const LOOK: Duration = Duration::from_secs(10);

/// Attaches the archive to the store, and does so again when policies ask for other ended jobs. Runs for ever; may be
/// dropped at any time. The archive stays attached then, so that nothing is lost until an archiver runs again.
pub(crate) async fn keep_attached(store: Store, policies: SharedConfig, config: Config) {
    let (mut attached, mut outage, mut looked) = (None, Outage::new(), Instant::now());
    policies.known().await;
    loop {
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            // An error is that of the next change too.
            if !is_attached(&store, attached).await.unwrap_or(true) {
                attached = None;
            }
        }
        let wanted = policies.all().ok().map(|policies| settings(&config, &policies, store.shards().count()));
        if let Some(wanted) = wanted.filter(|wanted| attached != Some(*wanted)) {
            match store.attach_archive(Some(wanted)).await {
                Ok(()) => {
                    outage.ends();
                    attached = Some(wanted);
                    info!(states = ?names(wanted.states), bodies = wanted.with_bodies, "the archive is attached");
                }
                Err(error) => {
                    if outage.begins() {
                        warn!(error = with_causes(&error), "cannot attach the archive; retrying");
                    }
                    sleep(outage.wait()).await;
                    continue;
                }
            }
        }
        sleep(INTERVAL).await;
    }
}

/// Whether all shards have these settings. Fails if the store does.
async fn is_attached(store: &Store, settings: Option<ArchiveSettings>) -> Result<bool, StoreError> {
    for shard in store.shards() {
        if store.archive_status_of(shard).await?.settings != settings {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What a shard keeps: the ended jobs that any topic wants. The relay drops what a topic does not want.
fn settings(config: &Config, policies: &Policies, shards: usize) -> ArchiveSettings {
    let all = policies.values().map(|policy| policy.archive);
    let states = all.clone().filter_map(|archive| archive.states).fold(config.states, EndedStates::union);
    let with_bodies = config.with_bodies || all.into_iter().any(|archive| archive.bodies == Some(true));
    let bound = u64::from(config.outbox_mib) * 1024 * 1024 / (shards as u64).max(1);
    ArchiveSettings { states, with_bodies, bound, when_full: config.when_full }
}

fn names(states: EndedStates) -> Vec<&'static str> {
    EndedState::VARIANTS.iter().copied().filter(|kind| states.has(*kind)).map(<&str>::from).collect()
}

#[cfg(test)]
mod tests {
    use ringback_core::store_types::WhenFull;
    use ringback_wire::parse_policy;

    use super::*;

    #[test]
    fn the_store_keeps_what_the_settings_or_any_policy_want() {
        let config = Config {
            url: "sqlite:a".parse().unwrap(),
            states: EndedStates::of([EndedState::Dead]),
            with_bodies: false,
            keep: None,
            outbox_mib: 1,
            when_full: WhenFull::Drop,
        };
        let policies = |json: &str| {
            Policies::from([("t".parse().unwrap(), parse_policy(json.as_bytes()).unwrap().into())])
        };
        let none = settings(&config, &Policies::new(), 16);
        assert_eq!((none.states, none.with_bodies, none.bound), (config.states, false, 65_536));
        let more = settings(&config, &policies(r#"{"archive":{"states":["done"],"bodies":true}}"#), 16);
        assert_eq!(
            (more.states, more.with_bodies),
            (EndedStates::of([EndedState::Dead, EndedState::Done]), true)
        );
        let fewer = settings(&config, &policies(r#"{"archive":{"states":[],"bodies":false}}"#), 16);
        assert_eq!((fewer.states, fewer.with_bodies), (config.states, false));
    }
}
