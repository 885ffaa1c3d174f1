//! Connections of servers and preloaded programs to a server, through proxies that can hold those of chosen addresses.

use std::net::IpAddr;

use super::RedisServer;
use crate::preload::Seen;
use crate::proxy::{Proxy, ProxyMode};

impl RedisServer {
    /// Starts a proxy for the port and, in a cluster, the bus port, and leads connections to it. Does nothing without
    /// [`RedisOptions::behind_proxies`](super::RedisOptions::behind_proxies).
    pub(super) fn start_proxies(&mut self) {
        let Some(preload) = &self.options.preload else { return };
        for port in [Some(self.port), self.options.bus].into_iter().flatten() {
            let proxy = Proxy::start(port);
            preload.lead(port, proxy.port());
            self.proxies.push(proxy);
        }
    }

    /// The server's clock, names and address; `None` unless it is [behind proxies](super::RedisOptions::behind_proxies).
    pub fn seen(&self) -> Option<&Seen> {
        self.seen.as_deref()
    }

    /// The proxies in front of the server's port and of its cluster bus; empty without proxies.
    pub fn proxies(&self) -> &[Proxy] {
        &self.proxies
    }

    /// Holds what passes between the server and programs at some addresses, on existing and new connections, until
    /// [`Self::heal_links`].
    pub fn hold_links(&self, from: &[IpAddr]) {
        self.proxies.iter().for_each(|proxy| proxy.fail_from(Some(from), ProxyMode::Hold));
    }

    /// Passes on what was held.
    pub fn heal_links(&self) {
        self.proxies.iter().for_each(Proxy::heal);
    }
}
