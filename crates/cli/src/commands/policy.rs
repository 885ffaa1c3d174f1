//! `ringback policy`: sets, prints and deletes the defaults of a topic.

use clap::{Args, Subcommand, value_parser};
use http::Method;
use ringback_wire::{PolicyResponse, TopicDeleteResponse};
use serde_json::{Map, Value};

use super::limit::LimitFlags;
use super::session::{Session, object, parse};
use crate::args::values::{self, Pair, RETRY, Retry, Wait};
use crate::args::{Format, TopicArgs, help};
use crate::client::{Call, ClientError, SHORT};
use crate::failure::CommandOutcome;
use crate::output::{Cell, Table, note};

pub(crate) const EXAMPLES: &str = "\
Examples:
  ringback policy set pay.notify --expect-body success --retry '15s 3m 10m' --max -1
  ringback policy get pay.notify
  ringback policy delete pay.notify --force";

const SET_EXAMPLES: &str = "\
Examples:
  ringback policy set pay.notify --expect-body success --retry '15s 3m 10m' --max -1
  ringback policy set thumbnails --ttr 5m --retry none
  ringback policy set remind --url http://127.0.0.1:8080/hook --header x-tenant:a7 --timeout 5s
  ringback policy set pay.notify --on-dead https://shop.example/dead --metrics
  ringback policy set pay.notify --rate 100/s --burst 20 --in-flight 10
  ringback policy set orders --order key --order-on-dead hold

  ringback policy set pay.notify --unset expect_body,timeout
  ringback policy set pay.notify --replace --timeout 5s

Defaults that are not given stay as they are, headers too. --rate, --burst and --in-flight limit the callbacks of the \
topic to all destinations together, in place of all of its former limits; --unset limits removes them. With --replace the new policy takes the place of the whole old \
one, and what is unset by that is named.";

const GET_EXAMPLES: &str = "\
Examples:
  ringback policy get pay.notify
  ringback policy get pay.notify --output json | jq .policy.retry

The exit code is 1 when the topic has no policy.";

const DELETE_EXAMPLES: &str = "\
Examples:
  ringback policy delete pay.notify
  ringback policy delete pay.notify --force && echo the topic is gone

The signing secrets of the topic are deleted with its policy. Without --force the command is refused while the topic has jobs. With --force waiting jobs are cancelled, dead jobs \
are purged, and jobs in delivery are cancelled unless the delivery succeeds; while there are such jobs the exit code is \
1: run the command again later.";

/// The commands on a policy.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Set defaults of a topic; those that are not given stay
    #[command(after_help = SET_EXAMPLES)]
    Set(Box<SetArgs>),
    /// Show the policy of a topic
    #[command(after_help = GET_EXAMPLES)]
    Get(TopicArgs),
    /// Delete the policy and the signing secrets of a topic without jobs; --force removes its jobs first
    #[command(after_help = DELETE_EXAMPLES)]
    Delete(DeleteArgs),
}

