//! Tests of the command line: values that it accepts and refuses.

use clap::CommandFactory as _;
use serde_json::json;

use super::*;
use crate::args::Jobs;
use crate::args::values::{self, Retry, Wait};

fn parse(args: &[&str]) -> Result<Cli, clap::Error> {
    let mut command = usage::fixed(Cli::command());
    let matches = command.try_get_matches_from_mut(["ringback"].iter().chain(args))?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut usage::called(&command, &matches)))
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
    fn check(command: &clap::Command, name: &str) {
        for below in command.get_subcommands() {
            let name = format!("{name} {}", below.get_name());
            let help = below.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains(&format!("\n  {name}")), "{name}");
            check(below, &name);
        }
    }
    check(&Cli::command(), "ringback");
}

#[test]
fn durations_are_numbers_of_seconds_or_friendly() {
    for (text, value) in [("10", json!(10)), ("0.25", json!(0.25)), ("1h 30m", json!("1h 30m"))] {
        assert_eq!(text.parse::<Wait>(), Ok(Wait(value)));
    }
    for bad in ["", "-1", "NaN", "inf", "1e400", "soon", "1 month", "-5s", "0x10", "+5"] {
        assert!(bad.parse::<Wait>().is_err(), "{bad:?}");
    }
    let delay = |text| refused(&["submit", "--topic", "t", "--url", "u", "--delay", text]);
    assert!(delay("soon").contains("write \"250ms\""));
    let month = delay("1 month");
    assert!(month.contains("months and years have no fixed length; write \"250ms\""), "{month}");
    assert!(month.contains("the units are w, d, h, m, s and ms"), "{month}");
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
        (&["t", "a b"], "not an id; an id is 1 to 128"),
    ] {
        assert!(key(args).unwrap_err().contains(message), "{args:?}: {:?}", key(args));
    }
}

