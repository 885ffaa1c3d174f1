//! [`Address`]: parses the URLs of stores on Redis. Also has the settings of the sockets.

use std::time::Duration;

use redis::io::tcp::TcpSettings;
use redis::io::tcp::socket2::TcpKeepalive;
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisError};
use ringback_core::connection_url::check_login;

/// How long sent data may stay unacknowledged before the connection counts as broken.
const UNACKNOWLEDGED: Duration = Duration::from_secs(5);
/// How long a connection may be silent before it is probed. After two more unanswered probes it counts as broken.
const PROBE_AFTER: Duration = Duration::from_secs(5);

/// The port of a sentinel without a port in the URL.
const SENTINEL_PORT: &str = ":26379";

/// A store's URL, parsed.
pub enum Address {
    Single(Box<ConnectionInfo>),
    Cluster(Vec<ConnectionInfo>),
    Sentinel(Box<Watched>),
}

/// A master that sentinels watch.
#[derive(Clone)]
pub struct Watched {
    pub(super) sentinels: Vec<ConnectionInfo>,
    pub(super) name: String,
    /// How to connect to the master, without its address.
    pub(super) master: ConnectionInfo,
}

impl Address {
    /// Parses a store's URL. The error is a text that says what is wrong and, mostly, what is allowed.
    pub fn parse(url: &str) -> Result<Self, String> {
        const ALLOWED: &str = "redis://host:port, rediss://host:port, redis-cluster://host:port,host:port,..., redis-sentinel://host:port,host:port,.../name or embedded:directory";
        let wrong = |why: String| format!("not a store's URL ({why}); allowed are {ALLOWED}");
        check_login(url)?;
        if let Some((_, fragment)) = url.split_once('#') {
            return Err(match fragment {
                "insecure" => "has #insecure, which is not supported: certificates are always verified; name their authority in RINGBACK_STORE_CA_FILE".to_owned(),
                _ => "has a #, which ends a URL: in a user or a password write %23".to_owned(),
            });
        }
        match url.split_once("://") {
            Some(("redis" | "rediss", _)) => Ok(Self::Single(Box::new(info(url).map_err(wrong)?))),
            Some(("redis-cluster", hosts)) => {
                // Every node has the same credentials; those of the first serve for nodes without any.
                let login = hosts.split(',').next().and_then(|host| Some(host.rsplit_once('@')?.0));
                let urls = hosts.split(',').map(|host| match login {
                    Some(login) if !host.contains('@') => info(&format!("redis://{login}@{host}")),
                    _ => info(&format!("redis://{host}")),
                });
                Ok(Self::Cluster(urls.collect::<Result<_, _>>().map_err(wrong)?))
            }
            Some(("redis-sentinel", rest)) => {
                let watched = watched(rest).map_err(|why| format!("{why}; allowed are {ALLOWED}"))?;
                Ok(Self::Sentinel(Box::new(watched)))
            }
            _ => Err(format!("not a store's URL; allowed are {ALLOWED}")),
        }
    }

    pub(super) fn servers(&self) -> Vec<ConnectionAddr> {
        let named = match self {
            Self::Single(info) => std::slice::from_ref(&**info),
            Self::Cluster(infos) => infos,
            Self::Sentinel(watched) => &watched.sentinels,
        };
        named.iter().map(|info| info.addr().clone()).collect()
    }
}

/// Reads `[login@]host[:port],…/name[?db=…&sentinel_login=…]`. The login is that of the master.
fn watched(text: &str) -> Result<Watched, String> {
    let wrong = |why: String| format!("not a store's URL ({why})");
    let (path, query) = text.split_once('?').unwrap_or((text, ""));
    let (hosts, name) = path.rsplit_once('/').unwrap_or((path, ""));
    if name.is_empty() {
        return Err("not a store's URL (the name of the master is missing)".to_owned());
    }
    // The login of the master may come before each sentinel; that of the first counts.
    let login = hosts.split(',').next().and_then(|host| Some(host.rsplit_once('@')?.0)).unwrap_or("");
    let (mut db, mut sentinel_login) = ("0", "");
    for option in query.split('&').filter(|option| !option.is_empty()) {
        match option.split_once('=') {
            Some(("db", value)) => db = value,
            Some(("sentinel_login", value)) => sentinel_login = value,
            _ => return Err("not a store's URL (only db and sentinel_login may come after ?)".to_owned()),
        }
    }
    let with = |login: &str, host: &str| match login {
        "" => format!("redis://{host}"),
        login => format!("redis://{login}@{host}"),
    };
    let sentinels = hosts.split(',').map(|host| {
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
        let port = if has_port { "" } else { SENTINEL_PORT };
        info(&with(sentinel_login, &format!("{host}{port}")))
    });
    Ok(Watched {
        sentinels: sentinels.collect::<Result<_, _>>().map_err(wrong)?,
        name: name.to_owned(),
        master: info(&with(login, &format!("master/{db}"))).map_err(wrong)?,
    })
}

