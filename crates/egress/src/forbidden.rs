//! [`Forbidden`]: why a callback may not go somewhere, and what is allowed instead.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;

/// Why a callback may not go somewhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Forbidden {
    /// The address is not public.
    #[error("{address} is not a public address: {purpose}")]
    Address {
        address: IpAddr,
        /// What it is for, and the RFC that says so.
        purpose: &'static str,
    },
    /// The address is in a network of `RINGBACK_EGRESS_DENY`.
    #[error("{address} is in {network}, which RINGBACK_EGRESS_DENY has")]
    Denied { address: IpAddr, network: IpNet },
    /// The name is not one of the public DNS.
    #[error("{0} is not a name of the public DNS")]
    Name(String),
    /// The port is not open to callbacks.
    #[error("port {0} is not one that callbacks may go to")]
    Port(u16),
    /// The process that delivers, or a server of its store, listens there.
    #[error("{0} is where this process of Ringback or its store listens")]
    Own(SocketAddr),
}

impl Forbidden {
    /// What an error message says is allowed, and which setting allows more.
    #[must_use]
    pub fn allowed(&self) -> &'static str {
        match self {
            Self::Address { .. } => {
                "public addresses, and those in the networks of RINGBACK_EGRESS_ALLOW, such as 127.0.0.0/8"
            }
            Self::Denied { .. } => "addresses that RINGBACK_EGRESS_DENY does not have",
            Self::Name(name) if name == "localhost" => {
                "names of the public DNS; receivers on this machine with both RINGBACK_EGRESS_HOSTS=localhost and RINGBACK_EGRESS_ALLOW=127.0.0.0/8,::1"
            }
            Self::Name(_) => {
                "names with a dot that are not of localhost, .local, .internal, .home.arpa or .onion, and those of RINGBACK_EGRESS_HOSTS"
            }
            Self::Port(_) => {
                "the ports of RINGBACK_EGRESS_PORTS; if it is not set: 80, 443 and those from 1024, but not those of well-known databases and control planes"
            }
            Self::Own(_) => "receivers other than this process and its store",
        }
    }
}
