//! The index of jobs by their tags, for jobs that have not ended. A key has tenant, tag and the number of the job.

use redb::ReadableTable as _;
use ringback_core::job::Tenant;

use super::counts::tenant_of;
use super::record::Record;
use super::rows::{Access, Rows, Writing};
use crate::error::Result;

pub(crate) struct TaggedJobs<A: Access>(pub(crate) Rows<A, (&'static str, u64), ()>);

/// A tag of the jobs of a tenant, or of the jobs without one: both parts, separated by a space.
pub(crate) struct TenantTag(String);

impl TenantTag {
    pub(crate) fn new(tenant: Option<&Tenant>, tag: &str) -> Self {
        Self::of(&tenant.map_or_else(String::new, |name| format!("{}{name}", Tenant::MARK)), tag)
    }

    fn of(tenant: &str, tag: &str) -> Self {
        Self(format!("{tenant} {tag}"))
    }

    fn all_of(record: &Record) -> impl Iterator<Item = Self> {
        let tenant = tenant_of(&record.topic).unwrap_or_default();
        record.tags.iter().map(move |tag| Self::of(tenant, tag))
    }
}

impl<A: Access> TaggedJobs<A> {
    /// Returns the numbers of the jobs with a tag, from `from` on, in order.
    pub(crate) fn range(&self, tag: &TenantTag, from: u64) -> Result<impl Iterator<Item = Result<u64>>> {
        let rows = self.0.range((&*tag.0, from)..=(&*tag.0, u64::MAX))?;
        Ok(rows.map(|row| Ok(row?.0.value().1)))
    }

    /// Returns how many of a job's tags the index has, and how many it lacks.
    pub(crate) fn count(&self, record: &Record) -> Result<(u64, u64)> {
        let (mut found, mut missing) = (0, 0);
        for tag in TenantTag::all_of(record) {
            *(if self.0.has((&*tag.0, record.number))? { &mut found } else { &mut missing }) += 1;
        }
        Ok((found, missing))
    }

    pub(crate) fn len(&self) -> Result<u64> {
        self.0.len()
    }
}

impl TaggedJobs<Writing<'_>> {
    pub(crate) fn add(&mut self, record: &Record) -> Result<()> {
        TenantTag::all_of(record).try_for_each(|tag| self.0.insert((&*tag.0, record.number), ()))
    }

    pub(crate) fn remove(&mut self, record: &Record) -> Result<()> {
        TenantTag::all_of(record).try_for_each(|tag| self.0.remove((&*tag.0, record.number)).map(drop))
    }
}
