//! How a run of the command line ends: its exit code, and the error message on standard error with the wrong fields,
//! the allowed values and the next step.

use std::fmt::Write as _;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use clap::Command;
use ringback_service::{USAGE, flags};
use ringback_wire::Problem;

use crate::args::Format;
use crate::client::ClientError;
use crate::output::{Colour, OutputClosed, note};

/// The exit code when the API refuses.
const REFUSED: u8 = 1;
/// The exit code when the command could not be carried out.
const FAILED: u8 = 2;

/// The result of a command that could be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandOutcome {
    Done,
    /// The answer is no, or some of it was refused; that has been printed.
    No,
}

impl From<CommandOutcome> for ExitCode {
    fn from(outcome: CommandOutcome) -> Self {
        match outcome {
            CommandOutcome::Done => Self::SUCCESS,
            CommandOutcome::No => Self::from(REFUSED),
        }
    }
}

/// A command that stopped before its end, and the next step.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub(crate) struct Unfinished {
    pub(crate) what: String,
    pub(crate) next: String,
}

/// Prints the help that was requested, with exit code 0, or an error of the command line, with 64.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    flags::print_usage(error);
    if error.exit_code() == 0 { ExitCode::SUCCESS } else { ExitCode::from(USAGE) }
}

/// Prints an error of a command and returns the exit code: 1 if the API has refused, 64 for a usage error, which is
/// printed with the usage of the command, else 2. A standard output that was closed is no error: 0.
pub(crate) fn report(error: anyhow::Error, format: Format, command: &mut Command) -> ExitCode {
    if error.is::<OutputClosed>() {
        return ExitCode::SUCCESS;
    }
    let error = match error.downcast::<clap::Error>() {
        Ok(error) => return usage(&error.format(command)),
        Err(error) => error,
    };
    let colour = Colour::of_stderr();
    match error.downcast_ref::<ClientError>() {
        Some(ClientError::Problem { problem, .. }) if format == Format::Json => {
            note(&serde_json::to_string(problem).expect("plain data always serialises"));
        }
        _ => note(message(&error, colour).trim_end()),
    }
    ExitCode::from(code(&error))
}

fn code(error: &anyhow::Error) -> u8 {
    if error.downcast_ref().is_some_and(is_refused) { REFUSED } else { FAILED }
}

/// Whether the API has refused a request for its content or the state of its subject, and nothing has failed.
pub(crate) fn is_refused(error: &ClientError) -> bool {
    matches!(error, ClientError::Problem { problem, .. } if matches!(problem.status, 400 | 404 | 409 | 413 | 422))
}

fn message(error: &anyhow::Error, colour: Colour) -> String {
    let red = AnsiColor::Red.on_default().bold();
    let mut text = format!("{} {error:#}\n", colour.paint("error:", red));
    if let Some(ClientError::Problem { problem, .. }) = error.downcast_ref() {
        text += &fields(problem);
    }
    if let Some(next) = next(error) {
        let _ = writeln!(text, "{} {next}", colour.paint("next:", Style::new().bold()));
    }
    text
}

/// The next step after an `error` has stopped a command that can be run again.
pub(crate) fn again(error: &anyhow::Error, command: &str, done: &str) -> String {
    match error.downcast_ref() {
        Some(ClientError::Problem { problem, .. }) if matches!(problem.status, 401 | 403) => {
            format!("set RINGBACK_KEY to a key that allows this, and run the same {command} again")
        }
        _ => format!("run the same {command} again: {done} before counts as repeated"),
    }
}

/// The wrong fields of a problem, one per line.
pub(crate) fn fields(problem: &Problem) -> String {
    let mut text = String::new();
    for error in &problem.errors {
        let _ = writeln!(text, "  {}: {}; allowed: {}", error.field, error.detail, error.allowed);
    }
    text
}

/// The next step for the user; `None` if there is no advice.
fn next(error: &anyhow::Error) -> Option<String> {
    if let Some(unfinished) = error.downcast_ref::<Unfinished>() {
        return Some(unfinished.next.clone());
    }
    let text = match error.downcast_ref::<ClientError>()? {
        ClientError::Unreachable { .. } => {
            "start a server there, or name another with --server or RINGBACK_URL"
        }
        ClientError::TimedOut { .. } | ClientError::CutOff { .. } => {
            "run the same command again; `ringback help submit` says when a submit is safe to repeat"
        }
        ClientError::NotRingback { .. } => "check --server or RINGBACK_URL, which must be the URL of the API",
        ClientError::Unsupported { .. } => {
            "check that the server has the same version as `ringback --version`"
        }
        ClientError::Unreadable(_) => return None,
        ClientError::Problem { problem, .. } => match problem.status {
            401 => "set RINGBACK_KEY to a key of this installation",
            422 | 400 => "correct it and run the command again",
            503 => "wait a moment and run the same command again",
            _ => return None,
        },
    };
    Some(text.to_owned())
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use ringback_wire::FieldError;

    use super::*;

    fn problem(status: u16) -> Problem {
        Problem::new(StatusCode::from_u16(status).unwrap(), "the detail")
    }

    fn error(problem: Problem) -> anyhow::Error {
        ClientError::Problem { problem: Box::new(problem), retry_after: None }.into()
    }

    #[test]
    fn a_refusal_is_1_and_a_failure_is_2() {
        for (status, expected) in
            [(404, 1), (409, 1), (422, 1), (413, 1), (405, 2), (415, 2), (500, 2), (503, 2)]
        {
            assert_eq!(code(&error(problem(status))), expected, "{status}");
        }
        assert_eq!(code(&anyhow::anyhow!("no such file")), 2);
    }

    #[test]
    fn each_wrong_field_has_a_line_of_its_own() {
        let errors = ["topic", "retry.delays"].map(|field| FieldError {
            field: field.to_owned(),
            detail: "is wrong".to_owned(),
            allowed: "something else".to_owned(),
        });
        let text = message(&error(Problem { errors: errors.to_vec(), ..problem(422) }), Colour::No);
        let expected = "error: 422 Unprocessable Entity: the detail\n\
            \x20 topic: is wrong; allowed: something else\n\
            \x20 retry.delays: is wrong; allowed: something else\n\
            next: correct it and run the command again\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn causes_are_printed_in_one_line() {
        let error = anyhow::anyhow!("no such file").context("jobs.ndjson");
        assert_eq!(message(&error, Colour::No), "error: jobs.ndjson: no such file\n");
    }
}