#[test]
fn many_jobs_are_named_by_one_word_each_or_read_from_standard_input() {
    let jobs = |args: &[&str]| match parse(&[&["cancel"], args].concat()).expect("names").command {
        Command::Cancel(args) => args.jobs.named().jobs().map_err(|error| error.to_string()),
        other => panic!("{other:?}"),
    };
    let key = |name: &str| values::job_key(&[name]).unwrap();
    assert_eq!(jobs(&["t/i"]), Ok(Jobs::One(key("t/i"))));
    assert_eq!(jobs(&["t", "i"]), Ok(Jobs::One(key("t/i"))));
    assert_eq!(jobs(&["a/1", "b/2"]), Ok(Jobs::Many(vec![key("a/1"), key("b/2")])));
    assert_eq!(jobs(&["-"]), Ok(Jobs::Stdin));
    for wrong in [&["t"][..], &["a/1", "b"], &["t", "a/b"], &["a", "b", "c"], &["-", "a/1"], &["a/1", ""]] {
        assert!(jobs(wrong).unwrap_err().contains("TOPIC/ID"), "{wrong:?}: {:?}", jobs(wrong));
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
    let at = |text| refused(&["submit", "--topic", "t", "--url", "x", "--at", text]);
    assert!(at("2027-01-01T00:00:00Z[!u-ca=hebrew]").contains("not a time zone by RFC 9557"));
    let died = refused(&["dead", "list", "t", "--died-after", "2027-01-01T00:00"]);
    assert!(died.contains("a local time without an offset or a time zone; write an offset"), "{died}");
}

#[test]
fn limits_are_checked_before_they_are_sent() {
    let refused = |args: &[&str]| refused(&[&["limit", "set", "--host", "h"], args].concat());
    assert!(refused(&["--rate", "10"]).contains("a rate is a whole number from 1 on, and a unit: 10/s"));
    assert!(refused(&["--rate", "0/s"]).contains("a rate is a whole number from 1 on"));
    assert!(refused(&["--burst", "5"]).contains("--rate <RATE>"));
    assert!(refused(&["--in-flight", "5", "--burst", "5"]).contains("--rate <RATE>"));
    assert!(refused(&["--in-flight", "0"]).contains("1..=1000000"));
    assert!(parse(&["limit", "set", "--host", "h:81", "--rate", "10/s", "--burst", "2"]).is_ok());
    assert!(parse(&["limit", "set", "--host", "h", "--in-flight", "5"]).is_ok());
}

#[test]
fn errors_show_the_whole_usage_of_their_own_command() {
    for (line, usage) in [
        ("", "ringback [OPTIONS] <COMMAND>"),
        ("fly", "ringback [OPTIONS] <COMMAND>"),
        ("get", "ringback get [OPTIONS] <TOPIC/ID>..."),
        ("get --server http://h", "ringback get [OPTIONS] <TOPIC/ID>..."),
        ("--server http://h --json get", "ringback get [OPTIONS] <TOPIC/ID>..."),
        ("attempts a b c", "ringback attempts [OPTIONS] <TOPIC/ID>..."),
        ("run --nope", "ringback run [OPTIONS] [TOPIC/ID]..."),
        ("revive --nope", "ringback revive [OPTIONS] [TOPIC/ID]..."),
        ("cancel --nope", "ringback cancel [OPTIONS] [TOPIC/ID]..."),
        ("reschedule a/1", "ringback reschedule [OPTIONS] <--delay <DURATION>|--at <TIME>> [TOPIC/ID]..."),
        ("purge x", "ringback purge [OPTIONS]"),
        ("bulk get", "ringback bulk get [OPTIONS] <ID>"),
        ("submit --server http://h", "ringback submit [OPTIONS] --topic <TOPIC>"),
        ("submit a b", "ringback submit [OPTIONS] --topic <TOPIC>"),
        ("reserve --server http://h", "ringback reserve [OPTIONS] <TOPIC>"),
        ("finish --server http://h", "ringback finish [OPTIONS] <RECEIPT>"),
        ("retry a b", "ringback retry [OPTIONS] <RECEIPT>"),
        ("renew --json", "ringback renew [OPTIONS] <RECEIPT>"),
        ("bury --server http://h", "ringback bury [OPTIONS] <RECEIPT>"),
        ("release --delay 1", "ringback release [OPTIONS] <RECEIPT>"),
        ("policy --server http://h", "ringback policy [OPTIONS] <COMMAND>"),
        ("policy fly", "ringback policy [OPTIONS] <COMMAND>"),
        ("policy set --server http://h", "ringback policy set [OPTIONS] <TOPIC>"),
        ("policy set t --max 3", "ringback policy set [OPTIONS] <TOPIC>"),
        ("policy get a b", "ringback policy get [OPTIONS] <TOPIC>"),
        ("policy delete", "ringback policy delete [OPTIONS] <TOPIC>"),
        ("dead --json", "ringback dead [OPTIONS] <COMMAND>"),
        ("dead list --server http://h", "ringback dead list [OPTIONS] <TOPIC>"),
        ("dead purge t", "ringback dead purge [OPTIONS] <TOPIC> <ID>"),
        ("dead revive", "ringback dead revive [OPTIONS] <TOPIC>"),
        ("dead revive a b", "ringback dead revive [OPTIONS] <TOPIC>"),
        ("topics a", "ringback topics [OPTIONS]"),
        ("topic --server http://h", "ringback topic [OPTIONS] <TOPIC>"),
        ("pause a b", "ringback pause [OPTIONS] <TOPIC|--host <HOST>>"),
        ("resume --json", "ringback resume [OPTIONS] <TOPIC|--host <HOST>>"),
        ("unblock a", "ringback unblock [OPTIONS] <TOPIC> <KEY>"),
        ("limit get", "ringback limit get [OPTIONS] --host <HOST>"),
        ("limit set --host h", "ringback limit set [OPTIONS] --host <HOST> <--rate <RATE>|--in-flight <N>>"),
        ("stats a", "ringback stats [OPTIONS]"),
        ("watch a b c", "ringback watch [OPTIONS] [TOPIC[/ID]]..."),
        ("check a", "ringback check [OPTIONS]"),
        ("list a", "ringback list [OPTIONS]"),
        ("export a", "ringback export [OPTIONS]"),
        ("import --server http://h", "ringback import [OPTIONS] <FILE>"),
        ("backup --server http://h", "ringback backup [OPTIONS] <FILE>"),
        ("restore a b", "ringback restore [OPTIONS] <FILE>"),
        ("compact", "ringback compact [OPTIONS] <DIRECTORY>"),
        ("listen a", "ringback listen [OPTIONS]"),
        ("completions --server http://h", "ringback completions [OPTIONS] <SHELL>"),
        ("up now", "ringback up [OPTIONS]"),
        ("up --server http://h", "ringback up [OPTIONS]"),
        ("--server http://h up", "ringback up [OPTIONS]"),
        ("up --json", "ringback up [OPTIONS]"),
    ] {
        let words: Vec<_> = line.split(' ').filter(|word| !word.is_empty()).collect();
        let text = refused(&words);
        assert!(text.contains(&format!("Usage: {usage}\n")), "{line:?}: {text}");
        assert_eq!(text.matches("Usage: ").count(), 1, "{line:?}: {text}");
    }
}
