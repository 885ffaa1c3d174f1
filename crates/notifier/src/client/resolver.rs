//! Finds the addresses of a receiver's name: by the hosts file and name servers of the system, or by name servers of
//! the configuration. Answers are kept as long as they say, five minutes at most, and that there is none for ten
//! seconds at most. Attempts that wait for the same question share it, which the library sees to, and none is asked for
//! longer than one of them waits.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{LookupIpStrategy, NameServerConfig, ResolverConfig, ResolverOpts};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::system_conf::read_system_conf;

use super::error::{PostError, is_out_of_resources};

/// How long addresses are kept at most.
const KEPT: Duration = Duration::from_secs(300);
/// How long it is kept at most that a name has none.
const KEPT_NONE: Duration = Duration::from_secs(10);
/// How many answers are kept.
const ANSWERS: u64 = 16_384;

/// Looks up names.
pub(super) struct Resolver(TokioResolver);

impl Resolver {
    /// With these name servers, or with the system's if there are none.
    pub(super) fn new(servers: &[SocketAddr]) -> anyhow::Result<Self> {
        let (config, mut options) = match servers {
            [] => read_system_conf().unwrap_or_else(|error| {
                tracing::warn!(%error, "cannot read /etc/resolv.conf; names are looked up at 127.0.0.1:53");
                let local = NameServerConfig::udp_and_tcp(Ipv4Addr::LOCALHOST.into());
                (ResolverConfig::from_name_servers(vec![local]), ResolverOpts::default())
            }),
            servers => {
                let servers = servers.iter().map(name_server).collect();
                (ResolverConfig::from_name_servers(servers), ResolverOpts::default())
            }
        };
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        options.cache_size = ANSWERS;
        options.positive_max_ttl = Some(KEPT);
        options.negative_max_ttl = Some(KEPT_NONE);
        let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        *builder.options_mut() = options;
        Ok(Self(builder.build()?))
    }

    /// The addresses of a name.
    pub(super) async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, PostError> {
        let found = self.0.lookup_ip(name).await.map_err(|error| classify(&error))?;
        let addresses: Vec<_> = found.iter().collect();
        if addresses.is_empty() { Err(PostError::Dns) } else { Ok(addresses) }
    }
}

fn name_server(address: &SocketAddr) -> NameServerConfig {
    let mut server = NameServerConfig::udp_and_tcp(address.ip());
    server.connections.iter_mut().for_each(|connection| connection.port = address.port());
    server
}

fn classify(error: &NetError) -> PostError {
    match error {
        NetError::Io(error) if is_out_of_resources(error) => PostError::Local,
        _ => PostError::Dns,
    }
}
