//! Finds the addresses of a receiver's name: in the hosts file, else by the name servers of the system or of the
//! configuration. Answers are kept as long as they say, five minutes at most, and that there is none for ten
//! seconds at most. Attempts that wait for the same question share it, which the library sees to, and none is asked for
//! longer than one of them waits.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hickory_resolver::config::{
    LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::lookup_ip::LookupIp;
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::op::Query;
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::system_conf::read_system_conf;
use hickory_resolver::{Hosts, TokioResolver};

use super::error::{PostError, is_out_of_resources};

/// How long addresses are kept at most.
const KEPT: Duration = Duration::from_secs(300);
/// How long it is kept at most that a name has none.
const KEPT_NONE: Duration = Duration::from_secs(10);
/// How many answers are kept.
const ANSWERS: u64 = 16_384;

/// Looks up names.
pub(super) struct Resolver {
    hosts: Hosts,
    servers: TokioResolver,
    /// How many names were looked up.
    lookups: AtomicUsize,
}

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
        // A name in the file has the addresses there and no others; the library would ask for the other family.
        options.use_hosts_file = ResolveHosts::Never;
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        options.cache_size = ANSWERS;
        options.positive_max_ttl = Some(KEPT);
        options.negative_max_ttl = Some(KEPT_NONE);
        let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        *builder.options_mut() = options;
        let hosts = Hosts::from_system().unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot read /etc/hosts; its names are looked up at name servers");
            Hosts::default()
        });
        Ok(Self { hosts, servers: builder.build()?, lookups: AtomicUsize::new(0) })
    }

    /// The addresses of a name, another one first each time, so that not all connections go to one of them.
    pub(super) async fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, PostError> {
        // A host of a URL is in ASCII, and may have underscores.
        let name = Name::from_ascii(name).map_err(|_| PostError::Dns)?;
        let mut addresses = self.in_file(&name);
        if addresses.is_empty() {
            let found = self.servers.lookup_ip(name).await.map_err(|error| classify(&error))?;
            addresses = found.iter().collect();
        }
        if addresses.is_empty() {
            return Err(PostError::Dns);
        }
        let first = self.lookups.fetch_add(1, Ordering::Relaxed) % addresses.len();
        addresses.rotate_left(first);
        Ok(addresses)
    }

    fn in_file(&self, name: &Name) -> Vec<IpAddr> {
        let of = |kind| self.hosts.lookup_static_host(&Query::query(name.clone(), kind));
        let found = [RecordType::A, RecordType::AAAA].into_iter().filter_map(of);
        found.flat_map(|lookup| LookupIp::from(lookup).iter().collect::<Vec<_>>()).collect()
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
