//! Sets the policies and pauses of a backup's topics. A topic that has another policy keeps it. If a policy or a pause
//! cannot be set, the restore stops before the jobs, because they would be sent without it.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::time::Duration;

use anyhow::Context as _;
use http::Method;
use ringback_core::wire::TopicLine;
use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use tokio::time::sleep;

use super::super::retry::PatientCalls;
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
    /// Identifies the policy without keeping it.
    policy: Option<[u8; 32]>,
}

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
        let is_changed = set(calls, &topic, before).await.with_context(context)?;
        is_policy_new |= topic.policy.is_some() && before.policy.is_none();
        results.lines += 1;
        if is_refused(&topic, before) {
            results.refused += 1;
            calls.progress.note(&refusal(line.number, &topic.topic, format));
        } else if is_changed {
            results.created += 1;
        } else {
            results.repeated += 1;
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
        let policy = identity(&topic);
        all.insert(topic.topic, Present { paused: topic.paused, policy });
    }
    Ok(all)
}

/// Two policies with the same fields and values are the same, however they were written, and with whichever master key
/// their secrets are sealed.
fn identity(topic: &TopicLine) -> Option<[u8; 32]> {
    let policy = as_it_was(topic.policy.as_ref()?.get());
    let value = serde_json::from_str::<Value>(&policy).map_or(policy, |mut value| {
        let secrets = value.get_mut("secrets").and_then(Value::as_array_mut);
        for secret in secrets.into_iter().flatten().filter_map(Value::as_object_mut) {
            secret.remove("sealed");
        }
        value.to_string()
    });
    Some(Sha256::digest(value).into())
}

fn is_refused(topic: &TopicLine, before: Present) -> bool {
    matches!((before.policy, identity(topic)), (Some(before), Some(policy)) if before != policy)
}

/// Sets what is not there yet. Returns whether that was anything.
async fn set(calls: PatientCalls<'_>, topic: &TopicLine, before: Present) -> Result<bool, ClientError> {
    let mut is_changed = false;
    if topic.paused && !before.paused {
        calls.ask(Call::topic(Method::POST, &topic.topic, &["pause"]), SHORT).await?;
        is_changed = true;
    }
    if let (Some(policy), None) = (&topic.policy, before.policy) {
        let body = Some(("application/json", as_it_was(policy.get()).into()));
        calls.ask(Call { body, ..Call::topic(Method::PUT, &topic.topic, &[]) }, SHORT).await?;
        is_changed = true;
    }
    Ok(is_changed)
}

/// The policy with what an absent `headers_to` means in a backup: a policy from before there was one sends its headers
/// to all origins.
fn as_it_was(policy: &str) -> String {
    match serde_json::from_str::<Map<String, Value>>(policy) {
        Ok(mut fields) if fields.contains_key("headers") && !fields.contains_key("headers_to") => {
            fields.insert("headers_to".to_owned(), json!(["*"]));
            Value::Object(fields).to_string()
        }
        _ => policy.to_owned(),
    }
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
