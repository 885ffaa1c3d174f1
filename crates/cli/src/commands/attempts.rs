//! `ringback attempts`: prints the recorded attempts of a job.

use http::Method;
use ringback_core::clock::Timestamp;
use ringback_core::wire::{AttemptAnswer, AttemptsAnswer};

use super::session::{Session, parse};
use crate::args::{Format, JobArgs};
use crate::client::{Call, SHORT};
use crate::failure::Verdict;
use crate::output::{Align, Cell, Table, note, relative};

/// The most characters of a text in the table.
const SHOWN: usize = 60;

pub(crate) async fn run(session: &mut Session, args: &JobArgs) -> anyhow::Result<Verdict> {
    let body = session.client.ask(Call::job(Method::GET, &args.key()?, &["attempts"]), SHORT).await?.body;
    if session.out.format == Format::Table && parse::<AttemptsAnswer>(&body)?.items.is_empty() {
        note("no attempts are recorded");
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
    session.print(&body, |answer: &AttemptsAnswer, view| {
        let rows: Vec<_> = answer.items.iter().map(|attempt| row(attempt, view.now)).collect();
        Table::new(columns, view.colour).page(&rows)
    })
}

fn row(attempt: &AttemptAnswer, now: Timestamp) -> [Cell; 7] {
    let status = attempt.status.map(|status| status.to_string());
    let error = attempt.error.as_deref().map(printable);
    let answer = attempt.answer.as_deref().map(printable);
    let binary = attempt.answer_base64.as_ref().map(|_| "(binary)".to_owned());
    [
        Cell::from(attempt.attempt),
        Cell::from(&attempt.at),
        Cell::from(relative(&attempt.at, now)),
        Cell::from(attempt.duration_ms),
        Cell::from(status.or(error).unwrap_or_else(|| "failed".to_owned())),
        Cell::from(printable(&attempt.by)),
        Cell::from(answer.or(binary).unwrap_or_default()),
    ]
}

/// The start of a text on one line, without control characters: a response must not move the cursor or colour the
/// terminal.
fn printable(text: &str) -> String {
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
    fn a_response_is_printed_on_one_line_without_control_characters() {
        assert_eq!(printable("a\r\nb\u{1b}[31mc\td"), "a  b [31mc d");
        assert_eq!(printable(&"ä".repeat(SHOWN)), "ä".repeat(SHOWN));
        assert_eq!(printable(&"ä".repeat(SHOWN + 1)), format!("{}…", "ä".repeat(SHOWN)));
    }
}
