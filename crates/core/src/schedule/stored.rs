//! The packed form of a schedule with its progress, which stores keep and do not read: postcard, and a payload in it.

use super::{Rule, ScheduleState};
use crate::clock::millis;

/// A packed schedule that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a schedule cannot be read")]
pub struct UnreadableSchedule;

impl ScheduleState {
    pub fn pack(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("plain data always serialises")
    }

    /// Unpacks the result of [`Self::pack`].
    ///
    /// # Errors
    /// If the bytes are damaged.
    pub fn unpack(bytes: &[u8]) -> Result<Self, UnreadableSchedule> {
        let state: Self = postcard::from_bytes(bytes).map_err(|_| UnreadableSchedule)?;
        match state.schedule.rule {
            Rule::Every { period, .. } if millis(period) == 0 => Err(UnreadableSchedule),
            Rule::Every { .. } | Rule::Cron(_) => Ok(state),
        }
    }
}

/// A delivery as its payload, with the origin, timeout and tags that a payload does not have.
pub(super) mod delivery {
    use std::time::Duration;

    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::job::{Delivery, Tags};
    use crate::store_types::payload;

    #[derive(Serialize, Deserialize)]
    struct Parts {
        origin: String,
        timeout: Option<Duration>,
        tags: Tags,
        payload: Vec<u8>,
    }

    pub(crate) fn serialize<S: Serializer>(delivery: &Delivery, to: S) -> Result<S::Ok, S::Error> {
        let (origin, tags) = (delivery.callback.origin().to_owned(), delivery.tags.clone());
        Parts { origin, timeout: delivery.timeout, tags, payload: payload::pack_as_sent(delivery) }
            .serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Delivery, D::Error> {
        let Parts { origin, timeout, tags, payload } = Parts::deserialize(from)?;
        let delivery = payload::unpack(&payload.into(), origin, timeout, tags);
        delivery.ok_or_else(|| D::Error::custom("not a payload"))
    }
}
