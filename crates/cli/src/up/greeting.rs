//! Makes and prints the message of `ringback up` once it is ready: its addresses, its data, and commands to try, which
//! work as they are printed.

use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use ringback_api::Dashboard;
use ringback_core::clock::{Clock as _, SystemClock};
use ringback_egress::Guard;

use super::config::Config;
use crate::listen::PORT;
use crate::output::quoted;

/// The values of the message.
pub(crate) struct Greeting {
    api: String,
    /// The URL of the dashboard, unless it is switched off.
    dashboard: Option<String>,
    admin: String,
    data: String,
    /// The path of this program, quoted for a shell.
    program: String,
    /// The address of the receiver in this process.
    demo: Option<SocketAddr>,
    guard: Guard,
    /// Whether the API asks for a key, which the commands to try take from `RINGBACK_KEY`.
    asks_for_key: bool,
    /// The id of the job to try. It differs at each start: a job that is known already would not arrive again.
    job: String,
}

impl Greeting {
    pub(crate) fn of(config: &Config, demo: Option<SocketAddr>) -> Self {
        let program = std::env::current_exe().unwrap_or_else(|_| "ringback".into());
        let api = url(config.api.listen, config.api.tls.is_some());
        Self {
            dashboard: (config.api.dashboard == Dashboard::On).then(|| format!("{api}/ui/")),
            api,
            admin: url(config.admin, config.is_admin_tls),
            data: location(&config.store),
            program: word(&program),
            demo,
            guard: config.api.guard.clone(),
            asks_for_key: config.api.access.root.is_some(),
            job: format!("hello-{}", SystemClock.now().as_millis() / 1000 % 100_000),
        }
    }
}

impl Greeting {
    pub(crate) fn text(&self) -> String {
        let Self { api, admin, data, .. } = self;
        let is_allowed = self.guard.judge_origin(&format!("http://{}", self.receiver())).is_ok();
        let dashboard = self.dashboard.as_ref().map_or_else(String::new, |url| format!("  UI     {url}\n"));
        let next = if is_allowed { self.try_it() } else { self.local_is_forbidden() };
        format!(
            r"
Ringback is up; press Ctrl-C to stop it.

  API    {api}/v1
{dashboard}  admin  {admin}/readyz, /healthz, /metrics
  data   {data}

{next}
"
        )
    }

    /// The receiver of the job to try.
    fn receiver(&self) -> SocketAddr {
        self.demo.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)))
    }

    fn local_is_forbidden(&self) -> String {
        let program = &self.program;
        format!(
            r"Callbacks to this machine are refused. To try receivers here, start it with one of these:

  {program} up --egress-allow=127.0.0.0/8,::1 --egress-hosts=localhost
  {program} up --demo
"
        )
    }

    fn try_it(&self) -> String {
        let Self { api, program, demo, job, .. } = self;
        let receiver = self.receiver();
        let (key, header) = if self.asks_for_key {
            let key = "Each call needs a key. In each terminal from which you make calls, set it first:\n\n  \
                export RINGBACK_KEY=...   # the root key, or one that `ringback key create` has made\n\n";
            (key, " -H \"authorization: Bearer $RINGBACK_KEY\"")
        } else {
            ("", "")
        };
        let before = match demo {
            Some(_) => "Try, in another terminal:\n".to_owned(),
            None => {
                format!("Try a receiver in a second terminal and a job in a third:\n\n  {program} listen\n")
            }
        };
        let after = match demo {
            Some(_) => {
                format!("The job arrives two seconds later at http://{receiver}, and is printed here.")
            }
            None => format!(
                "The job arrives two seconds later and is printed by the receiver. `{program} up --demo` has one built in."
            ),
        };
        format!(
            r#"{key}{before}
  curl -i {api}/v1/jobs{header} -H 'content-type: application/json' \
    -d '{{"topic":"demo","id":"{job}","delay":"2s","url":"http://{receiver}/hook","body":{{"hello":"world"}}}}'
  {program} get demo/{job} --server {api}

{after}
"#
        )
    }
}

/// Prints the message. An error is ignored: standard output is for people here.
pub(crate) fn print(text: &str) {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).ok();
}

/// The URL at which this machine reaches an address.
fn url(listen: SocketAddr, is_tls: bool) -> String {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    let scheme = if is_tls { "https" } else { "http" };
    format!("{scheme}://{}", SocketAddr::new(ip, listen.port()))
}

/// Where a store is: the absolute path of the directory of an embedded one, else its URL.
fn location(store: &str) -> String {
    let Some(directory) = store.strip_prefix("embedded:") else { return store.to_owned() };
    let path = std::path::absolute(directory).unwrap_or_else(|_| directory.into());
    format!("{} (embedded)", path.display())
}

/// A path as one word of a shell, in quotes if it has characters other than letters, digits and `/._-+`.
fn word(program: &Path) -> String {
    let text = program.to_string_lossy();
    let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+".contains(c));
    if is_plain { text.into_owned() } else { quoted(&text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_for_all_is_reached_by_loopback() {
        for (listen, expected) in [
            ("127.0.0.1:7411", "http://127.0.0.1:7411"),
            ("0.0.0.0:7411", "http://127.0.0.1:7411"),
            ("[::]:7411", "http://[::1]:7411"),
            ("10.1.2.3:80", "http://10.1.2.3:80"),
        ] {
            assert_eq!(url(listen.parse().unwrap(), false), expected);
        }
    }

    #[test]
    fn a_directory_is_shown_by_its_absolute_path() {
        let here = std::env::current_dir().unwrap();
        assert_eq!(
            location("embedded:./ringback-data"),
            format!("{}/ringback-data (embedded)", here.display())
        );
        assert_eq!(location("embedded:/var/lib/ringback"), "/var/lib/ringback (embedded)");
        assert_eq!(location("redis://h:1"), "redis://h:1");
    }

    #[test]
    fn a_path_is_one_word_for_a_shell() {
        assert_eq!(word(Path::new("target/release/ringback")), "target/release/ringback");
        assert_eq!(word(Path::new("/it's here/ringback")), r"'/it'\''s here/ringback'");
    }
}
