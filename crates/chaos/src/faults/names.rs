//! Makes lookups of host names fail, hang or take long: those of receivers for all processes, or that of the store for
//! one.

use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use ringback_testkit::{LookUp, NamesOf, Seen};
use tokio::time::sleep;

use super::Begun;
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
    let begun = Begun::new(&installation.history, names.name(), names.class(), None);
    match &one.proxy {
        Some(proxy) if of_store => {
            set(one.seen.as_ref(), NamesOf::Stores, look_up);
            // It has to look the name up again.
            proxy.cut();
        }
        _ => members.iter().for_each(|member| set(member.seen.as_ref(), NamesOf::Receivers, look_up)),
    }
    sleep(Duration::from_millis(rng.random_range(300..3_000))).await;
    for member in members {
        set(member.seen.as_ref(), NamesOf::Stores, LookUp::Found);
        set(member.seen.as_ref(), NamesOf::Receivers, LookUp::Found);
    }
    begun.healed();
}

fn set(seen: Option<&Seen>, names: NamesOf, look_up: LookUp) {
    if let Some(seen) = seen {
        seen.set_names(names, look_up);
    }
}
