//! `ringback attempts`: prints the logged attempts of a job.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use ringback_core::job::JobKey;
use ringback_wire::{AttemptsResponse, JobResponse, LoggedAttempt};

use super::session::{Session, parse};
use crate::args::{Format, JobArgs};
use crate::client::{Call, ClientError, SHORT};
use crate::failure::CommandOutcome;
use crate::output::{Cell, Table, View, escape_invisible, is_unsafe, note};

pub(crate) const ATTEMPTS_EXAMPLES: &str = "\
Examples:
  ringback attempts pay.notify/order-1
  ringback attempts pay.notify order-1 --output json | jq -r '.items[-1].answer'

By default Ringback logs failed attempts, and the successful one of a job that needed several. To log all, set \
RINGBACK_ATTEMPT_LOG=all for the servers, or \"attempts\":\"all\" in the policy of a topic; successes of pull jobs are never \
logged. The table shows the start of each response; --output json shows all that is logged.";

/// The most characters of a text in the table.
const SHOWN: usize = 60;

pub(crate) async fn run(session: &mut Session, args: &JobArgs) -> anyhow::Result<CommandOutcome> {
    let key = args.key()?;
    let body = session.client.ask(Call::job(Method::GET, &key, &["attempts"]), SHORT).await?.body;
    if session.out.format == Format::Json {
        session.json(&body)?;
        return Ok(CommandOutcome::Done);
    }
    let items = parse::<AttemptsResponse>(&body)?.items;
    if items.is_empty() {
        note(why_none(look(session, &key).await?.as_ref()));
        return Ok(CommandOutcome::Done);
    }
    let view = session.out.view();
    let columns = [">ATTEMPT", "AT", "", ">MS", "RESULT", "BY", "ANSWER"];
    let rows: Vec<_> = items.iter().map(|attempt| row(attempt, &view)).collect();
    session.out.bytes(Table::new(columns, view.colour).page(&rows).as_bytes())?;
    Ok(CommandOutcome::Done)
}

/// The job; `None` if it is not known any more.
async fn look(session: &Session, key: &JobKey) -> Result<Option<JobResponse>, ClientError> {
    match session.client.ask(Call::job(Method::GET, key, &[]), SHORT).await {
        Ok(reply) => parse(&reply.body).map(Some),
        Err(ClientError::Problem { problem, .. }) if problem.status == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

/// Why no attempts of a job are logged.
fn why_none(job: Option<&JobResponse>) -> &'static str {
    match job {
        Some(job) if job.attempts == 0 => "no attempts were made yet",
        Some(job) if job.attempts == 1 && job.state == "reserved" => {
            "no attempts are logged; the first one is in progress"
        }
        Some(_) | None => {
            "no attempts are logged: by default only failed attempts are, and the success of a job that needed more \
            than one; to log all, set RINGBACK_ATTEMPT_LOG=all for the servers, or \"attempts\":\"all\" in the topic's \
            policy (successes of pull jobs are never logged)"
        }
    }
}

fn row(attempt: &LoggedAttempt, view: &View) -> [Cell; 7] {
    let text = attempt.answer.as_deref().map(escape_invisible);
    let answer = text.or_else(|| attempt.answer_base64.as_deref().map(binary)).map(|answer| start(&answer));
    [
        Cell::from(attempt.attempt),
        Cell::from(view.time(&attempt.at)),
        Cell::from(view.relative(&attempt.at)),
        Cell::from(attempt.duration_ms),
        Cell::from(result(attempt.status, attempt.error.as_deref())),
        Cell::from(printable(&attempt.by)),
        Cell::from(answer.unwrap_or_default()),
    ]
}

/// The status of the answer to an attempt and its error, as far as there are any; `failed` without both.
fn result(status: Option<u16>, error: Option<&str>) -> String {
    let parts: Vec<_> =
        status.map(|status| status.to_string()).into_iter().chain(error.map(printable)).collect();
    if parts.is_empty() { "failed".to_owned() } else { parts.join(" ") }
}

/// The bytes of an answer in base64, with those that are not printable ASCII escaped.
fn binary(base64: &str) -> String {
    STANDARD.decode(base64).map_or_else(|_| "(binary)".to_owned(), |bytes| bytes.escape_ascii().to_string())
}

fn start(text: &str) -> String {
    let mut line: String = text.chars().take(SHOWN).collect();
    if text.chars().nth(SHOWN).is_some() {
        line.push('…');
    }
    line
}

/// The start of a text, with a space for each unsafe character: a response must not move the cursor or colour the
/// terminal.
fn printable(text: &str) -> String {
    start(&text.replace(is_unsafe, " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_printed_on_one_line_and_what_cannot_be_seen_is_escaped() {
        for (answer, expected) in [
            ("a\r\nb\u{1b}[31mc\td\u{202e}e", r"a\r\nb\u{1b}[31mc\td\u{202e}e"),
            ("\u{feff}success", r"\u{feff}success"),
            ("success\0", r"success\u{0}"),
            ("suc\u{200b}cess", r"suc\u{200b}cess"),
            ("success\u{a0}ä ok", r"success\u{a0}ä ok"),
        ] {
            assert_eq!(escape_invisible(answer), expected);
        }
        assert_eq!(binary("//5zAHUA"), r"\xff\xfes\x00u\x00");
        assert_eq!(start(&"ä".repeat(SHOWN)), "ä".repeat(SHOWN));
        assert_eq!(start(&"ä".repeat(SHOWN + 1)), format!("{}…", "ä".repeat(SHOWN)));
    }

    #[test]
    fn an_unexpected_body_is_shown_beside_its_status() {
        for (status, error, expected) in [
            (Some(503), None, "503"),
            (Some(200), Some("unexpected body"), "200 unexpected body"),
            (None, Some("timeout"), "timeout"),
            (None, None, "failed"),
        ] {
            assert_eq!(result(status, error), expected);
        }
    }
}
