//! The state of a process: its readiness and metrics on the admin port and its log, and waits for them.

use std::net::SocketAddr;
use std::time::Duration;

use super::Process;
use crate::network::http_client;
use crate::time::eventually;

impl Process {
    /// The address of the admin port, from `RINGBACK_ADMIN_LISTEN`. Panics if that is not set.
    pub fn admin(&self) -> SocketAddr {
        let listen =
            self.setting("RINGBACK_ADMIN_LISTEN").expect("a process that is asked for its state has one");
        listen.parse().expect("RINGBACK_ADMIN_LISTEN is an address with a port")
    }

    /// Waits until `/readyz` of the admin port answers 200.
    ///
    /// # Panics
    /// After `within`, and when the process ends before.
    pub async fn ready(&mut self, within: Duration) {
        let binary = self.spec.binary.clone();
        eventually(within, &format!("{binary} is ready"), async || {
            if let Some(status) = self.child.exit_status() {
                panic!("{binary} ended with {status}: {}", self.child.log_tail());
            }
            match self.readiness().await? {
                (200, _) => Ok(()),
                (status, text) => Err(format!("/readyz answers {status}: {text}")),
            }
        })
        .await;
    }

    /// The status and the text of `/readyz` of the admin port.
    ///
    /// # Errors
    /// When the admin port does not answer.
    pub async fn readiness(&self) -> Result<(u16, String), String> {
        let url = format!("http://{}/readyz", self.admin());
        let answer = http_client().get(url).send().await.map_err(|error| error.to_string())?;
        Ok((answer.status().as_u16(), answer.text().await.map_err(|error| error.to_string())?))
    }

    /// Waits until `/readyz` answers `status` and a text with `part`, and returns the text. Panics after `within`.
    pub async fn wait_readiness(&self, status: u16, part: &str, within: Duration) -> String {
        eventually(within, &format!("/readyz answers {status} with {part:?}"), async || {
            match self.readiness().await? {
                (found, text) if found == status && text.contains(part) => Ok(text),
                (found, text) => Err(format!("{found} {text}")),
            }
        })
        .await
    }

    /// The text of `/metrics` of the admin port.
    pub async fn metrics(&self) -> String {
        let url = format!("http://{}/metrics", self.admin());
        let answer = http_client().get(&url).send().await.and_then(reqwest::Response::error_for_status);
        let answer = answer.unwrap_or_else(|error| panic!("{url}: {error}"));
        answer.text().await.unwrap_or_else(|error| panic!("{url}: {error}"))
    }

    /// The value of a metric, summed over its labels if `name` has none; `None` while the metric is absent.
    pub async fn metric(&self, name: &str) -> Option<f64> {
        let text = self.metrics().await;
        let rests = text.lines().filter_map(|line| line.strip_prefix(name));
        let own = rests.filter(|rest| rest.starts_with(['{', ' ']));
        own.map(|rest| rest.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok()).expect("a value"))
            .reduce(|sum, value| sum + value)
    }

    /// Waits until [`Self::metric`] has a value. Panics after `within`.
    pub async fn wait_metric(&self, name: &str, value: f64, within: Duration) {
        eventually(within, &format!("{name} is {value}"), async || match self.metric(name).await {
            Some(found) if found == value => Ok(()),
            found => Err(format!("{found:?}")),
        })
        .await;
    }

    /// Waits until the log contains a text, and returns the whole log. Panics after `within`.
    pub async fn wait_log(&self, part: &str, within: Duration) -> String {
        eventually(within, &format!("the log says {part:?}"), async || {
            let log = self.log();
            if log.contains(part) { Ok(log) } else { Err(log) }
        })
        .await
    }
}