/// A policy and its topic.
#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    #[command(flatten)]
    pub(crate) of: TopicArgs,
    #[arg(long, help = help::written(help::policy("retry"), RETRY), value_name = "DELAYS")]
    pub(crate) retry: Option<Retry>,
    /// Number of failures after which a job is dead, -1 for never; beyond the list the last delay repeats
    #[arg(long, value_name = "N", requires = "retry", allow_hyphen_values = true)]
    pub(crate) max: Option<i64>,
    /// Largest share of a delay that is added to it at random, 0 to 1 [default: 0.1]
    #[arg(long, value_name = "SHARE", requires = "retry")]
    pub(crate) jitter: Option<f64>,
    #[arg(long, help = help::policy("timeout"), value_name = "DURATION")]
    pub(crate) timeout: Option<Wait>,
    #[arg(long, help = help::policy("ttr"), value_name = "DURATION")]
    pub(crate) ttr: Option<Wait>,
    #[arg(long, help = help::policy("url"))]
    pub(crate) url: Option<String>,
    #[arg(long, help = help::written(help::policy("headers"), "May be repeated"), value_name = "NAME:VALUE",
        value_parser = values::header)]
    pub(crate) header: Vec<Pair>,
    #[arg(long, help = help::written(help::policy("headers_to"), "May be repeated"), value_name = "ORIGIN",
        requires = "header")]
    pub(crate) headers_to: Vec<String>,
    #[arg(long, help = help::policy("credentials"), value_name = "NAME")]
    pub(crate) credentials: Option<String>,
    #[arg(long, help = help::policy("expect_body"), value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) expect_body: Option<String>,
    #[arg(long, help = help::written(help::policy("bury_on"), "Such as 400,422"), value_name = "STATUSES",
        value_delimiter = ',', value_parser = value_parser!(u16).range(300..=599))]
    pub(crate) bury_on: Vec<u16>,
    #[command(flatten)]
    pub(crate) limits: LimitFlags,
    #[arg(long, help = help::written(help::policy("archive"), "Such as done,dead; off for none"), value_name = "ENDS",
        value_delimiter = ',', value_parser = ["done", "dead", "expired", "cancelled", "purged", "off"])]
    pub(crate) archive_states: Vec<String>,
    /// Whether the archive has the bodies of jobs: on or off
    #[arg(long, value_name = "WHETHER", value_parser = ["on", "off"])]
    pub(crate) archive_bodies: Option<String>,
    #[arg(long, help = help::policy("order"), value_name = "BY", value_parser = ["key"])]
    pub(crate) order: Option<String>,
    #[arg(long, help = help::policy("order_on_dead"), value_name = "WHAT", value_parser = ["next", "hold"])]
    pub(crate) order_on_dead: Option<String>,
    #[arg(long, help = help::policy("attempts"), value_name = "WHICH", value_parser = ["failed", "all", "off"])]
    pub(crate) attempts: Option<String>,
    #[arg(long, help = help::policy("on_dead"), value_name = "URL")]
    pub(crate) on_dead: Option<String>,
    #[arg(long, help = help::policy("on_done"), value_name = "URL")]
    pub(crate) on_done: Option<String>,
    #[arg(long, help = help::policy("metrics"))]
    pub(crate) metrics: bool,
    /// Defaults to unset, by the names that `policy get` prints, such as timeout,ttr
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "replace")]
    pub(crate) unset: Vec<String>,
    /// Replace the whole policy: defaults that are not given are unset
    #[arg(long)]
    pub(crate) replace: bool,
}

/// The topic to delete.
#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    pub(crate) of: TopicArgs,
    /// Remove the jobs of the topic first
    #[arg(long)]
    pub(crate) force: bool,
}

pub(crate) async fn run(session: &mut Session, command: PolicyCommand) -> anyhow::Result<CommandOutcome> {
    match command {
        PolicyCommand::Set(args) => set(session, *args).await,
        PolicyCommand::Get(args) => get(session, &args).await,
        PolicyCommand::Delete(args) => delete(session, &args).await,
    }
}

async fn set(session: &mut Session, args: SetArgs) -> anyhow::Result<CommandOutcome> {
    let topic = args.of.topic.clone();
    let method = if args.replace { Method::PUT } else { Method::PATCH };
    let call = Call::topic(method, &topic, &[]).json(&policy(args));
    let answer = session.client.ask(call, SHORT).await?;
    match session.out.format {
        Format::Json => session.json(&answer.body)?,
        Format::Table => {
            let is_new = answer.status == http::StatusCode::CREATED;
            let what = if is_new { "a policy now" } else { "another policy now" };
            session.out.line(format!("the topic {topic} has {what}"))?;
            let dropped = parse::<PolicyResponse>(&answer.body)?.dropped;
            if !dropped.is_empty() {
                note(&format!("no longer set: {}", dropped.join(", ")));
            }
        }
    }
    Ok(CommandOutcome::Done)
}

