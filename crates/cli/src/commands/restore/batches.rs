//! Reads the jobs of a backup into batches of an import. A job of a tenant names the tenant itself; jobs without one
//! are in batches of their own, which are sent for no tenant, so that they do not become jobs of the key's tenant.

use std::io::BufRead;

use bytes::BytesMut;

use super::super::import::{Batch, FULL, MAX_LINES};
use super::Chosen;
use crate::access::tenant_value;
use crate::backup_file::{Damage, Kind, Line, Lines};

/// A job that is read and not in a batch yet.
struct Job {
    /// Whether it belongs to a tenant.
    has_tenant: bool,
    number: u64,
    json: Box<str>,
}

/// The batches of a backup.
pub(super) struct Batches<R> {
    source: Option<R>,
    lines: Option<Lines<R>>,
    chosen: Chosen,
    /// The job with which the next batch begins, because it belongs to a tenant and those before it to none, or the
    /// other way.
    next: Option<Job>,
    sequence: u64,
}

impl<R: BufRead> Batches<R> {
    /// The batches of the jobs of a backup. `source` is at the beginning of the backup.
    pub(super) fn new(source: R, chosen: Chosen) -> Self {
        Self { source: Some(source), lines: None, chosen, next: None, sequence: 0 }
    }

    fn batch(&mut self) -> Result<Option<Batch>, Damage> {
        if let Some(source) = self.source.take() {
            self.lines = Some(Lines::open(source)?.1);
        }
        let Some(lines) = &mut self.lines else { return Ok(None) };
        let mut batch = Batch { sequence: self.sequence, ..Batch::default() };
        let (mut bytes, read_before) = (BytesMut::new(), lines.bytes());
        let mut of_tenants = None;
        while batch.lines.len() < MAX_LINES && bytes.len() < FULL {
            let job = match self.next.take() {
                Some(job) => job,
                None => match lines.next()? {
                    None => break,
                    Some(Line { kind, tenant, number, json }) => {
                        if kind != Kind::Job || !self.chosen.has(tenant.as_ref()) {
                            continue;
                        }
                        Job { has_tenant: tenant.is_some(), number, json: json.into() }
                    }
                },
            };
            if *of_tenants.get_or_insert(job.has_tenant) != job.has_tenant {
                self.next = Some(job);
                break;
            }
            let start = bytes.len();
            bytes.extend_from_slice(job.json.as_bytes());
            bytes.extend_from_slice(b"\n");
            batch.lines.push((job.number, start..bytes.len()));
            batch.last_line = job.number;
        }
        batch.tenant = (of_tenants == Some(false)).then(|| tenant_value(None));
        batch.source_bytes = lines.bytes() - read_before;
        batch.bytes = bytes.freeze();
        self.sequence += 1;
        Ok(Some(batch).filter(|batch| !batch.lines.is_empty()))
    }
}

impl<R: BufRead> Iterator for Batches<R> {
    type Item = Result<Batch, Damage>;

    fn next(&mut self) -> Option<Result<Batch, Damage>> {
        let batch = self.batch().transpose();
        if !matches!(batch, Some(Ok(_))) {
            self.lines = None;
        }
        batch
    }
}
