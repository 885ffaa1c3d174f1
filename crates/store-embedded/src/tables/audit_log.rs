//! The audit log: its entries by id, an index by owner, and how much the entries of each owner weigh together.

use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Included, Unbounded};

use redb::ReadableTable as _;
use ringback_core::store_types::{AuditLogId, AuditLogOwner, AuditLogRow, StoreError};

use super::definitions::{AUDIT_LOG, AUDIT_LOG_OWNERS, AUDIT_LOG_WEIGHTS};
use super::rows::{Access, Rows, Writing};
use crate::error::Result;

const UNREADABLE: StoreError = StoreError::Unreadable("an entry of the audit log");

pub(crate) struct AuditLog<A: Access> {
    /// The owner and the text of each entry, by its id.
    entries: Rows<A, &'static str, (&'static str, &'static str)>,
    /// Owner and id of each entry.
    owners: Rows<A, (&'static str, &'static str), ()>,
    /// How much the entries of each owner weigh.
    weights: Rows<A, &'static str, u64>,
}

impl<A: Access> AuditLog<A> {
    pub(crate) fn open(access: &A) -> Result<Self> {
        Ok(Self {
            entries: access.open(AUDIT_LOG)?,
            owners: access.open(AUDIT_LOG_OWNERS)?,
            weights: access.open(AUDIT_LOG_WEIGHTS)?,
        })
    }

    pub(crate) fn newest(&self, before: Option<&AuditLogId>, limit: usize) -> Result<Vec<AuditLogRow>> {
        let end = before.map_or(Unbounded, |id| Excluded(id.as_str()));
        let mut rows = Vec::new();
        for entry in self.entries.range::<&str>((Unbounded, end))?.rev().take(limit) {
            let (id, value) = entry?;
            let (owner, written) = value.value();
            rows.push(row(id.value(), owner, written)?);
        }
        Ok(rows)
    }

    /// Returns the newest entries of an owner, at most `limit`: those before an id, or all without one.
    pub(crate) fn newest_of(
        &self,
        owner: &AuditLogOwner,
        before: Option<&AuditLogId>,
        limit: usize,
    ) -> Result<Vec<AuditLogRow>> {
        // No id is as great as this one.
        let before = before.map_or("~", AuditLogId::as_str);
        let range = (Included((owner.as_str(), "")), Excluded((owner.as_str(), before)));
        let mut rows = Vec::new();
        for place in self.owners.range::<(&str, &str)>(range)?.rev().take(limit) {
            let (place, ()) = (place?.0, ());
            let (_, id) = place.value();
            let found = self.entries.read(id, |(owner, written)| row(id, owner, written))?;
            rows.extend(found.transpose()?);
        }
        Ok(rows)
    }

    /// Returns how much the entries of each owner weigh, the lightest first.
    fn by_weight(&self) -> Result<BTreeSet<(u64, String)>> {
        let mut owners = BTreeSet::new();
        self.weights.each(|owner, weight| {
            owners.insert((weight, owner.to_owned()));
            Ok(())
        })?;
        Ok(owners)
    }
}

impl AuditLog<Writing<'_>> {
    /// Adds an entry, unless there is one with its id.
    pub(crate) fn add(&mut self, row: &AuditLogRow) -> Result<()> {
        let (id, owner) = (row.id.as_str(), row.owner.as_str());
        if self.entries.has(id)? {
            return Ok(());
        }
        self.entries.insert(id, (owner, &*row.written))?;
        self.owners.insert((owner, id), ())?;
        let weight = self.weights.read(owner, |weight| weight)?.unwrap_or_default();
        self.weights.insert(owner, weight + row.weight())
    }

    /// Removes entries until all weigh no more than `most`: the oldest one of the owner whose entries weigh most, again
    /// and again.
    pub(crate) fn remove_beyond(&mut self, most: u64) -> Result<()> {
        let mut owners = self.by_weight()?;
        let mut total: u64 = owners.iter().map(|(weight, _)| weight).sum();
        while total > most {
            let Some((weight, owner)) = owners.pop_last() else { return Ok(()) };
            let of_owner = (owner.as_str(), "")..=(owner.as_str(), "~");
            let oldest = self.owners.list::<(&str, &str), _>(of_owner, 1, |(_, id), ()| id.to_owned())?;
            let freed = match oldest.first() {
                Some(id) => self.remove(&owner, id)?,
                None => weight,
            };
            total = total.saturating_sub(freed.max(1));
            match weight.saturating_sub(freed) {
                0 => drop(self.weights.remove(owner.as_str())?),
                left => {
                    self.weights.insert(owner.as_str(), left)?;
                    owners.insert((left, owner));
                }
            }
        }
        Ok(())
    }

    /// Removes an entry. Returns its weight; 0 if it is not there. Fails if it cannot be read. The caller updates the
    /// weight of the owner.
    fn remove(&mut self, owner: &str, id: &str) -> Result<u64> {
        let weight =
            self.entries.read(id, |(owner, written)| row(id, owner, written).map(|row| row.weight()));
        let weight = weight?.transpose()?.unwrap_or_default();
        self.owners.remove((owner, id))?;
        self.entries.remove(id)?;
        Ok(weight)
    }
}

fn row(id: &str, owner: &str, written: &str) -> Result<AuditLogRow> {
    let owner = AuditLogOwner::from_stored(owner).ok_or(UNREADABLE)?;
    Ok(AuditLogRow { id: id.parse().map_err(|_| UNREADABLE)?, owner, written: written.into() })
}
