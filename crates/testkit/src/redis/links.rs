//! The connections of other servers, and of programs with the same library, to a server: they go through proxies, so
//! that some can be held and others not.

use std::net::IpAddr;

use super::RedisServer;
use crate::preload::Seen;
use crate::proxy::{Proxy, ProxyMode};

impl RedisServer {
    /// One for each port that others connect to.
    pub(super) fn start_proxies(&mut self) {
        let Some(preload) = &self.options.preload else { return };
        for port in [Some(self.port), self.options.bus].into_iter().flatten() {
            let proxy = Proxy::start(port);
            preload.lead(port, proxy.port());
            self.proxies.push(proxy);
        }
    }

    /// What it sees of the world, if it is [behind proxies](super::RedisOptions::behind_proxies).
    pub fn seen(&self) -> Option<&Seen> {
        self.seen.as_deref()
    }

    /// The proxies that it is behind: that of its port, and that of its cluster bus.
    pub fn proxies(&self) -> &[Proxy] {
        &self.proxies
    }

    /// Holds what is sent between it and the programs at some addresses, over connections that they have made or will
    /// make, until the connections are [healed](Self::heal_links).
    pub fn hold_links(&self, from: &[IpAddr]) {
        self.proxies.iter().for_each(|proxy| proxy.fail_from(Some(from), ProxyMode::Hold));
    }

    /// Passes on what was held.
    pub fn heal_links(&self) {
        self.proxies.iter().for_each(Proxy::heal);
    }
}
