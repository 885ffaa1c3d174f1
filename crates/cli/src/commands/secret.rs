//! `ringback secret`: adds, lists and deletes the secrets that sign the callbacks of a topic, and makes master keys.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use http::Method;
use ringback_core::clock::{Clock as _, SystemClock, Timestamp};
use ringback_secrets::MasterKeys;
use ringback_service::random;
use ringback_wire::{CreatedSecret, SecretsResponse};
use serde_json::Value;

use super::session::{Session, object};
use crate::args::values::Wait;
use crate::args::{Format, TopicArgs};
use crate::client::{Call, SHORT};
use crate::failure::CommandOutcome;
use crate::output::{Cell, Colour, Output, Table, View, note};

pub(crate) const EXAMPLES: &str = "\
Examples:
  ringback secret add pay.notify
  ringback secret list pay.notify
  ringback secret master-key >> ringback.env";

const ADD_EXAMPLES: &str = "\
Examples:
  ringback secret add pay.notify                      # make one, and print it
  ringback secret add pay.notify --keep 7d            # the former ones go on signing for 7 days
  ringback secret add pay.notify --from-file secret.txt --keep 0s

The secret is printed once: give it to the receiver. Without --keep the former secrets go on signing for 24h, so that \
the receiver can change over.";

const LIST_EXAMPLES: &str = "\
Examples:
  ringback secret list pay.notify
  ringback secret list pay.notify --output json | jq -r '.items[].master_key' | sort -u";

const DELETE_EXAMPLES: &str = "\
Examples:
  ringback secret delete pay.notify sec_01KAR8Z6V5Q0M5W8C1T3N9X2YB

Without the newest secret, the one before it signs for good.";

const MASTER_KEY_EXAMPLES: &str = "\
Examples:
  ringback secret master-key --id k2
  export RINGBACK_MASTER_KEYS=\"$(ringback secret master-key)\"
  export RINGBACK_MASTER_KEYS=\"$(ringback secret master-key --id k2) $RINGBACK_MASTER_KEYS\"

All APIs and notifiers need the same keys. The first one seals, and each opens what it has sealed.";

/// The commands on secrets.
#[derive(Debug, Subcommand)]
pub(crate) enum SecretCommand {
    #[command(flatten)]
    OfTopic(TopicSecretCommand),
    /// Make a key that seals secrets in the store, for `RINGBACK_MASTER_KEYS`; calls no server
    #[command(after_help = MASTER_KEY_EXAMPLES)]
    MasterKey(MasterKeyArgs),
}

/// The commands on the secrets of a topic.
#[derive(Debug, Subcommand)]
pub(crate) enum TopicSecretCommand {
    /// Sign the callbacks of a topic with a new secret, and print it
    #[command(after_help = ADD_EXAMPLES)]
    Add(AddArgs),
    /// List the secrets of a topic, without the secrets themselves
    #[command(after_help = LIST_EXAMPLES)]
    List(TopicArgs),
    /// Stop signing with a secret
    #[command(after_help = DELETE_EXAMPLES)]
    Delete(DeleteArgs),
}

/// A secret to add.
#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    #[command(flatten)]
    pub(crate) of: TopicArgs,
    /// File with the secret (whsec_ and base64), - for standard input [default: a new secret is made]
    #[arg(long, value_name = "FILE")]
    pub(crate) from_file: Option<PathBuf>,
    /// How long the former secrets go on signing, at most 30d [default: 24h]
    #[arg(long, value_name = "DURATION")]
    pub(crate) keep: Option<Wait>,
}

/// A secret to delete.
#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    pub(crate) of: TopicArgs,
    /// Id of the secret
    #[arg(value_name = "SECRET")]
    pub(crate) secret: String,
}

/// A master key to make.
#[derive(Debug, Args)]
pub(crate) struct MasterKeyArgs {
    /// Id of the key: letters, digits, - and _ [default: k and today's date]
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
}

pub(crate) async fn run(
    session: &mut Session,
    command: TopicSecretCommand,
) -> anyhow::Result<CommandOutcome> {
    match command {
        TopicSecretCommand::Add(args) => add(session, args).await,
        TopicSecretCommand::List(args) => {
            show(session, Call::topic(Method::GET, &args.topic, &["secrets"])).await
        }
        TopicSecretCommand::Delete(DeleteArgs { of, secret }) => {
            show(session, Call::topic(Method::DELETE, &of.topic, &["secrets", &secret])).await
        }
    }
}

pub(crate) fn master_key(out: &mut Output, args: MasterKeyArgs) -> anyhow::Result<ExitCode> {
    let id = args.id.unwrap_or_else(|| id_of(SystemClock.now()));
    let entry = MasterKeys::generate(&id, &mut random::generator());
    entry.parse::<MasterKeys>().map_err(|why| anyhow::anyhow!("--id {id}: {why}"))?;
    match out.format {
        Format::Json => out.line(serde_json::json!({"id": id, "key": entry.as_str()}).to_string())?,
        Format::Table => out.line(entry.as_str())?,
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// The default id of a master key: `k` and the date in UTC, such as `k20261123`.
fn id_of(now: Timestamp) -> String {
    format!("k{}", now.to_string()[..10].replace('-', ""))
}

async fn add(session: &mut Session, args: AddArgs) -> anyhow::Result<CommandOutcome> {
    let secret = args.from_file.as_deref().map(read).transpose()?;
    let ask = object([
        ("secret", secret.map(|text| Value::from(text.trim()))),
        ("keep", args.keep.map(|Wait(value)| value)),
    ]);
    let topic = args.of.topic;
    let call = Call::topic(Method::POST, &topic, &["secrets"]).json(&ask);
    let answer = session.client.ask(call, SHORT).await?;
    match session.out.format {
        Format::Json => session.json(&answer.body)?,
        Format::Table => {
            let CreatedSecret { id, secret } = serde_json::from_slice(&answer.body)?;
            session.out.line(&secret)?;
            note(&format!("{id} signs the callbacks of {topic}; the secret is not shown again"));
        }
    }
    Ok(CommandOutcome::Done)
}

/// Reads a secret from a file, or from standard input for `-`, without a byte order mark.
pub(super) fn read(file: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    if file == Path::new("-") {
        io::stdin().lock().read_to_string(&mut text).context("cannot read the secret from standard input")?;
    } else {
        text = std::fs::read_to_string(file)
            .with_context(|| format!("cannot read the secret from {}", file.display()))?;
    }
    Ok(text.strip_prefix('\u{feff}').map(ToOwned::to_owned).unwrap_or(text))
}

async fn show(session: &mut Session, call: Call) -> anyhow::Result<CommandOutcome> {
    session.show(call, |answer: &SecretsResponse, view| table(view.colour).page(&rows(answer, view))).await
}

fn table(colour: Colour) -> Table {
    Table::new(["SECRET", "ADDED", "SIGNS UNTIL", "MASTER KEY"], colour)
}

fn rows(answer: &SecretsResponse, view: &View) -> Vec<[Cell; 4]> {
    let row = |secret: &ringback_wire::SecretDetails| {
        let until = secret.until.as_ref().map_or_else(|| "-".to_owned(), |at| view.relative(at));
        [
            Cell::from(&secret.id),
            Cell::from(view.relative(&secret.created_at)),
            Cell::from(until),
            Cell::from(&secret.master_key),
        ]
    };
    answer.items.iter().map(row).collect()
}
