//! Pauses the destinations that are paused in a backup, before its jobs are restored, so that nothing is sent to them.
//! A pause that is there already is counted as repeated.

use std::io::BufRead;

use anyhow::Context as _;
use http::Method;
use ringback_wire::DestinationLine;

use super::super::call_retries::PatientCalls;
use super::Plan;
use super::results::Results;
use crate::backup_file::{Kind, Lines};
use crate::client::{Call, ClientError, SHORT};
use crate::response_lines::ResponseLines;

/// Restores the pauses of destinations, which follow the credentials in a backup, and counts them in `results`. Stops
/// at the first that cannot be made.
pub(super) async fn restore(
    calls: PatientCalls<'_>,
    source: impl BufRead,
    plan: &Plan,
    results: &mut Results,
) -> anyhow::Result<()> {
    let (_, mut lines) = Lines::open(source)?;
    let mut present = None;
    while let Some(line) = lines.next()?.filter(|line| line.kind <= Kind::Destination) {
        if line.kind != Kind::Destination || !plan.chosen.has(line.tenant.as_ref()) {
            continue;
        }
        let place = format!("line {}", line.number);
        let pause: DestinationLine = serde_json::from_str(line.json).with_context(|| place.clone())?;
        if present.is_none() {
            present = Some(all_present(calls).await?);
        }
        results.lines += 1;
        if present.as_ref().is_some_and(|present| present.contains(&pause)) {
            results.repeated += 1;
            continue;
        }
        let call = Call::new(Method::POST, &["v1", "destinations", &pause.destination, "pause"]);
        let call = if pause.for_all { call } else { call.for_tenant(line.tenant.as_ref()) };
        let paused = calls.ask(call, SHORT).await;
        paused.with_context(|| format!("{place}: destination {}", pause.destination))?;
        results.created += 1;
    }
    Ok(())
}

/// The pauses of destinations that the installation has already, as far as the key reaches.
async fn all_present(calls: PatientCalls<'_>) -> Result<Vec<DestinationLine>, ClientError> {
    let call = Call::new(Method::GET, &["v1", "export", "destinations"]);
    let mut lines = ResponseLines::new(calls.open(&call, "paused destinations").await?);
    let mut present = Vec::new();
    while let Some(line) = lines.next().await? {
        let line = serde_json::from_slice(&line);
        present.push(line.map_err(|error| ClientError::Unreadable(error.to_string()))?);
    }
    Ok(present)
}
