//! Schedules in a check: each that fires again must be among the times, and each in the index of the installation.

use ringback_core::job::Topic;
use ringback_core::schedule::ScheduleKey;
use ringback_core::store_types::{DamageKind, Finding, Repair, StoreError};

use super::Walk;
use super::answers::Repaired;
use super::calls::{SCHEDULES, Scan};
use crate::installation::schedules::ScheduleListed;
use crate::keys::KeySpace;
use crate::script;

impl Walk<'_> {
    /// Checks all schedules of the shard, and repairs them if repairs are asked for.
    pub(super) async fn schedules(&mut self) -> Result<(), StoreError> {
        let mut scan = Scan::start();
        while !scan.is_over {
            let page: Vec<(String, String, u8)> =
                self.calls.page(&script::CHECK_SCHEDULES, &mut scan, SCHEDULES).await?;
            if page.is_empty() {
                continue;
            }
            let timeless: Vec<_> =
                page.iter().filter(|(_, _, is_timeless)| *is_timeless == 1).map(|(name, ..)| name).collect();
            let repaired = self.repair("schedules", &timeless).await?;
            for (name, repaired) in timeless.into_iter().zip(repaired) {
                self.report(name, "it does not fire", repaired);
            }
            self.unlisted_schedules(&page).await?;
        }
        Ok(())
    }

    /// Reports schedules that the index of the installation does not have, and adds them if repairs are asked for.
    async fn unlisted_schedules(&mut self, page: &[(String, String, u8)]) -> Result<(), StoreError> {
        let names: Vec<_> = page.iter().flat_map(|(name, topic, _)| [name, topic]).collect();
        let unlisted: Vec<u8> = self
            .calls
            .store
            .call(&script::UNLISTED_SCHEDULES, KeySpace::Installation)
            .arg(names)
            .run()
            .await?;
        for ((name, topic, _), _) in page.iter().zip(unlisted).filter(|(_, is_unlisted)| *is_unlisted == 1) {
            let repaired = self.list(name, topic).await?;
            self.report(name, "no list shows it", repaired);
        }
        Ok(())
    }

    /// Adds a schedule to the index of the installation, if repairs are asked for. [`Repaired::MovedOn`] if the schedule is
    /// gone, [`Repaired::Left`] if its key cannot be read or the index does not accept it.
    async fn list(&self, name: &str, topic: &str) -> Result<Repaired, StoreError> {
        let store = self.calls.store;
        let (Some(key), Some(topic)) = (ScheduleKey::from_stored(name), Topic::from_stored(topic)) else {
            return Ok(Repaired::Left);
        };
        if store.schedules_of(self.shard, &[(key.clone(), topic.clone())]).await?.pop().flatten().is_none() {
            return Ok(Repaired::MovedOn);
        }
        if self.repair == Repair::No {
            return Ok(Repaired::Left);
        }
        let listed = store.list_schedule(&key, &topic, None).await?;
        Ok(if listed == ScheduleListed::Listed { Repaired::Done } else { Repaired::Left })
    }

    fn report(&mut self, name: &str, what: &str, repaired: Repaired) {
        let finding = Finding::new(DamageKind::Recurring, self.shard, format!("schedule {name:?}: {what}"));
        self.found(finding, repaired);
    }
}
