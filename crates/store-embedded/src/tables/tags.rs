//! The index of jobs that have not ended by their tags: tenant and tag, and the number of the job.

use redb::ReadableTable as _;
use ringback_core::contract::Filter;
use ringback_core::job::Tenant;

use super::counts::tenant_of;
use super::record::Record;
use super::rows::{Access, Rows, Writing};
use crate::error::Result;

pub(crate) struct TaggedJobs<A: Access>(pub(crate) Rows<A, (&'static str, u64), ()>);

/// A tag of a tenant, or of those without one. No part has a space.
pub(crate) struct TenantTag(String);

impl TenantTag {
    fn new(tenant: &str, tag: &str) -> Self {
        Self(format!("{tenant} {tag}"))
    }

    /// The tag that a filter names, if it names the tenant too.
    pub(crate) fn of_filter(filter: &Filter) -> Option<Self> {
        let (tenant, tag) = filter.tag_of_tenant()?;
        Some(Self::new(&tenant.map_or_else(String::new, |name| format!("{}{name}", Tenant::MARK)), tag))
    }

    fn all_of(record: &Record) -> impl Iterator<Item = Self> {
        let tenant = tenant_of(&record.topic).unwrap_or_default();
        record.tags.iter().map(move |tag| Self::new(tenant, tag))
    }
}

impl<A: Access> TaggedJobs<A> {
    /// The numbers of the jobs with a tag, from one on, in order.
    pub(crate) fn range(&self, tag: &TenantTag, from: u64) -> Result<impl Iterator<Item = Result<u64>>> {
        let rows = self.0.range((&*tag.0, from)..=(&*tag.0, u64::MAX))?;
        Ok(rows.map(|row| Ok(row?.0.value().1)))
    }

    /// How many of the tags of a job it has.
    pub(crate) fn count(&self, record: &Record) -> Result<usize> {
        TenantTag::all_of(record).map(|tag| Ok(usize::from(self.0.has((&*tag.0, record.number))?))).sum()
    }

    /// Whether it has all tags of a job.
    pub(crate) fn is_whole(&self, record: &Record) -> Result<bool> {
        Ok(self.count(record)? == record.tags.iter().count())
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
