//! URLs of stores on Redis, and the settings of the sockets.

use std::time::Duration;

use redis::io::tcp::TcpSettings;
use redis::io::tcp::socket2::TcpKeepalive;
use redis::{ConnectionInfo, IntoConnectionInfo, RedisError};

/// How long sent data may stay unacknowledged before the connection counts as broken.
const UNACKNOWLEDGED: Duration = Duration::from_secs(5);
/// How long a connection may be silent before it is probed. After two more unanswered probes it counts as
/// broken.
const PROBE_AFTER: Duration = Duration::from_secs(5);

/// A store's URL, parsed.
pub enum Address {
    Single(Box<ConnectionInfo>),
    Cluster(Vec<ConnectionInfo>),
}

impl Address {
    /// Parses a store's URL; the error says what is allowed.
    pub fn parse(url: &str) -> Result<Self, String> {
        const ALLOWED: &str = "redis://host:port, rediss://host:port, redis-cluster://host:port,host:port,... or embedded:directory";
        let wrong = |e: RedisError| format!("not a store's URL ({e}); allowed are {ALLOWED}");
        match url.split_once("://") {
            Some(("redis" | "rediss", _)) => Ok(Self::Single(Box::new(info(url).map_err(wrong)?))),
            Some(("redis-cluster", hosts)) => {
                // Every node takes the same credentials; those of the first serve for all.
                let login = hosts.split(',').next().and_then(|host| Some(host.rsplit_once('@')?.0));
                let urls = hosts.split(',').map(|host| match login {
                    Some(login) if !host.contains('@') => info(&format!("redis://{login}@{host}")),
                    _ => info(&format!("redis://{host}")),
                });
                Ok(Self::Cluster(urls.collect::<Result<_, _>>().map_err(wrong)?))
            }
            Some(("redis-sentinel", _)) => {
                Err(format!("redis-sentinel:// is not supported yet; allowed are {ALLOWED}"))
            }
            _ => Err(format!("not a store's URL; allowed are {ALLOWED}")),
        }
    }
}

fn info(url: &str) -> Result<ConnectionInfo, RedisError> {
    Ok(url.into_connection_info()?.set_tcp_settings(tcp()))
}

/// The settings of a socket. They find another end that has vanished, but not one that takes everything and
/// never answers.
pub(super) fn tcp() -> TcpSettings {
    // Probes find a connection that only listens and whose other end has vanished.
    let probes = TcpKeepalive::new().with_time(PROBE_AFTER).with_interval(PROBE_AFTER).with_retries(2);
    let settings = TcpSettings::default().set_nodelay(true).set_keepalive(probes);
    #[cfg(target_os = "linux")]
    let settings = settings.set_user_timeout(UNACKNOWLEDGED);
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_and_unsupported_urls_are_refused_with_what_is_allowed() {
        for (url, word) in [
            ("redis-sentinel://a/m", "not supported"),
            ("mysql://a", "not a store's URL"),
            ("x", "not a store's URL"),
            ("redis://", "not a store's URL"),
            ("redis-cluster://", "not a store's URL"),
        ] {
            let error = Address::parse(url).err();
            let helps = |e: &String| e.contains(word) && e.contains("redis-cluster://host:port");
            assert!(error.as_ref().is_some_and(helps), "{url}: {error:?}");
        }
        assert!(
            matches!(Address::parse("redis-cluster://a:1,b:2"), Ok(Address::Cluster(nodes)) if nodes.len() == 2)
        );
        assert!(matches!(Address::parse("rediss://:secret@a:6380/1"), Ok(Address::Single(_))));
    }
}