fn policy(args: SetArgs) -> Value {
    let ends =
        args.archive_states.iter().filter(|end| *end != "off").cloned().map(Value::from).collect::<Vec<_>>();
    let archive = object([
        ("states", (!args.archive_states.is_empty()).then(|| ends.into())),
        ("bodies", args.archive_bodies.map(|bodies| (bodies == "on").into())),
    ]);
    let retry = args.retry.map(|Retry(mut retry)| {
        args.max.into_iter().for_each(|max| retry["max"] = max.into());
        args.jitter.into_iter().for_each(|jitter| retry["jitter"] = jitter.into());
        retry
    });
    let header = |Pair(name, value): Pair| (name, Value::from(value));
    let headers: Map<_, _> = args.header.into_iter().map(header).collect();
    let unset = args.unset.into_iter().map(|name| (name, Value::Null));
    let mut fields = object([
        ("retry", retry),
        ("timeout", args.timeout.map(|Wait(value)| value)),
        ("ttr", args.ttr.map(|Wait(value)| value)),
        ("url", args.url.map(Value::from)),
        ("headers", (!headers.is_empty()).then(|| headers.into())),
        ("headers_to", (!args.headers_to.is_empty()).then(|| args.headers_to.into())),
        ("credentials", args.credentials.map(Value::from)),
        ("expect_body", args.expect_body.map(Value::from)),
        ("bury_on", (!args.bury_on.is_empty()).then(|| args.bury_on.into())),
        ("limits", args.limits.json()),
        ("order", args.order.map(Value::from)),
        ("order_on_dead", args.order_on_dead.map(Value::from)),
        (
            "archive",
            Some(archive).filter(|archive| archive.as_object().is_some_and(|fields| !fields.is_empty())),
        ),
        ("attempts", args.attempts.map(Value::from)),
        ("on_dead", args.on_dead.map(Value::from)),
        ("on_done", args.on_done.map(Value::from)),
        ("metrics", args.metrics.then(|| true.into())),
    ]);
    if let Some(fields) = fields.as_object_mut() {
        fields.extend(unset);
    }
    fields
}

async fn get(session: &mut Session, TopicArgs { topic }: &TopicArgs) -> anyhow::Result<CommandOutcome> {
    let body = session.client.ask(Call::topic(Method::GET, topic, &[]), SHORT).await?.body;
    let policy = parse::<PolicyResponse>(&body)?.policy;
    match (session.out.format, &policy) {
        (Format::Json, _) => session.json(&body)?,
        (Format::Table, Some(policy)) => {
            let fields: Map<String, Value> = serde_json::from_str(policy.get())?;
            let rows: Vec<_> = fields
                .into_iter()
                .map(|(name, value)| [Cell::from(name), Cell::from(value.to_string())])
                .collect();
            let text = Table::new(["FIELD", "VALUE"], session.out.colour).page(&rows);
            session.out.bytes(text.as_bytes())?;
        }
        (Format::Table, None) => note(&format!("the topic {topic} has no policy")),
    }
    Ok(if policy.is_some() { CommandOutcome::Done } else { CommandOutcome::No })
}

/// Deletes the policy, and with `--force` the jobs of the topic: one call after the other until the topic is deleted or
/// no cursor is left. [`CommandOutcome::No`] if it is not deleted, because jobs are in delivery or new.
async fn delete(session: &mut Session, args: &DeleteArgs) -> anyhow::Result<CommandOutcome> {
    let topic = &args.of.topic;
    let mut sum = TopicDeleteResponse::default();
    loop {
        let mut call = Call::topic(Method::DELETE, topic, &[]);
        if args.force {
            call.query.push(("force", true.to_string()));
            call.query.extend(sum.next.take().map(|next| ("cursor", next)));
        }
        let answer = session.client.ask(call, SHORT).await;
        let body = answer.map_err(|error| in_flags(error, session.out.format))?.body;
        let answer = parse::<TopicDeleteResponse>(&body)?;
        if session.out.format == Format::Json {
            session.json(&body)?;
        }
        sum.cancelled += answer.cancelled;
        sum.purged += answer.purged;
        sum.requested += answer.requested;
        (sum.deleted, sum.next) = (answer.deleted, answer.next);
        if sum.deleted || sum.next.is_none() {
            break;
        }
    }
    if session.out.format == Format::Table {
        print_deleted(session, topic, &sum)?;
    }
    Ok(if sum.deleted { CommandOutcome::Done } else { CommandOutcome::No })
}

/// Replaces the parameter of the API by the flag of the command line in an error that is printed as text.
fn in_flags(mut error: ClientError, format: Format) -> ClientError {
    if let (ClientError::Problem { problem, .. }, Format::Table) = (&mut error, format) {
        problem.detail = problem.detail.replace("force=true", "--force");
    }
    error
}

fn print_deleted(session: &mut Session, topic: &str, sum: &TopicDeleteResponse) -> anyhow::Result<()> {
    let TopicDeleteResponse { deleted, cancelled, purged, requested, .. } = sum;
    let removed = format!("{cancelled} jobs were cancelled, {purged} purged");
    if *deleted {
        return session.out.line(format!("the topic {topic} is deleted; {removed}"));
    }
    note(&format!(
        "{removed}; {requested} are in delivery and will be cancelled unless it succeeds: run the command again later"
    ));
    Ok(())
}
