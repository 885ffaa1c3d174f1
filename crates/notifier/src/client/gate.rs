//! The address guard at the place where connections are made: what the rules forbid, what this process listens on, and
//! the store. Where jobs are older than the guard, what it forbids is counted and logged, and the connection is made.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use http::Uri;
use ringback_egress::{Forbidden, Guard};
use ringback_store::Store;

use super::error::PostError;
use super::resolver::Resolver;
use crate::metrics::Metrics;

/// Judges where connections go.
pub(super) struct Gate {
    guard: Guard,
    listeners: Vec<SocketAddr>,
    store: Store,
    metrics: Metrics,
}

impl Gate {
    pub(super) const fn new(
        guard: Guard,
        listeners: Vec<SocketAddr>,
        store: Store,
        metrics: Metrics,
    ) -> Self {
        Self { guard, listeners, store, metrics }
    }

    /// Judges what a URL says by itself, before its name is looked up.
    pub(super) fn judge_url(&self, uri: &Uri) -> Result<(), PostError> {
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(PostError::Broken);
        };
        self.enforce(self.guard.judge_origin(&format!("{scheme}://{authority}")), uri)
    }

    /// Judges the addresses that a connection may be made to.
    pub(super) async fn judge_addresses(
        &self,
        uri: &Uri,
        addresses: &[IpAddr],
        port: u16,
        resolver: &Resolver,
    ) -> Result<(), PostError> {
        self.enforce(self.guard.judge_addresses(addresses, port), uri)?;
        let own = self.own(addresses, port, resolver).await?;
        self.enforce(own.map_or(Ok(()), |own| Err(Forbidden::Own(own))), uri)
    }

    /// Refuses what is forbidden, or counts it.
    fn enforce(&self, judged: Result<(), Forbidden>, uri: &Uri) -> Result<(), PostError> {
        let Err(why) = judged else { return Ok(()) };
        self.metrics.forbidden.add(1, &[]);
        let host = uri.host();
        if self.guard.is_enforced(self.store.is_guarded()) {
            tracing::info!(host, %why, "the address guard forbids a destination");
            return Err(PostError::Forbidden);
        }
        tracing::warn!(
            host,
            %why,
            "the address guard would forbid a destination; it only counts until one of RINGBACK_EGRESS_ALLOW, RINGBACK_EGRESS_DENY, RINGBACK_EGRESS_HOSTS and RINGBACK_EGRESS_PORTS is set, because the store has jobs from before the guard"
        );
        Ok(())
    }

    /// The first of these addresses that is one of this process or of the store.
    async fn own(
        &self,
        addresses: &[IpAddr],
        port: u16,
        resolver: &Resolver,
    ) -> Result<Option<SocketAddr>, PostError> {
        let mut of_store = Vec::new();
        for (host, _) in self.store.addresses().into_iter().filter(|(_, own)| *own == port) {
            match host.trim_start_matches('[').trim_end_matches(']').parse() {
                Ok(address) => of_store.push(address),
                // What cannot be told apart from the store is tried again later.
                Err(_) => of_store.extend(resolver.addresses(&host).await?),
            }
        }
        let is_own = |address: IpAddr| {
            let address = reached(address);
            of_store.iter().any(|own| reached(*own) == address)
                || self.listeners.iter().any(|own| own.port() == port && listens_at(own.ip(), address))
        };
        let own = addresses.iter().find(|address| is_own(**address));
        Ok(own.map(|address| SocketAddr::new(*address, port)))
    }
}

/// The address that answers to connections to this one.
fn reached(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) if address.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        address => address,
    }
}

/// Whether who listens on `own` is reached at `address`.
fn listens_at(own: IpAddr, address: IpAddr) -> bool {
    if own.is_unspecified() { is_of_this_machine(address) } else { reached(own) == address }
}

/// Only an address of this machine can be bound.
fn is_of_this_machine(address: IpAddr) -> bool {
    UdpSocket::bind(SocketAddr::new(address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_listens_is_reached_at_all_names_of_its_address() {
        for (own, address, expected) in [
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "0.0.0.0", true),
            ("127.0.0.1", "::ffff:127.0.0.1", true),
            ("127.0.0.1", "127.0.0.2", false),
            ("::1", "::", true),
            ("::1", "127.0.0.1", false),
            ("0.0.0.0", "127.0.0.1", true),
            ("0.0.0.0", "127.9.9.9", true),
            ("::", "127.0.0.1", true),
            ("0.0.0.0", "192.0.2.1", false),
            ("::", "192.0.2.1", false),
        ] {
            let [own, address] = [own, address].map(|text| text.parse::<IpAddr>().unwrap());
            assert_eq!(listens_at(own, reached(address)), expected, "{own} at {address}");
        }
    }
}
