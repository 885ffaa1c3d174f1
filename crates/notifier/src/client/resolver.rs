//! Looks up the addresses of a receiver's name: in the hosts file, else at the name servers of the system or of the
//! configuration. Answers are cached by their TTL, for five minutes at most, and the absence of addresses for ten
//! seconds at most. Attempts that wait for the same answer share the query, by the library. The two families are
//! queried apart, so that a name server that is silent or fails for one does not hold up the other.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, select};
use hickory_resolver::config::{NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::op::Query;
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::system_conf::read_system_conf;
use hickory_resolver::{Hosts, TokioResolver};
use tokio::time::timeout;

use super::error::{PostError, is_out_of_resources};

/// How long addresses are kept at most.
const KEPT: Duration = Duration::from_secs(300);
/// How long it is kept at most that a name has none.
const KEPT_NONE: Duration = Duration::from_secs(10);
/// How many answers are kept.
const ANSWERS: u64 = 16_384;
/// How long the addresses of one family wait for those of the other (RFC 8305, section 3).
const RESOLUTION_DELAY: Duration = Duration::from_millis(50);

/// Looks up names.
pub(super) struct Resolver {
    hosts: Hosts,
    servers: TokioResolver,
    search: Search,
    /// How many names were looked up.
    lookups: AtomicUsize,
}

/// The addresses of a name.
pub(super) struct Resolution<'a> {
    pub(super) addresses: Vec<IpAddr>,
    /// The addresses of the other family, if a name server has still not answered.
    pub(super) later: Option<Addresses<'a>>,
}

/// The pending addresses of one family: at least one, or why there is none.
pub(super) type Addresses<'a> = BoxFuture<'a, Result<Vec<IpAddr>, PostError>>;

impl Resolver {
    /// A resolver with these name servers, or with the system's if there are none. Files of the system that cannot be
    /// read are logged and replaced by defaults. Fails if the resolver of the library cannot be built.
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
        options.cache_size = ANSWERS;
        options.positive_max_ttl = Some(KEPT);
        options.negative_max_ttl = Some(KEPT_NONE);
        let search = Search::new(&config, options.ndots);
        let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        *builder.options_mut() = options;
        let hosts = Hosts::from_system().unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot read /etc/hosts; its names are looked up at name servers");
            Hosts::default()
        });
        Ok(Self { hosts, servers: builder.build()?, search, lookups: AtomicUsize::new(0) })
    }

    /// Looks up the addresses of a name, of which there is at least one. They are rotated with each call, so that not
    /// all connections go to the same one. [`PostError::Dns`] if there is none, `Local` if this machine is out of
    /// resources.
    pub(super) async fn find(&self, name: &str) -> Result<Resolution<'_>, PostError> {
        // A host of a URL is in ASCII, and may have underscores.
        let name = Name::from_ascii(name).map_err(|_| PostError::Dns)?;
        let in_file = self.in_file(&name);
        let mut found = match in_file.is_empty() {
            true => self.ask(&name).await?,
            false => Resolution { addresses: in_file, later: None },
        };
        let first = self.lookups.fetch_add(1, Ordering::Relaxed) % found.addresses.len();
        found.addresses.rotate_left(first);
        Ok(found)
    }

    /// Like [`Self::find`], but waits for both families.
    pub(super) async fn find_all(&self, name: &str) -> Result<Vec<IpAddr>, PostError> {
        let Resolution { mut addresses, later } = self.find(name).await?;
        if let Some(later) = later {
            addresses.extend(later.await.unwrap_or_default());
        }
        Ok(addresses)
    }

    fn in_file(&self, name: &Name) -> Vec<IpAddr> {
        let of = |kind| self.hosts.lookup_static_host(&Query::query(name.clone(), kind));
        let found = [RecordType::A, RecordType::AAAA].into_iter().filter_map(of);
        let addresses = found.map(|lookup| {
            lookup.answers().iter().filter_map(|record| record.data.ip_addr()).collect::<Vec<_>>()
        });
        addresses.flatten().collect()
    }

    /// Queries a name as it is and with each domain of the search list, until one has addresses.
    async fn ask(&self, name: &Name) -> Result<Resolution<'_>, PostError> {
        let mut failed = PostError::Dns;
        for name in self.search.names(name) {
            match self.ask_both(&name).await {
                Ok(found) => return Ok(found),
                Err(error) => failed = worse(failed, error),
            }
        }
        Err(failed)
    }

    /// Queries both families of a name. Once one has addresses, waits 50 ms for the other, which then comes later.
    async fn ask_both(&self, name: &Name) -> Result<Resolution<'_>, PostError> {
        let [four, six] = [RecordType::A, RecordType::AAAA].map(|kind| self.ask_for(name.clone(), kind));
        let (first, other) = select(four, six).await.factor_first();
        let mut other = other.into_inner();
        let mut addresses = match first {
            Ok(addresses) => addresses,
            Err(failed) => {
                let addresses = other.await.map_err(|error| worse(failed, error))?;
                return Ok(Resolution { addresses, later: None });
            }
        };
        let later = match timeout(RESOLUTION_DELAY, &mut other).await {
            Ok(others) => {
                addresses.extend(others.unwrap_or_default());
                None
            }
            Err(_elapsed) => Some(other),
        };
        Ok(Resolution { addresses, later })
    }

    fn ask_for(&self, name: Name, kind: RecordType) -> Addresses<'_> {
        async move {
            let found = self.servers.lookup(name, kind).await.map_err(|error| classify(&error))?;
            let addresses: Vec<_> =
                found.answers().iter().filter_map(|record| record.data.ip_addr()).collect();
            if addresses.is_empty() { Err(PostError::Dns) } else { Ok(addresses) }
        }
        .boxed()
    }
}

