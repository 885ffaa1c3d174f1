//! Puts the schedules of a backup after everything else, so that nothing fires before. A schedule that the installation
//! has already stays as it is; it is refused if it differs.

use std::collections::BTreeMap;
use std::io::BufRead;

use anyhow::Context as _;
use http::Method;
use ringback_core::job::Tenant;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::super::call_retries::PatientCalls;
use super::present_topics::each_line;
use super::results::Results;
use super::{Plan, from_backup};
use crate::backup_file::{Kind, Lines};
use crate::client::{Call, ClientError, SHORT};

/// A line of an export of schedules.
#[derive(Deserialize)]
struct ScheduleLine<'a> {
    id: String,
    #[serde(borrow)]
    schedule: &'a RawValue,
}

/// The schedules that are there, by tenant and id.
type Present = BTreeMap<(Option<Tenant>, String), Content>;

/// The content of a schedule, for comparison. The body of its job is kept as text: not every JSON text is a value.
#[derive(PartialEq)]
struct Content {
    fields: Map<String, Value>,
    job: Map<String, Value>,
    body: Option<Box<str>>,
}

impl Content {
    fn read(schedule: &RawValue) -> serde_json::Result<Self> {
        let (mut job, mut body) = (Map::new(), None);
        let mut fields: BTreeMap<String, &RawValue> = serde_json::from_str(schedule.get())?;
        if let Some(raw) = fields.remove("job") {
            let mut parts: BTreeMap<String, &RawValue> = serde_json::from_str(raw.get())?;
            body = parts.remove("body").map(|body| body.get().into());
            job = values(parts)?;
        }
        Ok(Self { fields: values(fields)?, job, body })
    }
}

fn values(parts: BTreeMap<String, &RawValue>) -> serde_json::Result<Map<String, Value>> {
    parts.into_iter().map(|(name, raw)| Ok((name, serde_json::from_str(raw.get())?))).collect()
}

/// Restores the schedules at the end of a backup, and counts them in `results`. Those that are other ones here, which
/// stay, and those that the server refuses with 409 or 422, count as refused, with a note. Fails at any other error.
pub(super) async fn restore(
    calls: PatientCalls<'_>,
    source: impl BufRead,
    plan: &Plan,
    results: &mut Results,
) -> anyhow::Result<()> {
    let (_, mut lines) = Lines::open(source)?;
    let mut present = None;
    while let Some(line) = lines.next()? {
        if line.kind != Kind::Schedule || !plan.chosen.has(line.tenant.as_ref()) {
            continue;
        }
        let place = || format!("line {}", line.number);
        let ScheduleLine { id, schedule } = serde_json::from_str(line.json).with_context(place)?;
        if present.is_none() {
            present = Some(all_present(calls, plan).await?);
        }
        results.lines += 1;
        let name = (line.tenant.clone(), id.clone());
        match present.as_ref().and_then(|present| present.get(&name)) {
            Some(known) if Content::read(schedule).is_ok_and(|new| new == *known) => results.repeated += 1,
            Some(_) => {
                results.refused += 1;
                let note = format!("line {}: schedule {id} is another one here, and stays", line.number);
                calls.progress.note(&note);
            }
            None => {
                let mut call =
                    Call::new(Method::PUT, &["v1", "schedules", &id]).for_tenant(line.tenant.as_ref());
                call.query = vec![from_backup()];
                call.body = Some(("application/json", schedule.get().to_owned().into()));
                match calls.ask(call, SHORT).await {
                    Ok(_) => results.created += 1,
                    // One that has fired for the last time, or that this installation does not take.
                    Err(ClientError::Problem { problem, .. }) if [409, 422].contains(&problem.status) => {
                        results.refused += 1;
                        let why = problem
                            .errors
                            .first()
                            .map_or(problem.detail.as_str(), |error| error.detail.as_str());
                        calls.progress.note(&format!("line {}: schedule {id}: {why}", line.number));
                    }
                    Err(error) => {
                        return Err(error).with_context(|| format!("{}: schedule {id}", place()));
                    }
                }
            }
        }
    }
    Ok(())
}

async fn all_present(calls: PatientCalls<'_>, plan: &Plan) -> anyhow::Result<Present> {
    let mut present = Present::new();
    for owner in &plan.owners {
        let add = |line: &[u8]| {
            let ScheduleLine { id, schedule } = serde_json::from_slice(line)?;
            present.insert((owner.clone(), id), Content::read(schedule)?);
            Ok(())
        };
        each_line(calls, ("schedules", "schedules"), owner.as_ref(), add).await?;
    }
    Ok(present)
}
