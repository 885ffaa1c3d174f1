//! Breakers: what one does to the callbacks to an origin, and the request that forces those of a destination.

use ringback_core::breaker::{Breaker, Stage};
use ringback_core::destination::{Destination, DestinationPause};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::declare::request;
use super::kinds::Text;

/// A breaker that holds callbacks back for jobs of one tenant, because nothing at an origin answered, or because it has
/// asked for fewer callbacks. For several tenants, that of one of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BreakerDetails {
    /// What it does.
    pub state: BreakerState,
    /// When it opened, or when the receiver asked for fewer callbacks.
    #[schema(format = DateTime)]
    pub since: String,
    /// When the next callback may begin: the next probe of an open breaker, or all callbacks of a slowed one. Absent
    /// while it is returning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub next_at: Option<String>,
    /// How many callbacks may begin in a time, such as `8/s`, while it is returning; else absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
}

/// `slowed`: the receiver has answered 429, or 503 with `Retry-After`, and no callback begins until then. `open`: one
/// callback at a time probes the origin. `returning`: it has answered, and twice as many callbacks begin each second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema, strum::Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum BreakerState {
    Slowed,
    Open,
    Returning,
}

/// `auto`: the breakers open and close by themselves. `open`: the destination is paused, so no callback begins.
/// `closed`: they never open.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    ToSchema,
    strum::Display,
    strum::EnumString
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum BreakerSetting {
    Auto,
    Open,
    Closed,
}

request! {
    /// What the breakers of a destination are to do.
    #[example {"state": "closed"}]
    pub struct BreakerRequest(open) {
        /// What they do from now on, until this is changed.
        state: Text<BreakerSetting, BreakerSetting> ["auto, open or closed"], required BreakerSetting::Auto;
    }
}

impl BreakerDetails {
    /// The details of a breaker; `None` if it is closed.
    pub(super) fn new(breaker: &Breaker) -> Option<Self> {
        let (state, since, next_at) = match breaker.stage() {
            Stage::Closed => return None,
            Stage::Slowed { at, until } => (BreakerState::Slowed, at, Some(until)),
            Stage::Open { since, next, .. } => (BreakerState::Open, since, Some(next)),
            Stage::Returning { since, .. } => (BreakerState::Returning, since, None),
        };
        let rate = breaker.limits().rate.filter(|_| next_at.is_none());
        Some(Self {
            state,
            since: since.to_string(),
            next_at: next_at.map(|at| at.to_string()),
            rate: rate.map(|rate| rate.to_string()),
        })
    }
}

impl BreakerSetting {
    /// The setting of a destination that is paused, or whose breakers are forced closed, or neither. A pause comes first.
    pub(super) fn of<'p>(
        paused: bool,
        forced_closed: impl IntoIterator<Item = &'p DestinationPause>,
        holds: impl Fn(&Destination) -> bool,
    ) -> Self {
        if paused {
            Self::Open
        } else if forced_closed.into_iter().any(|of| holds(&of.destination)) {
            Self::Closed
        } else {
            Self::Auto
        }
    }
}
