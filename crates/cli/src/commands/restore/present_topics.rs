//! Reads which policies and pauses of topics the installation has already, for each tenant of a backup. This fails if
//! the key may not use one of the tenants. Also reads the lines of other exports.

use std::collections::BTreeMap;

use anyhow::Context as _;
use http::Method;
use ringback_core::job::Tenant;
use ringback_wire::TopicLine;

use super::super::call_retries::PatientCalls;
use super::Owners;
use super::policies::{Identity, Policy, Secrets};
use crate::client::{Call, ClientError};
use crate::response_lines::ResponseLines;

/// The pause and the policy that a topic has already.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Present {
    pub(super) paused: bool,
    pub(super) policy: Option<Identity>,
}

/// The pauses and policies of topics, by tenant and name.
pub(super) type AllPresent = BTreeMap<(Option<Tenant>, String), Present>;

/// Reads the pauses and policies of the topics of all owners.
///
/// # Errors
/// When the key may not export what belongs to one of the owners, or a call fails.
pub(super) async fn present(calls: PatientCalls<'_>, owners: &Owners) -> anyhow::Result<AllPresent> {
    let mut all = BTreeMap::new();
    for owner in owners {
        add(calls, owner.as_ref(), &mut all).await.with_context(|| match owner {
            Some(tenant) => format!("what belongs to tenant {tenant}"),
            None => "what belongs to no tenant".to_owned(),
        })?;
    }
    Ok(all)
}

async fn add(
    calls: PatientCalls<'_>,
    owner: Option<&Tenant>,
    all: &mut AllPresent,
) -> Result<(), ClientError> {
    let add = |line: &[u8]| {
        let topic: TopicLine = serde_json::from_slice(line)?;
        let policy = topic.policy.as_ref().and_then(|policy| Policy::parse(policy.get(), Secrets::Restored));
        let policy = policy.map(|policy| policy.identity());
        all.insert((owner.cloned(), topic.topic), Present { paused: topic.paused, policy });
        Ok(())
    };
    each_line(calls, ("topics", "backups"), owner, add).await
}

/// Passes each line of `GET /v1/export/{export}` for a tenant, or for none, to `read`. `feature` names it for a server
/// that does not have it. Fails if the call fails, the answer is cut off, or `read` fails.
pub(super) async fn each_line(
    calls: PatientCalls<'_>,
    (export, feature): (&str, &'static str),
    owner: Option<&Tenant>,
    mut read: impl FnMut(&[u8]) -> serde_json::Result<()>,
) -> Result<(), ClientError> {
    let call = Call::new(Method::GET, &["v1", "export", export]).for_tenant(owner);
    let mut lines = ResponseLines::new(calls.open(&call, feature).await?);
    while let Some(line) = lines.next().await? {
        read(&line).map_err(|error| ClientError::Unreadable(error.to_string()))?;
    }
    Ok(())
}