pub(super) fn host_and_port(address: &ConnectionAddr) -> Option<(String, u16)> {
    match address {
        ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
            Some((host.clone(), *port))
        }
        _ => None,
    }
}

/// Reads the URL of one server. Fails if it has options after `?`: the client of Redis would ignore unknown ones.
fn info(url: &str) -> Result<ConnectionInfo, String> {
    if url.contains('?') {
        return Err("no options may come after ?: user and password stand before the host, as in redis://user:password@host, and the number of the database behind it, as in redis://host/1".to_owned());
    }
    let info = url.into_connection_info().map_err(|error: RedisError| error.to_string())?;
    Ok(info.set_tcp_settings(tcp()))
}

/// Returns the settings of a socket. They detect a peer that has vanished, but not one that accepts data and never
/// answers.
pub(super) fn tcp() -> TcpSettings {
    // Probes detect that the peer has vanished on a connection that only listens.
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
    fn a_watched_master_has_sentinels_a_name_and_two_logins() {
        let url =
            "redis-sentinel://user:p%40ss@a,user:p%40ss@b:7,[::1],[::1]:8/jobs?db=2&sentinel_login=:watch";
        let Ok(Address::Sentinel(watched)) = Address::parse(url) else { panic!("{url}") };
        let addresses: Vec<_> = watched.sentinels.iter().map(|info| info.addr().to_string()).collect();
        assert_eq!(addresses, ["a:26379", "b:7", "::1:26379", "::1:8"]);
        let (master, sentinel) = (watched.master.redis_settings(), watched.sentinels[1].redis_settings());
        assert_eq!((master.username(), master.password(), master.db()), (Some("user"), Some("p@ss"), 2));
        assert_eq!((sentinel.username(), sentinel.password(), sentinel.db()), (None, Some("watch"), 0));
        assert_eq!(watched.name, "jobs");
        let plain = Address::parse("redis-sentinel://a/jobs");
        assert!(
            matches!(plain, Ok(Address::Sentinel(it)) if it.master.redis_settings().password().is_none())
        );
    }

    #[test]
    fn unknown_and_incomplete_urls_are_refused_with_what_is_allowed() {
        for (url, word) in [
            ("redis-sentinel://a,b", "the name of the master is missing"),
            ("redis-sentinel://a/", "the name of the master is missing"),
            ("redis-sentinel:///m", "not a store's URL"),
            ("redis-sentinel://a/m?tls=1", "only db and sentinel_login"),
            ("redis-sentinel://a/m?db=x", "not a store's URL"),
            ("redis://a?password=s3cret", "before the host"),
            ("redis-cluster://a,b?password=s3cret", "before the host"),
            ("mysql://a", "not a store's URL"),
            ("x", "not a store's URL"),
            ("redis://", "not a store's URL"),
            ("redis-cluster://", "not a store's URL"),
        ] {
            let error = Address::parse(url).err();
            let helps = |e: &String| e.contains(word) && e.contains("redis-cluster://host:port");
            assert!(error.as_ref().is_some_and(helps), "{url}: {error:?}");
        }
        for (url, word) in [
            ("redis://user:1234#x@a", "%23 for #"),
            ("redis-sentinel://:1234#x@a/m", "%23 for #"),
            ("redis-cluster://u:a/b@a,b", "%2F for /"),
            ("rediss://a/#insecure", "RINGBACK_STORE_CA_FILE"),
            ("rediss://a/0#x", "%23"),
        ] {
            let error = Address::parse(url).err();
            assert!(error.as_ref().is_some_and(|e| e.contains(word)), "{url}: {error:?}");
        }
        assert!(
            matches!(Address::parse("redis-cluster://a:1,b:2"), Ok(Address::Cluster(nodes)) if nodes.len() == 2)
        );
        assert!(matches!(Address::parse("rediss://:secret@a:6380/1"), Ok(Address::Single(_))));
    }
}
