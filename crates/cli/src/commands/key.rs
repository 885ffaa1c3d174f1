//! `ringback key`: makes, lists and deletes the keys by which an API knows its callers, and generates root keys.

use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use http::Method;
use ringback_core::access::{KeyId, Scope};
use ringback_secrets::RootKey;
use ringback_service::random;
use ringback_wire::{CreatedKey, KeyDetails, KeysResponse};
use serde_json::Value;
use strum::VariantNames as _;

use super::session::{Session, object, parse};
use crate::args::{Format, values};
use crate::client::{Call, SHORT};
use crate::failure::CommandOutcome;
use crate::output::{Cell, Output, View, note};

pub(crate) const EXAMPLES: &str = "\
Examples:
  ringback key root                                          # for RINGBACK_ROOT_KEY of the server
  ringback key create --tenant acme --scope submit --scope read
  ringback key list
  ringback key delete key_01KAR8Z6V5Q0M5W8C1T3N9X2YB

Only the root key makes, lists and deletes keys: call them with RINGBACK_KEY set to it.";

const CREATE_EXAMPLES: &str = "\
Examples:
  ringback key create --tenant acme --scope submit --scope read
  ringback key create --scope submit --topic pay.notify --destination hooks.example.com
  ringback key create --scope read --cidr 10.1.0.0/16 --expires 2027-01-01T00:00:00Z

The key is printed once: give it to the caller. Without --tenant it is for what belongs to no tenant.";

const LIST_EXAMPLES: &str = "\
Examples:
  ringback key list
  ringback key list --tenant acme --output json | jq -r '.items[].id'";

const DELETE_EXAMPLES: &str = "\
Examples:
  ringback key delete key_01KAR8Z6V5Q0M5W8C1T3N9X2YB

All APIs refuse the key within a second.";

const ROOT_EXAMPLES: &str = "\
Examples:
  RINGBACK_ROOT_KEY=\"$(ringback key root)\" ringback up
  ringback key root >> ringback.env

All APIs of an installation need the same root key. With it each call needs a key.";

/// The commands on keys.
#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    #[command(flatten)]
    OnServer(ServerKeyCommand),
    /// Make a root key, for `RINGBACK_ROOT_KEY` of the server; calls no server
    #[command(after_help = ROOT_EXAMPLES)]
    Root,
}

/// The commands on the keys of an installation.
#[derive(Debug, Subcommand)]
pub(crate) enum ServerKeyCommand {
    /// Make a key of the tenant that --tenant names, and print it
    #[command(after_help = CREATE_EXAMPLES)]
    Create(CreateArgs),
    /// List keys, without the keys themselves; with --tenant those of a tenant
    #[command(after_help = LIST_EXAMPLES)]
    List,
    /// End a key
    #[command(after_help = DELETE_EXAMPLES)]
    Delete(DeleteArgs),
}

/// A key to make.
#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// What the key allows; once for each scope
    #[arg(long = "scope", value_name = "SCOPE", required = true, value_parser = PossibleValuesParser::new(Scope::VARIANTS))]
    pub(crate) scopes: Vec<String>,
    /// A topic that it is for; once for each [default: all topics of the tenant]
    #[arg(long = "topic", value_name = "TOPIC", value_parser = values::topic)]
    pub(crate) topics: Vec<String>,
    /// A host that jobs may go to, by https alone; once for each [default: all that the server allows]
    #[arg(long = "destination", value_name = "HOST")]
    pub(crate) destinations: Vec<String>,
    /// A network that it may be used from, such as 10.1.0.0/16; once for each [default: all]
    #[arg(long = "cidr", value_name = "NETWORK")]
    pub(crate) cidrs: Vec<String>,
    /// When it expires (RFC 3339) [default: never]
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub(crate) expires: Option<String>,
}

/// A key to delete.
#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// Id of the key, as the list shows it
    #[arg(value_name = "ID", value_parser = id)]
    pub(crate) key: String,
}

fn id(text: &str) -> Result<String, String> {
    let id: KeyId = text.parse().map_err(|allowed| format!("an id is {allowed}"))?;
    Ok(id.to_string())
}

