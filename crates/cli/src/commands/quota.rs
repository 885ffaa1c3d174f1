//! `ringback quota`: sets, lists and deletes the quotas of tenants.

use bytes::Bytes;
use clap::{ArgGroup, Args, Subcommand, value_parser};
use http::Method;
use ringback_core::access::{MAX_JOBS_PER_SECOND, MAX_QUOTA_JOBS, QuotaOf};
use ringback_core::job::MAX_BODY;
use ringback_core::store_types::{MAX_LANES, MAX_TOPICS};
use ringback_wire::{QuotaResponse, QuotasResponse};

use super::session::{Session, object, parse};
use crate::client::{Call, SHORT};
use crate::failure::CommandOutcome;
use crate::output::{Cell, Table};

pub(crate) const EXAMPLES: &str = "\
Examples:
  ringback quota set acme --jobs-per-second 200 --jobs 1000000
  ringback quota set '*' --topics 100 --body-bytes 65536     # each tenant that has no quota of its own
  ringback quota list
  ringback quota delete acme

Only the root key sets, lists and deletes quotas: call them with RINGBACK_KEY set to it.";

const SET_EXAMPLES: &str = "\
Examples:
  ringback quota set acme --jobs-per-second 200 --jobs 1000000
  ringback quota set '*' --jobs-per-second 50
  ringback quota set acme --unlimited             # although there is a quota of *

It replaces the former quota of the tenant: what is not given is no longer limited.";

const LIST_EXAMPLES: &str = "\
Examples:
  ringback quota list
  ringback quota list --tenant acme               # its own quota, else that of *";

const DELETE_EXAMPLES: &str = "\
Examples:
  ringback quota delete acme

The tenant then has the quota of *, if there is one.";

/// The commands on quotas.
#[derive(Debug, Subcommand)]
pub(crate) enum QuotaCommand {
    /// Limit what a tenant may submit, in place of its former quota
    #[command(after_help = SET_EXAMPLES)]
    Set(SetArgs),
    /// List quotas; with --tenant the one that holds for a tenant
    #[command(after_help = LIST_EXAMPLES)]
    List,
    /// Delete a quota
    #[command(after_help = DELETE_EXAMPLES)]
    Delete(DeleteArgs),
}

/// A quota to set.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("limits").required(true).multiple(true)))]
pub(crate) struct SetArgs {
    /// The tenant, or * for each tenant that has no quota of its own
    #[arg(value_name = "TENANT", value_parser = quota_of)]
    pub(crate) of: String,
    /// How many jobs it may submit a second, at all APIs together, 1 to 1000000
    #[arg(long, value_name = "N", group = "limits", value_parser = value_parser!(u32).range(1..=i64::from(MAX_JOBS_PER_SECOND)))]
    pub(crate) jobs_per_second: Option<u32>,
    /// How many jobs it may have that are delayed, ready, reserved or dead, 1 to 1000000000
    #[arg(long, value_name = "N", group = "limits", value_parser = value_parser!(u64).range(1..=MAX_QUOTA_JOBS))]
    pub(crate) jobs: Option<u64>,
    /// How many topics with jobs it may have in a shard, 1 to 10000
    #[arg(long, value_name = "N", group = "limits", value_parser = value_parser!(u32).range(1..=MAX_TOPICS.cast_signed()))]
    pub(crate) topics: Option<u32>,
    /// How many pairs of a topic and an origin with jobs it may have in a shard, 1 to 100000
    #[arg(long, value_name = "N", group = "limits", value_parser = value_parser!(u32).range(1..=MAX_LANES.cast_signed()))]
    pub(crate) lanes: Option<u32>,
    /// How many bytes the body of a job may have, 1 to 262144
    #[arg(long, value_name = "BYTES", group = "limits", value_parser = value_parser!(u32).range(1..=MAX_BODY as i64))]
    pub(crate) body_bytes: Option<u32>,
    /// Limit nothing, although there may be a quota of *
    #[arg(long, group = "limits", conflicts_with_all = ["jobs_per_second", "jobs", "topics", "lanes", "body_bytes"])]
    pub(crate) unlimited: bool,
}

