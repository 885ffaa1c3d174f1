//! Puts the credentials of a backup, before the policies that refer to them. A credential that the installation has
//! already stays as it is, since sealed secrets cannot be compared; it is refused if its origins differ.
//! `--without-secrets` leaves all credentials out.

use std::collections::BTreeMap;
use std::io::BufRead;

use anyhow::Context as _;
use http::Method;
use ringback_core::job::Tenant;
use ringback_wire::CredentialLine;
use serde_json::json;

use super::super::call_retries::PatientCalls;
use super::Plan;
use super::policies::Secrets;
use super::present_topics::each_line;
use super::results::Results;
use crate::backup_file::{Kind, Lines};
use crate::client::{Call, SHORT};

/// The advice if a credential cannot be put.
const SEALED: &str = "it is sealed; start the server with the master keys that sealed it (RINGBACK_MASTER_KEYS), or leave \
    credentials out with --without-secrets";

/// The credentials that are there, by tenant and name, with their origins.
type Present = BTreeMap<(Option<Tenant>, String), Vec<String>>;

/// Restores the credentials at the beginning of a backup, unless secrets are left out, and counts them in `results`.
/// One that has other origins here stays, and counts as refused, with a note. Fails at the first that cannot be put.
pub(super) async fn restore(
    calls: PatientCalls<'_>,
    source: impl BufRead,
    plan: &Plan,
    results: &mut Results,
) -> anyhow::Result<()> {
    let (_, mut lines) = Lines::open(source)?;
    let mut present = None;
    while let Some(line) = lines.next()?.filter(|line| line.kind == Kind::Credential) {
        if !plan.chosen.has(line.tenant.as_ref()) || plan.secrets == Secrets::LeftOut {
            continue;
        }
        let place = || format!("line {}", line.number);
        let CredentialLine { credential, to, sealed, .. } =
            serde_json::from_str(line.json).with_context(place)?;
        if present.is_none() {
            present = Some(all_present(calls, plan).await?);
        }
        results.lines += 1;
        let name = (line.tenant.clone(), credential.clone());
        match present.as_ref().and_then(|present| present.get(&name)) {
            Some(known) if *known == to => results.repeated += 1,
            Some(_) => {
                results.refused += 1;
                let note = format!(
                    "line {}: credential {credential} has other origins here, and stays",
                    line.number
                );
                calls.progress.note(&note);
            }
            None => {
                let call = Call::new(Method::PUT, &["v1", "credentials", &credential]);
                let call = call.for_tenant(line.tenant.as_ref()).json(&json!({"to": to, "sealed": sealed}));
                let put = calls.ask(call, SHORT).await;
                put.context(SEALED).with_context(|| format!("{}: credential {credential}", place()))?;
                results.created += 1;
            }
        }
    }
    Ok(())
}

async fn all_present(calls: PatientCalls<'_>, plan: &Plan) -> anyhow::Result<Present> {
    let mut present = Present::new();
    for owner in &plan.owners {
        let add = |line: &[u8]| {
            let CredentialLine { credential, to, .. } = serde_json::from_slice(line)?;
            present.insert((owner.clone(), credential), to);
            Ok(())
        };
        each_line(calls, ("credentials", "credentials"), owner.as_ref(), add).await?;
    }
    Ok(present)
}
