//! Finds the addresses of a receiver's name: by the hosts file and name servers of the system, or by name servers of
//! the configuration. Answers are kept as long as they say, five minutes at most, and that there is none for ten
//! seconds at most. A name is looked up once at a time, however many attempts wait for it, and no longer than one
//! of them does.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, WeakShared};
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

/// The addresses of a name, or why there are none.
type Found = Result<Arc<[IpAddr]>, PostError>;
type Lookup = BoxFuture<'static, Found>;

/// Looks up names.
pub(super) struct Resolver {
    resolver: TokioResolver,
    /// What is being looked up.
    lookups: Mutex<HashMap<Box<str>, WeakShared<Lookup>>>,
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
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        options.cache_size = ANSWERS;
        options.positive_max_ttl = Some(KEPT);
        options.negative_max_ttl = Some(KEPT_NONE);
        let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        *builder.options_mut() = options;
        Ok(Self { resolver: builder.build()?, lookups: Mutex::default() })
    }

    /// The addresses of a name.
    pub(super) async fn addresses(&self, name: &str) -> Found {
        let waiting = Waiting { resolver: self, name, lookup: Some(self.lookup(name)) };
        waiting.lookup.clone().expect("it is there until this is dropped").await
    }

    /// The lookup that is under way, or a new one.
    fn lookup(&self, name: &str) -> Shared<Lookup> {
        let mut lookups = self.lookups();
        if let Some(known) = lookups.get(name).and_then(WeakShared::upgrade) {
            return known;
        }
        let (resolver, wanted) = (self.resolver.clone(), name.to_owned());
        let lookup = async move {
            let found = resolver.lookup_ip(&*wanted).await.map_err(|error| classify(&error))?;
            let addresses: Arc<[IpAddr]> = found.iter().collect();
            if addresses.is_empty() { Err(PostError::Dns) } else { Ok(addresses) }
        };
        let lookup = lookup.boxed().shared();
        if let Some(weak) = lookup.downgrade() {
            lookups.insert(name.into(), weak);
        }
        lookup
    }

    fn lookups(&self) -> MutexGuard<'_, HashMap<Box<str>, WeakShared<Lookup>>> {
        self.lookups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An attempt that waits for a lookup. The last one to go ends the lookup and forgets it.
struct Waiting<'a> {
    resolver: &'a Resolver,
    name: &'a str,
    lookup: Option<Shared<Lookup>>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut lookups = self.resolver.lookups();
        drop(self.lookup.take());
        if lookups
            .get(self.name)
            .is_some_and(|weak| weak.upgrade().is_none_or(|known| known.peek().is_some()))
        {
            lookups.remove(self.name);
        }
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
