//! `ringback attempts`: prints the recorded attempts of a job.

use http::Method;
use ringback_core::clock::Timestamp;
use ringback_core::wire::{AttemptAnswer, AttemptsAnswer};

use super::session::Session;
use crate::args::JobArgs;
use crate::client::{Call, SHORT};
use crate::failure::Verdict;
use crate::output::{Cell, relative};

pub(crate) const ATTEMPTS_EXAMPLES: &str = "\
Examples:
  ringback attempts pay.notify/order-1
  ringback attempts pay.notify order-1 --output json | jq -r '.items[-1].answer'

By default Ringback records failed attempts, and the successful one of a job that needed several. The table shows the \
start of each response; --output json shows all that is recorded.";

/// The most characters of a text in the table.
const SHOWN: usize = 60;

pub(crate) async fn run(session: &mut Session, args: &JobArgs) -> anyhow::Result<Verdict> {
    let body = session.client.ask(Call::job(Method::GET, &args.key()?, &["attempts"]), SHORT).await?.body;
    let columns = [">ATTEMPT", "AT", "", ">MS", "RESULT", "BY", "ANSWER"];
    let rows = |answer: &AttemptsAnswer, now| answer.items.iter().map(|attempt| row(attempt, now)).collect();
    session.print_rows(&body, columns, rows, "no attempts are recorded")
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
