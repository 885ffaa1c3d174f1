//! Limits of destinations and topics: what each allows, by name. How much of it is used is only in memory (`places`).

use ringback_core::flow::{Limits, Rate};
use ringback_core::lane::Lane;
use ringback_core::store_types::{LimitTarget, MAX_LIMITS, MAX_LIMITS_OF_TENANT, PauseLimit, StoreError};
use serde::{Deserialize, Serialize};

use super::rows::{Access, Rows, Writing, pack};
use crate::error::Result;

const UNREADABLE: StoreError = StoreError::Unreadable("a limit");

/// What a limit allows. Packed with postcard.
#[derive(Serialize, Deserialize)]
struct LimitRow {
    /// Count, and length of the unit in seconds.
    rate: Option<(u32, u64)>,
    burst: Option<u32>,
    in_flight: Option<u32>,
}

pub(crate) struct StoredLimits<A: Access>(pub(crate) Rows<A, &'static str, &'static [u8]>);

impl<A: Access> StoredLimits<A> {
    pub(crate) fn get(&self, name: &str) -> Result<Option<Limits>> {
        self.0.read(name, unpack)?.transpose()
    }

    fn names(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        self.0.each(|name, _| {
            names.push(name.to_owned());
            Ok(())
        })?;
        Ok(names)
    }

    /// Returns what is limited.
    pub(crate) fn targets(&self) -> Result<Vec<LimitTarget>> {
        self.names()?.iter().map(|name| target(name)).collect()
    }

    /// Returns the targets of the limits of a lane's callbacks.
    pub(crate) fn targets_of_lane(&self, lane: &str) -> Result<Vec<LimitTarget>> {
        self.of_lane(lane)?.iter().map(|(name, _)| target(name)).collect()
    }

    /// Returns the limits of a lane's callbacks, with their names.
    pub(crate) fn of_lane(&self, lane: &str) -> Result<Vec<(String, Limits)>> {
        let mut found = Vec::new();
        for name in self.possible(lane)? {
            if let Some(limits) = self.get(&name)? {
                found.push((name, limits));
            }
        }
        Ok(found)
    }

    /// Whether anything limits a lane's callbacks.
    pub(crate) fn has(&self, lane: &str) -> Result<bool> {
        for name in self.possible(lane)? {
            if self.0.has(&*name)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the names under which a lane may be limited; none for a pull lane, or if the table is empty.
    fn possible(&self, lane: &str) -> Result<impl Iterator<Item = String>> {
        // Nearly always nothing is limited.
        let is_empty = self.0.len()? == 0;
        let names = if is_empty { None } else { Lane::parse(lane).and_then(LimitTarget::names_of) };
        Ok(names.into_iter().flatten())
    }
}

impl StoredLimits<Writing<'_>> {
    /// Stores a limit, in place of another one of the same name. If it would be one too many, changes nothing and
    /// returns which bound it would exceed.
    pub(crate) fn put(&mut self, of: &LimitTarget, limits: &Limits) -> Result<Option<PauseLimit>> {
        let name = of.name();
        if !self.0.has(&*name)? {
            let names = self.names()?;
            let (names, prefix) = (names.iter().map(String::as_str), of.tenant_prefix());
            let exceeded = PauseLimit::exceeded(names, prefix.as_deref(), MAX_LIMITS, MAX_LIMITS_OF_TENANT);
            if exceeded.is_some() {
                return Ok(exceeded);
            }
        }
        let Limits { rate, burst, in_flight } = *limits;
        let row = LimitRow { rate: rate.map(Rate::parts), burst, in_flight };
        self.0.insert(&*name, pack(&row).as_slice())?;
        Ok(None)
    }

    pub(crate) fn remove(&mut self, name: &str) -> Result<()> {
        self.0.remove(name).map(drop)
    }
}

fn target(name: &str) -> Result<LimitTarget> {
    Ok(LimitTarget::from_name(name).ok_or(UNREADABLE)?)
}

fn unpack(raw: &[u8]) -> Result<Limits> {
    let LimitRow { rate, burst, in_flight } = postcard::from_bytes(raw).map_err(|_| UNREADABLE)?;
    let rate = rate.map(|(count, seconds)| Rate::from_parts(count, seconds).ok_or(UNREADABLE)).transpose()?;
    Ok(Limits { rate, burst, in_flight })
}
