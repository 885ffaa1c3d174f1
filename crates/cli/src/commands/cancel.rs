//! `ringback cancel`: cancels a job at once, or as soon as its current delivery has failed.

use http::Method;
use ringback_core::wire::{CancelAnswer, InFlight};

use super::session::Session;
use crate::args::JobArgs;
use crate::client::{Call, SHORT};
use crate::failure::Verdict;

pub(crate) async fn run(session: &mut Session, args: &JobArgs) -> anyhow::Result<Verdict> {
    let key = args.key()?;
    let body = session.client.ask(Call::job(Method::DELETE, &key, &[]), SHORT).await?.body;
    session.print(&body, |answer: &CancelAnswer, _| format!("{key} {}\n", sentence(answer)))
}

fn sentence(answer: &CancelAnswer) -> &'static str {
    let cancelled = answer.state == "cancelled";
    match (cancelled, &answer.in_flight) {
        (true, None) => "is cancelled",
        (true, Some(_)) => "is cancelled; a delivery began before and may still be in flight",
        (false, Some(InFlight::Unknown(_))) => {
            "may be in delivery: it will be cancelled unless the delivery succeeds"
        }
        (false, _) => "is in delivery: it will be cancelled unless the delivery succeeds",
    }
}
