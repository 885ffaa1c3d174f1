//! Makes the JSON of the job that the flags of `ringback submit` describe, and checks that they fit together.

use bytes::Bytes;
use serde_json::json;

use super::{IfExists, SubmitArgs};
use crate::args::values;
use crate::commands::job_fields::{object, text, wait};

/// The job as JSON text.
///
/// # Errors
/// A usage error when flags contradict each other or the body is not JSON, and when its file cannot be read.
pub(super) fn job(args: SubmitArgs) -> anyhow::Result<Bytes> {
    check(&args)?;
    let before = [
        ("topic", text(args.topic)),
        ("id", text(args.id)),
        ("key", text(args.key)),
        ("delay", wait(args.delay)),
        ("at", text(args.at)),
        ("time_zone", text(args.time_zone)),
    ];
    let after = [
        ("if_exists", args.if_exists.map(|mode| json!(mode).to_string())),
        ("max_delay", wait(args.max_delay)),
    ];
    Ok(object(before.into_iter().chain(args.fields.json()?).chain(after)).into())
}

/// Checks combinations of flags that their definitions cannot express; a usage error if they contradict each other.
fn check(args: &SubmitArgs) -> Result<(), clap::Error> {
    values::check_zone(args.at.as_deref(), args.time_zone.as_deref())?;
    let changes_none = matches!(args.if_exists, None | Some(IfExists::Refuse));
    if args.max_delay.is_some() && args.if_exists != Some(IfExists::Postpone) {
        return Err(values::wrong("--max-delay is only for --if-exists postpone".to_owned()));
    }
    if args.id.is_some() && args.idempotency_key.is_some() && changes_none {
        let why = "a submit with --id is safe to repeat without --idempotency-key; both are only for --if-exists \
                   replace or postpone";
        return Err(values::wrong(why.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches as _};

    use super::*;

    fn given(line: &[&str]) -> anyhow::Result<String> {
        let words = ["submit", "--topic", "t", "--url", "http://h/"].iter().chain(line);
        let matches = SubmitArgs::augment_args(clap::Command::new("submit")).try_get_matches_from(words)?;
        Ok(String::from_utf8(job(SubmitArgs::from_arg_matches(&matches)?)?.to_vec())?)
    }

    #[test]
    fn flags_become_the_fields_of_a_submit() {
        let all = "--id i --delay 10m --header x-b: --context k=v=w --timeout 0.5 --on-dead http://h/dead --on-done http://h/done";
        let more = ["--body", "{\"b\": 1.0e5}", "--header", "x-a: 1:2", "--retry", "15s, 3m"];
        let all = given(&[&all.split(' ').collect::<Vec<_>>()[..], &more].concat());
        let expected = r#"{"topic":"t","id":"i","delay":"10m","url":"http://h/","body":{"b": 1.0e5},"headers":{"x-b":"","x-a":"1:2"},"context":{"k":"v=w"},"retry":{"delays":["15s","3m"]},"timeout":0.5,"on_dead":"http://h/dead","on_done":"http://h/done"}"#;
        assert_eq!(all.unwrap(), expected);
        let ordered = given(&["--key", "order-7"]).unwrap();
        assert_eq!(ordered, r#"{"topic":"t","key":"order-7","url":"http://h/"}"#);
        assert!(given(&["--key", "a~b"]).unwrap_err().to_string().contains("a key is 1 to 101"));
        let preset = given(&["--retry", "none", "--at", "2026-11-20T09:30:00Z"]).unwrap();
        let expected =
            r#"{"topic":"t","at":"2026-11-20T09:30:00Z","url":"http://h/","retry":{"preset":"none"}}"#;
        assert_eq!(preset, expected);
        let local = given(&["--at", "2026-11-23T09:00", "--time-zone", "Europe/Berlin"]).unwrap();
        let expected =
            r#"{"topic":"t","at":"2026-11-23T09:00","time_zone":"Europe/Berlin","url":"http://h/"}"#;
        assert_eq!(local, expected);
    }

    #[test]
    fn a_local_time_needs_a_time_zone_and_a_time_zone_a_time() {
        let error = given(&["--at", "2026-11-23T09:00"]).unwrap_err().to_string();
        assert!(error.contains("--time-zone Europe/Berlin"), "{error}");
        assert!(given(&["--at", "2026-11-23T09:00[Europe/Berlin]"]).is_ok());
        let error = given(&["--time-zone", "Europe/Berlin"]).unwrap_err().to_string();
        assert!(error.contains("--at <TIME>"), "{error}");
    }

    #[test]
    fn a_submit_may_change_a_job_that_exists() {
        let postpone = ["--id", "i", "--if-exists", "postpone", "--max-delay", "5m"];
        let expected = r#"{"topic":"t","id":"i","url":"http://h/","if_exists":"postpone","max_delay":"5m"}"#;
        assert_eq!(given(&postpone).unwrap(), expected);
        let refused = |line: &[&str]| given(line).unwrap_err().to_string();
        assert!(refused(&postpone[2..]).contains("--id <ID>"), "{}", refused(&postpone[2..]));
        assert!(refused(&["--max-delay", "5m"]).contains("--if-exists <MODE>"));
        let replace = ["--id", "i", "--if-exists", "replace", "--max-delay", "5m"];
        assert!(refused(&replace).contains("only for --if-exists postpone"));
        assert!(refused(&["--id", "i", "--if-exists", "ignore"]).contains("refuse, replace, postpone"));
    }

    #[test]
    fn a_body_that_is_no_json_needs_a_content_type() {
        let error = given(&["--body", "hello"]).unwrap_err().to_string();
        assert!(error.contains("not JSON") && error.contains("--content-type text/plain"), "{error}");
        let text = given(&["--body", "hello", "--content-type", "text/plain"]).unwrap();
        assert_eq!(
            text,
            r#"{"topic":"t","url":"http://h/","body_base64":"aGVsbG8=","content_type":"text/plain"}"#
        );
    }
}
