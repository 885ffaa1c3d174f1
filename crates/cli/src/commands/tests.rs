//! Tests of the command line: values that it accepts and refuses.

use clap::CommandFactory as _;
use serde_json::json;

use super::*;
use crate::args::values::{self, Retry, Wait};

fn parse(args: &[&str]) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(["ringback"].iter().chain(args))
}

fn refused(args: &[&str]) -> String {
    match parse(args) {
        Ok(cli) => panic!("{args:?} was accepted: {cli:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn the_definitions_agree_with_themselves() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_shows_examples_of_itself() {
    for command in Cli::command().get_subcommands() {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(help.contains(&format!("ringback {}", command.get_name())), "{}", command.get_name());
    }
}

#[test]
fn durations_are_numbers_of_seconds_or_friendly() {
    for (text, value) in [("10", json!(10)), ("0.25", json!(0.25)), ("1h 30m", json!("1h 30m"))] {
        assert_eq!(text.parse::<Wait>(), Ok(Wait(value)));
    }
    for bad in ["", "-1", "NaN", "inf", "1e400", "soon", "1 month", "-5s", "0x10", "+5"] {
        assert!(bad.parse::<Wait>().is_err(), "{bad:?}");
    }
    assert!(
        refused(&["submit", "--topic", "t", "--url", "u", "--delay", "soon"]).contains("write \"250ms\"")
    );
}

#[test]
fn retries_are_waits_or_a_preset() {
    assert_eq!("15s,3m 1h".parse(), Ok(Retry(json!({"delays": ["15s", "3m", "1h"]}))));
    assert_eq!("standard-webhooks".parse(), Ok(Retry(json!({"preset": "standard-webhooks"}))));
    for bad in ["", "often", "15s -3m", "1ms", "31d"] {
        assert!(bad.parse::<Retry>().unwrap_err().contains("15s 3m 10m"), "{bad:?}");
    }
}

#[test]
fn a_server_is_an_http_url_and_its_path_is_kept() {
    let server = |text| parse(&["stats", "--server", text]).map(|cli| cli.remote.server.to_string());
    assert_eq!(server("http://h:1").unwrap(), "http://h:1/");
    assert_eq!(server("https://h/ringback").unwrap(), "https://h/ringback/");
    for bad in ["h:7411", "", "ftp://h", "http://h/?a=b", "http://h/#x"] {
        assert!(server(bad).unwrap_err().to_string().contains("http://127.0.0.1:7411"), "{bad}");
    }
}

#[test]
fn a_job_is_named_by_one_word_or_two() {
    let key = |args: &[&str]| {
        let name: Vec<_> = args.iter().map(|arg| (*arg).to_owned()).collect();
        values::job_key(&name).map(|key| key.to_string()).map_err(|error| error.to_string())
    };
    assert_eq!(key(&["t/i~1"]), key(&["t", "i~1"]));
    for (args, message) in [
        (&["t"][..], "TOPIC/ID or TOPIC ID"),
        (&["a b/c"], "not a topic; a topic is 1 to 64"),
        (&["t", "a/b"], "not an id; an id is 1 to 128"),
    ] {
        assert!(key(args).unwrap_err().contains(message), "{args:?}: {:?}", key(args));
    }
}

#[test]
fn flags_that_contradict_each_other_are_refused() {
    let flags = ["submit", "--topic", "t", "--url", "http://h/"];
    for more in [
        &["--delay", "1", "--at", "2026-11-20T09:30:00Z"][..],
        &["--body", "1", "--body-file", "x"],
        &["--ttr", "5s"],
        &["job.json"],
    ] {
        assert!(refused(&[&flags[..], more].concat()).contains("cannot be used with"), "{more:?}");
    }
    assert!(refused(&["submit", "--url", "http://h/"]).contains("--topic"));
    assert!(refused(&["reserve", "a b"]).contains("a topic is 1 to 64"));
    assert!(refused(&["reserve", "t", "--wait", "soon"]).contains("write \"250ms\""));
    assert!(refused(&["finish"]).contains("<RECEIPT>"));
    assert!(refused(&["list", "--all", "--limit", "5"]).contains("cannot be used with"));
    assert!(refused(&["list", "--limit", "0"]).contains("--limit"));
    assert!(refused(&["list", "--state", "lost"]).contains("delayed, ready, reserved, dead"));
    assert!(refused(&["submit", "--topic", "a b", "--url", "x"]).contains("a topic is 1 to 64"));
    assert!(refused(&["submit", "--topic", "t", "--url", "x", "--header", "a"]).contains("x-tenant:a7"));
    assert!(refused(&["submit", "--topic", "t", "--url", "x", "--at", "tomorrow"]).contains("RFC 3339"));
}
