//! `ringback cancel`: at once, or as soon as the hand-over under way has failed.

use http::Method;
use ringback_core::wire::{CancelAnswer, InFlight};

use super::{Session, parse};
use crate::args::{Format, JobArgs};
use crate::client::{Call, SHORT};
use crate::failure::Verdict;

pub(super) async fn run(session: &mut Session, args: &JobArgs) -> anyhow::Result<Verdict> {
    let key = args.key()?;
    let call = Call::new(Method::DELETE, &["v1", "jobs", key.topic.as_str(), key.id.as_str()]);
    let body = session.client.ask(call, SHORT).await?.body;
    match session.out.format {
        Format::Json => session.json(&body)?,
        Format::Table => {
            let answer = parse::<CancelAnswer>(&body)?;
            session.out.line(format!("{key} {}", sentence(&answer)))?;
        }
    }
    Ok(Verdict::Done)
}

fn sentence(answer: &CancelAnswer) -> &'static str {
    let cancelled = answer.state == "cancelled";
    match (cancelled, &answer.in_flight) {
        (true, None) => "is cancelled",
        (true, Some(_)) => "is cancelled; a hand-over was begun before and may still be under way",
        (false, Some(InFlight::Unknown(_))) => {
            "may be being handed over: it will be cancelled unless that succeeds"
        }
        (false, _) => "is being handed over: it will be cancelled unless that succeeds",
    }
}