/// The search list of the system (resolv.conf(5)).
struct Search {
    domains: Vec<Name>,
    /// A name with so many dots is first queried as it is.
    dots: usize,
}

impl Search {
    fn new(config: &ResolverConfig, dots: usize) -> Self {
        let mut domains: Vec<Name> = Vec::new();
        for domain in config.domain().into_iter().chain(config.search()) {
            if !domains.contains(domain) {
                domains.push(domain.clone());
            }
        }
        Self { domains, dots }
    }

    /// The full names to query for a name, in their order.
    fn names(&self, name: &Name) -> Vec<Name> {
        let mut whole = name.clone();
        whole.set_fqdn(true);
        if name.is_fqdn() {
            return vec![whole];
        }
        let below = |domain: &Name| {
            let mut name = name.clone().append_domain(domain).ok()?;
            name.set_fqdn(true);
            Some(name)
        };
        let mut names: Vec<_> = self.domains.iter().filter_map(below).collect();
        let is_first = usize::from(name.num_labels()) > self.dots || name.is_localhost();
        names.insert(if is_first { 0 } else { names.len() }, whole);
        names
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

/// The first of two errors if it is a shortage of this machine, else the second.
fn worse(one: PostError, other: PostError) -> PostError {
    if one == PostError::Local { one } else { other }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_asked_for_as_it_is_and_with_each_domain_of_the_search_list() {
        let name = |text: &str| Name::from_ascii(text).unwrap();
        let domains = vec![name("a.example"), name("b.example.")];
        for (dots, asked, expected) in [
            (1, "shop.example", "shop.example. shop.example.a.example. shop.example.b.example."),
            (1, "shop", "shop.a.example. shop.b.example. shop."),
            (5, "shop.example", "shop.example.a.example. shop.example.b.example. shop.example."),
            (5, "shop.example.", "shop.example."),
            (5, "localhost", "localhost. localhost.a.example. localhost.b.example."),
        ] {
            let names = Search { domains: domains.clone(), dots }.names(&name(asked));
            let expected: Vec<_> = expected.split(' ').map(name).collect();
            assert_eq!(names, expected, "{asked} with ndots {dots}");
        }
    }
}