/// A quota to delete.
#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// The tenant, or * for the quota of those that have none of their own
    #[arg(value_name = "TENANT", value_parser = quota_of)]
    pub(crate) of: String,
}

fn quota_of(text: &str) -> Result<String, String> {
    let of: QuotaOf = text.parse().map_err(|allowed| format!("a quota is for {allowed}"))?;
    Ok(of.to_string())
}

pub(crate) async fn run(session: &mut Session, command: QuotaCommand) -> anyhow::Result<CommandOutcome> {
    match command {
        QuotaCommand::Set(args) => set(session, args).await,
        QuotaCommand::List => list(session).await,
        QuotaCommand::Delete(DeleteArgs { of }) => {
            let body =
                session.client.ask(Call::new(Method::DELETE, &["v1", "quotas", &of]), SHORT).await?.body;
            print(session, &body)
        }
    }
}

async fn set(session: &mut Session, args: SetArgs) -> anyhow::Result<CommandOutcome> {
    let SetArgs { of, jobs_per_second, jobs, topics, lanes, body_bytes, unlimited: _ } = args;
    let quota = object([
        ("jobs_per_second", jobs_per_second.map(Into::into)),
        ("jobs", jobs.map(Into::into)),
        ("topics", topics.map(Into::into)),
        ("lanes", lanes.map(Into::into)),
        ("body_bytes", body_bytes.map(Into::into)),
    ]);
    let call = Call::new(Method::PUT, &["v1", "quotas", &of]).json(&quota);
    let body = session.client.ask(call, SHORT).await.map_err(|error| error.for_route("quotas"))?.body;
    let outcome = session.print(&body, |quota, view| Table::new(COLUMNS, view.colour).page(&[row(quota)]))?;
    if let QuotaResponse { note: Some(note), .. } = parse(&body)? {
        session.out.note(&note)?;
    }
    Ok(outcome)
}

/// Prints all quotas; if a tenant was chosen, only the one that applies to it: its own, else that of `*`.
async fn list(session: &mut Session) -> anyhow::Result<CommandOutcome> {
    let call = Call::new(Method::GET, &["v1", "quotas"]);
    let mut body = session.client.ask(call, SHORT).await.map_err(|error| error.for_route("quotas"))?.body;
    if let Some(tenant) = &session.tenant {
        let QuotasResponse { items } = parse(&body)?;
        let of = |of: QuotaOf| items.iter().find(|quota| quota.tenant == of.as_str());
        let held = of(QuotaOf::Tenant(tenant.clone())).or_else(|| of(QuotaOf::Others));
        body = serde_json::to_vec(&QuotasResponse { items: held.into_iter().cloned().collect() })?.into();
    }
    print(session, &body)
}

const COLUMNS: [&str; 6] = ["TENANT", "JOBS/S", "JOBS", "TOPICS", "LANES", "BODY"];

fn print(session: &mut Session, body: &Bytes) -> anyhow::Result<CommandOutcome> {
    let rows = |quotas: &QuotasResponse, _: &_| quotas.items.iter().map(row).collect();
    session.print_rows(body, COLUMNS, rows, "no quotas")
}

fn row(quota: &QuotaResponse) -> [Cell; 6] {
    let QuotaResponse { tenant, jobs_per_second, jobs, topics, lanes, body_bytes, note: _ } = quota;
    let limit = |limit: Option<u64>| limit.map_or_else(|| "any".to_owned(), |limit| limit.to_string());
    let [jobs_per_second, topics, lanes, body_bytes] =
        [jobs_per_second, topics, lanes, body_bytes].map(|n| Cell::from(limit(n.map(u64::from))));
    [Cell::from(tenant), jobs_per_second, Cell::from(limit(*jobs)), topics, lanes, body_bytes]
}
