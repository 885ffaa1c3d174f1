//! Sets the policies and pauses of a backup's topics. A topic that has another policy keeps it. If a policy, a pause or
//! signing secrets cannot be set, the restore stops before the jobs, because they would be sent without them.

use std::io::BufRead;
use std::time::Duration;

use anyhow::Context as _;
use http::Method;
use ringback_core::job::Tenant;
use ringback_wire::TopicLine;
use serde::Serialize;
use tokio::time::sleep;

use super::super::call_retries::PatientCalls;
use super::policies::{Fate, Policy, Secrets};
use super::present_topics::{AllPresent, Present};
use super::results::Results;
use super::{Plan, from_backup};
use crate::args::Format;
use crate::backup_file::{Kind, Lines};
use crate::client::{Call, ClientError, SHORT};

/// How long it takes until all processes of an installation know a new policy.
const POLICIES_KNOWN: Duration = Duration::from_secs(1);

/// The advice if secrets cannot be opened.
const SEALED: &str = "its secrets are sealed; start the server with the master keys that sealed them \
    (RINGBACK_MASTER_KEYS), or leave them out with --without-secrets";

/// A topic would send the jobs of a backup unsigned, which were signed before.
#[derive(Debug, thiserror::Error)]
#[error(
    "it has another policy and no signing secrets, so the jobs of the backup would be sent unsigned; add a secret \
    (ringback secret add) or delete the policy (ringback policy delete), or send them unsigned with --without-secrets"
)]
struct Unsigned;

/// A topic that keeps its policy, in the form that `--output json` prints.
#[derive(Serialize)]
struct Refused<'a> {
    line: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<&'a str>,
    topic: &'a str,
    detail: &'a str,
}

/// A topic of the backup.
struct Restored {
    line: u64,
    tenant: Option<Tenant>,
    topic: TopicLine,
}

impl Restored {
    fn call(&self, method: Method, below: &[&str]) -> Call {
        Call::topic(method, &self.topic.topic, below).for_tenant(self.tenant.as_ref())
    }

    /// The line and the name of the topic, for messages.
    fn place(&self) -> String {
        let Self { line, tenant, topic } = self;
        let of = tenant.as_ref().map(|tenant| format!(" of tenant {tenant}")).unwrap_or_default();
        format!("line {line}: topic {}{of}", topic.topic)
    }
}

pub(super) async fn restore(
    calls: PatientCalls<'_>,
    source: impl BufRead,
    plan: &Plan,
    present: &AllPresent,
    results: &mut Results,
) -> anyhow::Result<()> {
    let (_, mut lines) = Lines::open(source)?;
    let mut is_policy_new = false;
    while let Some(line) = lines.next()?.filter(|line| line.kind <= Kind::Topic) {
        if line.kind != Kind::Topic || !plan.chosen.has(line.tenant.as_ref()) {
            continue;
        }
        let topic = serde_json::from_str(line.json).with_context(|| format!("line {}", line.number))?;
        let restored = Restored { line: line.number, tenant: line.tenant, topic };
        let name = (restored.tenant.clone(), restored.topic.topic.clone());
        let before = present.get(&name).copied().unwrap_or_default();
        let context = || restored.place();
        let is_paused_now = pause(calls, &restored, before).await.with_context(context)?;
        let fate = put(calls, &restored, before, plan.secrets).await.with_context(context)?;
        results.lines += 1;
        match fate {
            Fate::Unsigned => return Err(anyhow::Error::from(Unsigned).context(context())),
            Fate::Other => {
                results.refused += 1;
                calls.progress.note(&refusal(&restored, plan.format));
            }
            Fate::Put => {
                is_policy_new = true;
                results.created += 1;
            }
            Fate::Present if is_paused_now => results.created += 1,
            Fate::Present => results.repeated += 1,
        }
    }
    // A job that is due at once must not be sent without the headers of its topic.
    if is_policy_new {
        sleep(POLICIES_KNOWN).await;
    }
    Ok(())
}

/// Pauses a topic that is paused in the backup and not yet here. Returns whether it did.
async fn pause(calls: PatientCalls<'_>, restored: &Restored, before: Present) -> Result<bool, ClientError> {
    let is_needed = restored.topic.paused && !before.paused;
    if is_needed {
        calls.ask(restored.call(Method::POST, &["pause"]), SHORT).await?;
    }
    Ok(is_needed)
}

/// Puts the policy of a topic if that replaces nothing that the topic has. Returns what was done; `Present` also if the
/// backup has no policy of it.
async fn put(
    calls: PatientCalls<'_>,
    restored: &Restored,
    before: Present,
    secrets: Secrets,
) -> anyhow::Result<Fate> {
    let Some(written) = &restored.topic.policy else { return Ok(Fate::Present) };
    let policy = Policy::parse(written.get(), secrets).context("its policy is not a JSON object")?;
    let fate = policy.identity().fate(before.policy);
    if fate == Fate::Put {
        let body = Some(("application/json", policy.json().into()));
        let query = vec![from_backup()];
        let put = calls.ask(Call { body, query, ..restored.call(Method::PUT, &[]) }, SHORT).await;
        match put {
            Err(error) if is_about_secrets(&error) => return Err(error).context(SEALED),
            put => drop(put?),
        }
    }
    Ok(fate)
}

fn is_about_secrets(error: &ClientError) -> bool {
    let ClientError::Problem { problem, .. } = error else { return false };
    problem.errors.iter().any(|error| ["secrets", "sealed_headers"].contains(&error.field.as_str()))
}

fn refusal(restored: &Restored, format: Format) -> String {
    let detail = "the topic has another policy, which stays";
    match format {
        Format::Json => {
            let Restored { line, tenant, topic } = restored;
            let tenant = tenant.as_ref().map(Tenant::as_str);
            let refused = Refused { line: *line, tenant, topic: &topic.topic, detail };
            serde_json::to_string(&refused).expect("plain data always serialises")
        }
        Format::Table => format!("{}: {detail}", restored.place()),
    }
}
