//! `Gate`: refuses connections to addresses that the rules of the address guard forbid, on which this process listens,
//! or that are those of the store. Counts and logs what it refuses.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use http::Uri;
use nix::ifaddrs::{InterfaceAddress, getifaddrs};
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

    /// Judges the scheme and the host of a URL, before its name is looked up. [`PostError::Forbidden`], which is
    /// counted and logged, if the guard forbids them; `Broken` if one is missing.
    pub(super) fn judge_url(&self, uri: &Uri) -> Result<(), PostError> {
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(PostError::Broken);
        };
        let judged = self.guard.judge_origin(&format!("{scheme}://{authority}"));
        judged.map_err(|why| self.refuse(&why, uri))
    }

    pub(super) fn judge_addresses(
        &self,
        uri: &Uri,
        addresses: &[IpAddr],
        port: u16,
    ) -> Result<(), PostError> {
        self.guard.judge_addresses(addresses, port).map_err(|why| self.refuse(&why, uri))
    }

    /// Refuses addresses at which this process or the store listens, whatever the rules allow. Fails with another error
    /// if the store's own name cannot be looked up, or this machine is out of resources.
    pub(super) async fn refuse_own(
        &self,
        uri: &Uri,
        addresses: &[IpAddr],
        port: u16,
        resolver: &Resolver,
    ) -> Result<(), PostError> {
        match self.own(addresses, port, resolver).await? {
            None => Ok(()),
            Some(own) => Err(self.refuse(&Forbidden::Own(own), uri)),
        }
    }

    fn refuse(&self, why: &Forbidden, uri: &Uri) -> PostError {
        self.metrics.forbidden.add(1, &[]);
        tracing::info!(host = uri.host(), %why, "the address guard forbids a destination");
        PostError::Forbidden
    }

    /// The first of these addresses at which this process or the store listens; `None` if there is none.
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
                // If the store's name cannot be looked up, this attempt fails, and is retried like any other.
                Err(_) => of_store.extend(resolver.find_all(&host).await?),
            }
        }
        let is_own = |address: IpAddr| -> io::Result<bool> {
            let address = reached(address);
            if of_store.iter().any(|own| reached(*own) == address) {
                return Ok(true);
            }
            let mut listeners = self.listeners.iter().filter(|own| own.port() == port);
            listeners.try_fold(false, |is_own, own| Ok(is_own || listens_at(own.ip(), address)?))
        };
        for address in addresses {
            // Only a shortage of this machine keeps it from knowing its own addresses.
            if is_own(*address).map_err(|_| PostError::Local)? {
                return Ok(Some(SocketAddr::new(*address, port)));
            }
        }
        Ok(None)
    }
}

/// The address that is reached by a connection to this one: loopback for an unspecified address.
fn reached(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) if address.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(address) if address.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        address => address,
    }
}

/// Whether a listener on `own` is reached at `address`. Fails if this machine's own addresses cannot be read.
fn listens_at(own: IpAddr, address: IpAddr) -> io::Result<bool> {
    if own.is_unspecified() { is_of_this_machine(address) } else { Ok(reached(own) == address) }
}

fn is_of_this_machine(address: IpAddr) -> io::Result<bool> {
    if address.is_loopback() {
        return Ok(true);
    }
    let is_here = |interface: InterfaceAddress| {
        let socket = interface.address?;
        let v4 = socket.as_sockaddr_in().map(|socket| IpAddr::V4(socket.ip()));
        let v6 = || socket.as_sockaddr_in6().map(|socket| IpAddr::V6(socket.ip()));
        v4.or_else(v6).filter(|own| *own == address)
    };
    Ok(getifaddrs()?.find_map(is_here).is_some())
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
            assert_eq!(listens_at(own, reached(address)).unwrap(), expected, "{own} at {address}");
        }
    }
}