pub(crate) async fn run(session: &mut Session, command: ServerKeyCommand) -> anyhow::Result<CommandOutcome> {
    match command {
        ServerKeyCommand::Create(args) => create(session, args).await,
        ServerKeyCommand::List => show(session, Call::new(Method::GET, &["v1", "keys"])).await,
        ServerKeyCommand::Delete(DeleteArgs { key }) => {
            show(session, Call::new(Method::DELETE, &["v1", "keys", &key])).await
        }
    }
}

/// Generates a root key and prints it. Calls no server and stores nothing.
pub(crate) fn root(out: &mut Output) -> anyhow::Result<ExitCode> {
    let key = RootKey::generate(&mut random::generator());
    match out.format {
        Format::Json => out.line(serde_json::json!({"key": key.as_str()}).to_string())?,
        Format::Table => out.line(key.as_str())?,
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

async fn create(session: &mut Session, args: CreateArgs) -> anyhow::Result<CommandOutcome> {
    let CreateArgs { scopes, topics, destinations, cidrs, expires } = args;
    let some = |list: Vec<String>| (!list.is_empty()).then(|| Value::from(list));
    let ask = object([
        ("tenant", session.tenant.as_ref().map(|tenant| tenant.as_str().into())),
        ("scopes", some(scopes)),
        ("topics", some(topics)),
        ("destinations", some(destinations)),
        ("cidrs", some(cidrs)),
        ("expires", expires.map(Value::from)),
    ]);
    let call = Call::new(Method::POST, &["v1", "keys"]).json(&ask);
    let answer = session.client.ask(call, SHORT).await.map_err(|error| error.for_route("keys"))?;
    match session.out.format {
        Format::Json => session.json(&answer.body)?,
        Format::Table => {
            let CreatedKey { key, about } = parse(&answer.body)?;
            session.out.line(&key)?;
            let KeyDetails { id, tenant, scopes, .. } = about;
            let of = tenant.map_or_else(|| "no tenant".to_owned(), |tenant| format!("tenant {tenant}"));
            note(&format!("{id} of {of} allows {}; the key is not shown again", scopes.join(", ")));
        }
    }
    Ok(CommandOutcome::Done)
}

/// Makes a call that answers with keys, and prints them; only those of the tenant, if one was chosen.
async fn show(session: &mut Session, call: Call) -> anyhow::Result<CommandOutcome> {
    let is_list = call.method == Method::GET;
    let answer = session.client.ask(call, SHORT).await;
    let mut body = if is_list { answer.map_err(|error| error.for_route("keys"))? } else { answer? }.body;
    if let Some(tenant) = &session.tenant {
        let mut keys: KeysResponse = parse(&body)?;
        keys.items.retain(|key| key.tenant.as_deref() == Some(tenant.as_str()));
        body = serde_json::to_vec(&keys)?.into();
    }
    let columns =
        ["KEY", "TENANT", "SCOPES", "TOPICS", "DESTINATIONS", "NETWORKS", "MADE", "LAST USED", "EXPIRES"];
    let rows = |keys: &KeysResponse, view: &View| keys.items.iter().map(|key| row(key, view)).collect();
    session.print_rows(&body, columns, rows, "no keys")
}

fn row(key: &KeyDetails, view: &View) -> [Cell; 9] {
    let list = |list: &[String]| if list.is_empty() { "all".to_owned() } else { list.join(",") };
    let time = |at: &Option<String>| at.as_ref().map_or_else(|| "-".to_owned(), |at| view.relative(at));
    [
        Cell::from(&key.id),
        Cell::from(key.tenant.as_deref().unwrap_or("-")),
        Cell::from(key.scopes.join(",")),
        Cell::from(list(&key.topics)),
        Cell::from(list(&key.destinations)),
        Cell::from(list(&key.cidrs)),
        Cell::from(view.relative(&key.created_at)),
        Cell::from(time(&key.last_used_at)),
        Cell::from(time(&key.expires_at)),
    ]
}
