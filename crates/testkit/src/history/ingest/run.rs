//! Reads a history's lines about the run: settings, clocks, faults, processes, logs, samples and final counts.

use super::{Ingest, IngestResult};
use crate::history::entry::{Entry, Fault, LockUse, Sample};
use crate::history::parsed_lines::{ExitRecord, FaultRecord, LimitRecord, LockRecord, LogRecord, Series};
use crate::history::reader::Unreadable;
use crate::history::records::NEVER;

/// The most lines of logs that are kept, and the most characters of each.
const MAX_LOGS: usize = 10_000;
const MAX_LOG_TEXT: usize = 300;
/// The fewest bytes of a canary.
const MIN_CANARY: usize = 8;

impl Ingest {
    /// Adds a line that is not about a job to the tables. Fails for a canary of less than eight bytes, a fault with a
    /// wrong number, or a stall that ends before it begins.
    pub(super) fn run_line(&mut self, line: u32, entry: Entry<'_>) -> IngestResult {
        let run = &mut self.tables.run;
        match entry {
            Entry::Policy(policy) => {
                run.policies.insert(policy.p, policy);
            }
            Entry::Tenant(tenant) => {
                run.tenants.insert(tenant.topic.to_owned(), tenant.alone);
            }
            Entry::Limit(limit) => {
                let record = LimitRecord { most: limit.most, leak: limit.leak };
                run.limits.insert(limit.name.to_owned(), record);
            }
            Entry::Canary(canary) if canary.text.len() < MIN_CANARY => {
                return Err(Unreadable::new(line, "a canary of less than eight bytes"));
            }
            Entry::Canary(_) => run.canaries += 1,
            Entry::Clock(reading) => run.readings.push(reading),
            Entry::Claim(lock) => self.lock_use(line, &lock, true),
            Entry::Effect(lock) => self.lock_use(line, &lock, false),
            Entry::Fault(fault) => return self.fault(line, &fault),
            Entry::Healed(healed) => match self.faults.remove(&healed.f) {
                Some(place) => run.faults[place].end = healed.t,
                None => return Err(Unreadable::new(line, "no fault with this number has begun")),
            },
            Entry::Loss(loss) => run.losses.push(loss),
            Entry::Proc(process) => {
                run.starts.insert(process.pid, line);
            }
            Entry::Exit(exit) => {
                let (time, pid, status, signal) = (exit.t, exit.pid, exit.status, exit.signal);
                run.exits.push(ExitRecord { line, time, pid, status, signal });
            }
            Entry::Log(log) => {
                if run.logs.len() < MAX_LOGS {
                    let text = log.text.chars().take(MAX_LOG_TEXT).collect();
                    run.logs.push(LogRecord { line, level: log.level, is_known: log.class.is_some(), text });
                }
            }
            Entry::Sample(sample) => self.sample(line, &sample),
            Entry::Alarm(alarm) => run.alarms.push((line, alarm)),
            Entry::Stall(stall) if stall.since > stall.t => {
                return Err(Unreadable::new(line, "a time that ends before it begins"));
            }
            Entry::Stall(stall) => run.stalls.push(stall),
            Entry::Scan(scan) => run.scans.push((line, scan.found)),
            Entry::Check(check) => run.checks.push((line, check)),
            Entry::Ledger(ledger) => run.ledger = Some((line, ledger)),
            Entry::Metric(metric) => {
                let name = (metric.name.to_owned(), metric.label.to_owned());
                let (sum, last) = run.metrics.entry(name).or_default();
                (*sum, *last) = (*sum + metric.value, line);
            }
            Entry::End(end) => run.end = Some(end),
            other => unreachable!("a line about a job: {other:?}"),
        }
        Ok(())
    }

    fn fault(&mut self, line: u32, fault: &Fault<'_>) -> IngestResult {
        let faults = &mut self.tables.run.faults;
        if self.faults.insert(fault.f, faults.len()).is_some() {
            return Err(Unreadable::new(line, "a fault with this number has not ended"));
        }
        faults.push(FaultRecord {
            line,
            kind: fault.kind.to_owned(),
            class: fault.class,
            pid: fault.pid,
            begin: fault.t,
            end: NEVER,
        });
        Ok(())
    }

    fn lock_use(&mut self, line: u32, lock: &LockUse<'_>, is_claim: bool) {
        let record = LockRecord {
            line,
            lock: self.tables.texts.number(lock.lock),
            asked: lock.asked,
            known: lock.t,
            token: lock.token,
            pid: lock.pid,
            is_claim,
            is_fenced: lock.fenced,
        };
        self.tables.run.locks.push(record);
    }

    fn sample(&mut self, line: u32, sample: &Sample<'_>) {
        let name = (sample.name.to_owned(), sample.of.to_owned());
        let new = Series { first: sample.value, last: sample.value, most: 0, lines: [line; 3] };
        let series = self.tables.run.series.entry(name).or_insert(new);
        (series.last, series.lines[2]) = (sample.value, line);
        if sample.value >= series.most {
            (series.most, series.lines[1]) = (sample.value, line);
        }
    }
}
