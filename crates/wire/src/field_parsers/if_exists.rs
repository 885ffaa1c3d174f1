//! The fields `if_exists` and `max_delay`: what a submit does when its topic and id are taken.

use std::time::Duration;

use ringback_core::job::{IfExists, MAX_AHEAD};
use ringback_core::token::Token;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::object::{Fields, Mistakes, read};
use super::values::{duration_within, field};

const MODES: &str = "refuse (the default), replace or postpone";
const MAX_DELAY: &str = "1 ms to 10 years";

/// `refuse`: nothing; the same content again is answered with 200 unless the job was cancelled, other
/// content with 409. `replace`: the submit takes the place of the job, unless that is being delivered.
/// `postpone`: the same, but the job is due no later than `max_delay` after its first submit.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[schema(as = IfExists)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    Refuse,
    Replace,
    Postpone,
}

/// Reads both fields; wrong ones add mistakes. A submit that can change a job gets a token from `make_token`.
pub(crate) fn if_exists(
    fields: &Fields<'_>,
    make_token: &mut dyn FnMut() -> Token,
    mistakes: &mut Mistakes,
) -> IfExists {
    let max_delay = max_delay(fields, mistakes);
    let mode = match field(fields, "if_exists", "is none of them", MODES, mistakes, read) {
        Some(mode) => mode,
        None if fields.get("if_exists").is_none() => Mode::Refuse,
        // Whether the other fields fit is not known then.
        None => return IfExists::Refuse,
    };
    if mode != Mode::Refuse && fields.get("id").is_none() {
        mistakes.add("if_exists", "given without id", "only together with id, by which the job is found");
    }
    if mode != Mode::Postpone && fields.get("max_delay").is_some() {
        mistakes.add("max_delay", "given without postpone", "only together with \"if_exists\":\"postpone\"");
    }
    match mode {
        Mode::Refuse => IfExists::Refuse,
        Mode::Replace => IfExists::Replace { token: make_token() },
        Mode::Postpone => IfExists::Postpone { token: make_token(), max_delay },
    }
}

fn max_delay(fields: &Fields<'_>, mistakes: &mut Mistakes) -> Option<Duration> {
    let range = Duration::from_millis(1)..=MAX_AHEAD;
    duration_within(fields, "max_delay", "is not a longest delay", range, MAX_DELAY, mistakes)
}
