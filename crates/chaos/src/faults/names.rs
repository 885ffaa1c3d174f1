//! Faults of name look-ups, of receivers for all processes or of the store for one: they fail, hang or take long.

use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use ringback_testkit::LookUp;
use tokio::time::sleep;

use super::RunningFault;
use crate::fault::Kind;
use crate::installation::Installation;

pub(super) async fn make(installation: &Installation, rng: &mut StdRng) {
    let members = &installation.members;
    let look_up = match rng.random_range(0..3) {
        0 => LookUp::Unknown,
        1 => LookUp::Silent,
        _ => LookUp::Slow(Duration::from_millis(rng.random_range(50..1_500))),
    };
    let (one, of_store) = (&members[rng.random_range(0..members.len())], rng.random_range(0..2) == 0);
    let names = Kind::SilentNames;
    let begun = RunningFault::new(&installation.history, names.name(), names.class(), None);
    match &one.proxy {
        Some(proxy) if of_store => {
            one.seen.iter().for_each(|seen| seen.set_names(look_up));
            // The process has to look up the name again.
            proxy.cut();
        }
        _ => installation.world.set_receivers(look_up),
    }
    sleep(Duration::from_millis(rng.random_range(300..3_000))).await;
    members.iter().filter_map(|member| member.seen.as_ref()).for_each(|seen| seen.set_names(LookUp::Found));
    installation.world.set_receivers(LookUp::Found);
    begun.healed();
}
