//! `ringback attempts`: what came of a job's last attempts.

use http::Method;
use ringback_core::clock::Timestamp;
use ringback_core::wire::{AttemptAnswer, AttemptsAnswer};

use super::{Session, parse};
use crate::args::{Format, JobArgs};
use crate::client::{Call, SHORT};
use crate::failure::Verdict;
use crate::output::{Align, Cell, Table, relative, say};

/// Characters of an answer that are shown in a table.
const SHOWN: usize = 60;

pub(super) async fn run(session: &mut Session, args: &JobArgs) -> anyhow::Result<Verdict> {
    let key = args.key()?;
    let path = ["v1", "jobs", key.topic.as_str(), key.id.as_str(), "attempts"];
    let body = session.client.ask(Call::new(Method::GET, &path), SHORT).await?.body;
    if session.out.format == Format::Json {
        session.json(&body)?;
        return Ok(Verdict::Done);
    }
    let answer = parse::<AttemptsAnswer>(&body)?;
    if answer.items.is_empty() {
        say("no attempts are logged");
        return Ok(Verdict::Done);
    }
    let columns = [
        ("ATTEMPT", Align::Right),
        ("AT", Align::Left),
        ("", Align::Left),
        ("MS", Align::Right),
        ("RESULT", Align::Left),
        ("BY", Align::Left),
        ("ANSWER", Align::Left),
    ];
    let rows: Vec<_> = answer.items.iter().map(|attempt| row(attempt, session.now())).collect();
    let text = Table::new(columns, session.out.colour).page(&rows);
    session.out.bytes(text.as_bytes())?;
    Ok(Verdict::Done)
}

fn row(attempt: &AttemptAnswer, now: Timestamp) -> [Cell; 7] {
    let status = attempt.status.map(|status| status.to_string());
    let error = attempt.error.as_deref().map(harmless);
    let answer = attempt.answer.as_deref().map(harmless);
    let binary = attempt.answer_base64.as_ref().map(|_| "(binary)".to_owned());
    [
        Cell::from(attempt.attempt),
        Cell::from(&attempt.at),
        Cell::from(relative(&attempt.at, now)),
        Cell::from(attempt.duration_ms),
        Cell::from(status.or(error).unwrap_or_else(|| "failed".to_owned())),
        Cell::from(harmless(&attempt.by)),
        Cell::from(answer.or(binary).unwrap_or_default()),
    ]
}

/// The start of a text, on one line: what a receiver answers is not to move the cursor or
/// colour the terminal.
fn harmless(text: &str) -> String {
    let mut line: String = text.chars().take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(SHOWN).is_some() {
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_receiver_answers_is_shown_on_one_line_and_without_control_characters() {
        assert_eq!(harmless("a\r\nb\u{1b}[31mc\td"), "a  b [31mc d");
        assert_eq!(harmless(&"ä".repeat(SHOWN)), "ä".repeat(SHOWN));
        assert_eq!(harmless(&"ä".repeat(SHOWN + 1)), format!("{}…", "ä".repeat(SHOWN)));
    }
}
