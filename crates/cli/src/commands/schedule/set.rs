//! `ringback schedule set`: puts a schedule that flags describe or a file has.

use std::path::PathBuf;

use bytes::Bytes;
use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Args};
use http::Method;
use ringback_core::schedule::{Missed, Overlap};
use strum::VariantNames as _;

use super::{FEATURE, ScheduleArgs, call, details};
use crate::args::values::{self, Wait};
use crate::client::{Call, SHORT};
use crate::commands::job_fields::{JobFields, object, read_json, text, wait};
use crate::commands::session::Session;
use crate::failure::CommandOutcome;

const SET_EXAMPLES: &str = "\
Examples:
  ringback schedule set daily-report --cron '0 8 * * MON-FRI' --time-zone Europe/Berlin \\
      --topic reports --url https://shop.example/report --body '{\"kind\":\"daily\"}'
  ringback schedule set month-end --cron '0 18 L * *' --topic invoices --missed all --catchup 2d
  ringback schedule set poll-refunds --every 15m --jitter 30s --overlap skip --topic refunds
  ringback schedule set daily-report schedule.json

It replaces the whole former schedule of this id, and goes on counting. The same again changes nothing. Its topic stays: to \
change that, delete it first. `ringback schedule next` shows when it fires.";

/// A schedule to set.
#[derive(Debug, Args)]
#[command(
    after_help = SET_EXAMPLES,
    override_usage = "ringback schedule set [OPTIONS] --topic <TOPIC> <--cron <EXPRESSION>|--every <DURATION>> <ID>\n       ringback schedule set [OPTIONS] <ID> <FILE>",
    group(ArgGroup::new("when").required(true).args(["cron", "every", "file"]))
)]
pub(crate) struct SetArgs {
    #[command(flatten)]
    pub(crate) of: ScheduleArgs,
    /// File with the JSON of the schedule, as the API takes it; - is standard input
    #[arg(conflicts_with_all = ["topic", "url", "body", "body_file", "time_zone", "method", "content_type", "header",
        "context", "retry", "timeout", "ttr", "expires", "on_dead", "on_done", "anchor", "missed", "catchup", "overlap",
        "jitter", "from", "until", "paused"])]
    pub(crate) file: Option<PathBuf>,
    /// When it fires: minute, hour, day of the month, month and day of the week, or @hourly, @daily, @weekly, @monthly,
    /// @yearly
    #[arg(long, value_name = "EXPRESSION")]
    pub(crate) cron: Option<String>,
    /// How long from one firing to the next, 1s to 366d
    #[arg(long, value_name = "DURATION")]
    pub(crate) every: Option<Wait>,
    /// One of the times of --every (RFC 3339) [default: a period from now is the first]
    #[arg(long, value_name = "TIME", value_parser = values::due_time, conflicts_with = "cron")]
    pub(crate) anchor: Option<String>,
    /// Time zone of --cron [default: UTC], and of times without an offset, such as Europe/Berlin
    #[arg(long, value_name = "NAME")]
    pub(crate) time_zone: Option<String>,
    /// Topic of the jobs
    #[arg(long, required_unless_present = "file", value_parser = values::topic)]
    pub(crate) topic: Option<String>,
    /// What becomes of firings that are missed while nobody makes them: skip, one (the last) or all [default: one]
    #[arg(long, value_name = "WHICH", value_parser = PossibleValuesParser::new(Missed::VARIANTS))]
    pub(crate) missed: Option<String>,
    /// How late a missed firing is at most, 1s to 7d [default: 1h]
    #[arg(long, value_name = "DURATION")]
    pub(crate) catchup: Option<Wait>,
    /// Whether it fires while the job before has not ended: allow or skip [default: allow]
    #[arg(long, value_name = "RULE", value_parser = PossibleValuesParser::new(Overlap::VARIANTS))]
    pub(crate) overlap: Option<String>,
    /// How long after its time each job is due at most, up to 1d
    #[arg(long, value_name = "DURATION")]
    pub(crate) jitter: Option<Wait>,
    /// Do not fire before this time (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = values::due_time)]
    pub(crate) from: Option<String>,
    /// Do not fire after this time (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = values::due_time)]
    pub(crate) until: Option<String>,
    /// Whether it is paused [default: as it was]
    #[arg(long, value_name = "BOOL")]
    pub(crate) paused: Option<bool>,
    #[command(flatten)]
    pub(crate) fields: JobFields,
}

pub(super) async fn run(session: &mut Session, args: SetArgs) -> anyhow::Result<CommandOutcome> {
    let id = args.of.id.clone();
    let schedule: Bytes = match &args.file {
        Some(path) => read_json(path)?.into(),
        None => schedule(args)?.into(),
    };
    let call = Call { body: Some(("application/json", schedule)), ..call(Method::PUT, &id, &[]) };
    let body = session.client.ask(call, SHORT).await.map_err(|error| error.for_route(FEATURE))?.body;
    session.print(&body, details)
}

/// The schedule that the flags describe, as JSON text.
fn schedule(args: SetArgs) -> anyhow::Result<String> {
    let job = [("topic", text(args.topic))].into_iter().chain(args.fields.json()?);
    Ok(object([
        ("cron", text(args.cron)),
        ("every", wait(args.every)),
        ("anchor", text(args.anchor)),
        ("time_zone", text(args.time_zone)),
        ("job", Some(object(job))),
        ("missed", text(args.missed)),
        ("catchup", wait(args.catchup)),
        ("overlap", text(args.overlap)),
        ("jitter", wait(args.jitter)),
        ("from", text(args.from)),
        ("until", text(args.until)),
        ("paused", args.paused.map(|paused| paused.to_string())),
    ]))
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches as _};

    use super::*;

    fn given(line: &[&str]) -> anyhow::Result<String> {
        let words = ["set", "daily"].iter().chain(line);
        let matches = SetArgs::augment_args(clap::Command::new("set")).try_get_matches_from(words)?;
        schedule(SetArgs::from_arg_matches(&matches)?)
    }

    #[test]
    fn flags_become_the_fields_of_a_schedule() {
        let all = "--topic t --time-zone Europe/Berlin --url http://h/ --body 1.0 --missed all --catchup 2d --jitter 30s --until 2027-01-01T00:00:00Z --paused true";
        let words: Vec<_> = all.split(' ').chain(["--cron", "0 8 * * MON"]).collect();
        let expected = r#"{"cron":"0 8 * * MON","time_zone":"Europe/Berlin","job":{"topic":"t","url":"http://h/","body":1.0},"missed":"all","catchup":"2d","jitter":"30s","until":"2027-01-01T00:00:00Z","paused":true}"#;
        assert_eq!(given(&words).unwrap(), expected);
        let every = given(&["--topic", "t", "--every", "90", "--ttr", "1m", "--overlap", "skip"]).unwrap();
        assert_eq!(every, r#"{"every":90,"job":{"topic":"t","ttr":"1m"},"overlap":"skip"}"#);
    }

    #[test]
    fn a_schedule_has_one_rule_or_is_in_a_file() {
        for wrong in [
            &["--topic", "t"][..],
            &["--topic", "t", "--cron", "@daily", "--every", "1m"],
            &["--cron", "@daily"],
            &["file.json", "--every", "1m"],
            &["file.json", "--topic", "t"],
            &["--topic", "t", "--cron", "@daily", "--anchor", "2026-01-01T00:00:00Z"],
            &["--topic", "t", "--every", "1m", "--missed", "some"],
        ] {
            assert!(given(wrong).is_err(), "{wrong:?}");
        }
    }
}
