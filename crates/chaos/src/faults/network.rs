//! Faults of connections from one process, a role or all processes to one server or sentinel of the store, or to all.

use std::net::IpAddr;
use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use ringback_testkit::{Proxy, ProxyMode};
use tokio::time::sleep;

use super::{RunningFault, master};
use crate::fault::Kind;
use crate::installation::{Installation, Member};
use crate::store_servers::Group;

/// A proxy, and the addresses whose connections fail; `None` for all.
struct Way<'a> {
    proxy: &'a Proxy,
    from: Option<Vec<IpAddr>>,
}

impl Way<'_> {
    /// Sets the mode of the existing connections.
    fn change(&self, mode: ProxyMode) {
        self.proxy.change(self.from.as_deref(), mode);
    }

    /// Sets the mode of existing and new connections.
    fn fail(&self, mode: ProxyMode) {
        self.proxy.fail_from(self.from.as_deref(), mode);
    }
}

pub(super) async fn make(installation: &Installation, kind: Kind, rng: &mut StdRng) {
    let group = match &installation.group {
        Some(group) => Some(group.lock().await),
        None => None,
    };
    let members = members(installation, rng);
    let ways: Vec<_> = match group.as_deref() {
        Some(group) => to_servers(group, &members, rng).await,
        None => members
            .iter()
            .filter_map(|member| Some(Way { proxy: member.proxy.as_ref()?, from: None }))
            .collect(),
    };
    if ways.is_empty() {
        return;
    }
    let is_first = rng.random_range(0..2) == 0;
    let mode = match kind {
        Kind::Cut => ProxyMode::Cut,
        Kind::Swallow | Kind::Blackhole => ProxyMode::Swallow,
        Kind::Delay => ProxyMode::Delay(Duration::from_millis(rng.random_range(20..300))),
        Kind::HalfClose => ProxyMode::HalfClose,
        Kind::OneWay if is_first => ProxyMode::SwallowRequests,
        Kind::OneWay => ProxyMode::SwallowReplies,
        Kind::Hold => ProxyMode::Hold,
        _ => ProxyMode::CutReplies,
    };
    let length = match kind {
        Kind::Cut => Duration::ZERO,
        _ => Duration::from_millis(rng.random_range(200..2_500)),
    };
    let begun = RunningFault::new(&installation.history, kind.name(), kind.class(), None);
    for way in &ways {
        match kind {
            Kind::Cut | Kind::Swallow => way.change(mode),
            _ => way.fail(mode),
        }
    }
    sleep(length).await;
    ways.iter().for_each(|way| way.proxy.heal());
    begun.healed();
}

/// All processes, those of one role, or one process, at random.
fn members<'a>(installation: &'a Installation, rng: &mut StdRng) -> Vec<&'a Member> {
    let all = &installation.members;
    let one = &all[rng.random_range(0..all.len())];
    match rng.random_range(0..4) {
        0 => all.iter().collect(),
        1 => all.iter().filter(|member| member.role == one.role).collect(),
        _ => vec![one],
    }
}

/// The ways from processes to a master, to any one server or sentinel, or to all of them, at random.
async fn to_servers<'a>(group: &'a Group, members: &[&Member], rng: &mut StdRng) -> Vec<Way<'a>> {
    let from: Vec<_> = members.iter().filter_map(|member| Some(member.seen.as_ref()?.address())).collect();
    let (masters, all) = (master::masters(group).await, group.all());
    let (master, one) = (masters[rng.random_range(0..masters.len())], rng.random_range(0..all.len()));
    let servers = match rng.random_range(0..3) {
        0 => all,
        1 => vec![&group.servers()[master]],
        _ => vec![all[one]],
    };
    let proxies = servers.into_iter().flat_map(|server| server.proxies());
    proxies.map(|proxy| Way { proxy, from: Some(from.clone()) }).collect()
}
