//! Sets the policies and pauses of a backup's topics. A topic that has another policy keeps it. If a policy, a pause or
//! signing secrets cannot be set, the restore stops before the jobs, because they would be sent without them.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::time::Duration;

use anyhow::Context as _;
use http::Method;
use ringback_core::wire::TopicLine;
use serde::Serialize;
use tokio::time::sleep;

use super::super::retry::PatientCalls;
use super::policies::{Fate, Identity, Policy, Secrets};
use super::results::Results;
use crate::args::Format;
use crate::backup_file::{Kind, Lines};
use crate::client::{Call, ClientError, SHORT};
use crate::response_lines::ResponseLines;

/// After what time all processes of an installation know a new policy.
const POLICIES_KNOWN: Duration = Duration::from_secs(1);

/// What the installation has for a topic.
#[derive(Clone, Copy, Debug, Default)]
struct Present {
    paused: bool,
    policy: Option<Identity>,
}

/// What helps if secrets cannot be opened.
const SEALED: &str = "its signing secrets are sealed; start the server with the master keys that sealed them \
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
    topic: &'a str,
    detail: &'a str,
}

pub(super) async fn restore(
    calls: PatientCalls<'_>,
    source: impl BufRead,
    format: Format,
    secrets: Secrets,
    results: &mut Results,
) -> anyhow::Result<()> {
    let (_, mut lines) = Lines::open(source)?;
    let (mut present, mut is_policy_new) = (None, false);
    while let Some(line) = lines.next()?.filter(|line| line.kind == Kind::Topic) {
        let topic: TopicLine =
            serde_json::from_str(line.json).with_context(|| format!("line {}", line.number))?;
        if present.is_none() {
            present = Some(all(calls).await?);
        }
        let before = present.as_ref().and_then(|all| all.get(&topic.topic)).copied().unwrap_or_default();
        let context = || format!("line {}: topic {}", line.number, topic.topic);
        let is_paused_now = pause(calls, &topic, before).await.with_context(context)?;
        let fate = put(calls, &topic, before, secrets).await.with_context(context)?;
        results.lines += 1;
        match fate {
            Fate::Unsigned => return Err(anyhow::Error::from(Unsigned).context(context())),
            Fate::Other => {
                results.refused += 1;
                calls.progress.note(&refusal(line.number, &topic.topic, format));
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

/// What is set for the topics of the installation.
async fn all(calls: PatientCalls<'_>) -> Result<BTreeMap<String, Present>, ClientError> {
    let call = Call::new(Method::GET, &["v1", "export", "topics"]);
    let mut lines = ResponseLines::new(calls.open(&call, "backups").await?);
    let mut all = BTreeMap::new();
    while let Some(line) = lines.next().await? {
        let topic: TopicLine =
            serde_json::from_slice(&line).map_err(|error| ClientError::Unreadable(error.to_string()))?;
        let policy = topic.policy.as_ref().and_then(|policy| Policy::parse(policy.get(), Secrets::Restored));
        let policy = policy.map(|policy| policy.identity());
        all.insert(topic.topic, Present { paused: topic.paused, policy });
    }
    Ok(all)
}

/// Pauses a topic that is not paused yet. Returns whether it did.
async fn pause(calls: PatientCalls<'_>, topic: &TopicLine, before: Present) -> Result<bool, ClientError> {
    let is_needed = topic.paused && !before.paused;
    if is_needed {
        calls.ask(Call::topic(Method::POST, &topic.topic, &["pause"]), SHORT).await?;
    }
    Ok(is_needed)
}

/// Puts the policy of a topic where nothing is lost by it.
async fn put(
    calls: PatientCalls<'_>,
    topic: &TopicLine,
    before: Present,
    secrets: Secrets,
) -> anyhow::Result<Fate> {
    let Some(written) = &topic.policy else { return Ok(Fate::Present) };
    let policy = Policy::parse(written.get(), secrets).context("its policy is not a JSON object")?;
    let fate = policy.identity().fate(before.policy);
    if fate == Fate::Put {
        let body = Some(("application/json", policy.json().into()));
        let put = calls.ask(Call { body, ..Call::topic(Method::PUT, &topic.topic, &[]) }, SHORT).await;
        match put {
            Err(error) if is_about_secrets(&error) => return Err(error).context(SEALED),
            put => drop(put?),
        }
    }
    Ok(fate)
}

fn is_about_secrets(error: &ClientError) -> bool {
    let ClientError::Problem { problem, .. } = error else { return false };
    problem.errors.iter().any(|error| error.field == "secrets")
}

fn refusal(line: u64, topic: &str, format: Format) -> String {
    let detail = "the topic has another policy, which stays";
    match format {
        Format::Json => {
            serde_json::to_string(&Refused { line, topic, detail }).expect("plain data always serialises")
        }
        Format::Table => format!("line {line}: topic {topic}: {detail}"),
    }
}
