//! `ringback credential`: sets, lists and deletes the credentials that callbacks carry to prove who calls. Secrets are
//! read from files, so that no list of processes shows them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bytes::Bytes;
use clap::{ArgGroup, Args, Subcommand};
use http::Method;
use ringback_core::credential::CredentialName;
use ringback_wire::{CredentialResponse, CredentialsResponse};
use serde_json::{Value, json};

use super::secret;
use super::session::{Session, object};
use crate::client::{Call, SHORT};
use crate::failure::CommandOutcome;
use crate::output::{Cell, Table, View, whose};

pub(crate) const EXAMPLES: &str = "\
Examples:
  ringback credential set bank --to https://bank.example --bearer-file token.txt
  ringback policy set pay.notify --credentials bank
  ringback credential list
  ringback credential delete bank";

const SET_EXAMPLES: &str = "\
Examples:
  ringback credential set bank --to https://bank.example --bearer-file token.txt
  ringback credential set erp --to https://erp.example --user ringback --password-file password.txt
  ringback credential set bank --to https://bank.example --certificate client.pem --key client-key.pem
  ringback credential set internal --to https://hooks.internal:8443 --ca authorities.pem

It replaces the former credential of this name. Callbacks of topics whose policy has \"credentials\" with this name carry \
it to the origins of --to, within a second. It is stored sealed, so the server needs RINGBACK_MASTER_KEYS.";

const LIST_EXAMPLES: &str = "\
Examples:
  ringback credential list
  ringback credential list --output json | jq -r '.items[].name'";

const DELETE_EXAMPLES: &str = "\
Examples:
  ringback credential delete bank

The policies that refer to it have to be changed before.";

/// The commands on credentials.
#[derive(Debug, Subcommand)]
pub(crate) enum CredentialCommand {
    /// Set what callbacks carry to some origins, in place of the former credential of this name
    #[command(after_help = SET_EXAMPLES)]
    Set(SetArgs),
    /// List credentials, without their secrets
    #[command(after_help = LIST_EXAMPLES)]
    List,
    /// Delete a credential to which no policy refers
    #[command(after_help = DELETE_EXAMPLES)]
    Delete(CredentialArgs),
}

/// A credential by name.
#[derive(Debug, Args)]
pub(crate) struct CredentialArgs {
    /// Name of the credential: 1 to 64 letters, digits, dots, - and _
    #[arg(value_name = "NAME", value_parser = name)]
    pub(crate) name: String,
}

/// A credential to set.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("contents").required(true).multiple(true)))]
pub(crate) struct SetArgs {
    #[command(flatten)]
    pub(crate) of: CredentialArgs,
    /// Origin whose callbacks carry it: scheme, host and port; up to 32 times
    #[arg(long, value_name = "ORIGIN", required = true)]
    pub(crate) to: Vec<String>,
    /// File with a bearer token (RFC 6750), - for standard input
    #[arg(long, value_name = "FILE", group = "contents", conflicts_with = "user")]
    pub(crate) bearer_file: Option<PathBuf>,
    /// User (RFC 7617)
    #[arg(long, value_name = "USER", group = "contents", requires = "password_file")]
    pub(crate) user: Option<String>,
    /// File with the password of the user, - for standard input
    #[arg(long, value_name = "FILE", requires = "user")]
    pub(crate) password_file: Option<PathBuf>,
    /// File (PEM) with a client certificate, followed by those between it and its authority
    #[arg(long, value_name = "FILE", group = "contents", requires = "key")]
    pub(crate) certificate: Option<PathBuf>,
    /// File (PEM) with the private key of the certificate
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub(crate) key: Option<PathBuf>,
    /// File (PEM) with the certificate authorities that receivers are checked against, instead of those of the notifiers
    #[arg(long, value_name = "FILE", group = "contents")]
    pub(crate) ca: Option<PathBuf>,
}

fn name(text: &str) -> Result<String, String> {
    text.parse::<CredentialName>()
        .map(|name| name.to_string())
        .map_err(|allowed| format!("a name is {allowed}"))
}

pub(crate) async fn run(session: &mut Session, command: CredentialCommand) -> anyhow::Result<CommandOutcome> {
    let answer = match command {
        CredentialCommand::Set(args) => return set(session, args).await,
        CredentialCommand::List => {
            let call = Call::new(Method::GET, &["v1", "credentials"]);
            session.client.ask(call, SHORT).await.map_err(|error| error.for_route("credentials"))?
        }
        CredentialCommand::Delete(CredentialArgs { name }) => {
            session.client.ask(Call::new(Method::DELETE, &["v1", "credentials", &name]), SHORT).await?
        }
    };
    print(session, &answer.body)
}

async fn set(session: &mut Session, args: SetArgs) -> anyhow::Result<CommandOutcome> {
    let SetArgs { of, to, bearer_file, user, password_file, certificate, key, ca } = args;
    let secret = |file: Option<PathBuf>| -> anyhow::Result<Option<String>> {
        file.map(|file| Ok(secret::read(&file)?.trim().to_owned())).transpose()
    };
    let pem = |file: Option<PathBuf>| -> anyhow::Result<Option<Value>> {
        let read =
            |file: &Path| fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()));
        file.map(|file| read(&file).map(Value::from)).transpose()
    };
    let password = secret(password_file)?;
    let basic = user.zip(password).map(|(user, password)| json!({"user": user, "password": password}));
    let ask = object([
        ("to", Some(to.into())),
        ("bearer", secret(bearer_file)?.map(Value::from)),
        ("basic", basic),
        ("certificate", pem(certificate)?),
        ("key", pem(key)?),
        ("ca", pem(ca)?),
    ]);
    let call = Call::new(Method::PUT, &["v1", "credentials", &of.name]).json(&ask);
    let body = session.client.ask(call, SHORT).await.map_err(|error| error.for_route("credentials"))?.body;
    session.print(&body, |one, view| Table::new(COLUMNS, view.colour).page(&[row(one, view)]))
}

const COLUMNS: [&str; 5] = ["NAME", "HAS", "TO", "SET", "MASTER KEY"];

fn print(session: &mut Session, body: &Bytes) -> anyhow::Result<CommandOutcome> {
    let rows = |all: &CredentialsResponse, view: &View| all.items.iter().map(|one| row(one, view)).collect();
    session.print_rows(body, COLUMNS, rows, "no credentials")
}

fn row(credential: &CredentialResponse, view: &View) -> [Cell; 5] {
    let CredentialResponse { tenant, name, to, kinds, master_key, created_at } = credential;
    let name = whose(tenant.as_deref(), name);
    let (kinds, to, set) = (kinds.join(","), to.join(","), view.relative(created_at));
    [Cell::from(name), Cell::from(kinds), Cell::from(to), Cell::from(set), Cell::from(master_key)]
}
