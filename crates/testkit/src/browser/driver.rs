//! The process of chromedriver, which starts the browser, and the browser's profile. The browser is connected to its
//! driver by a pipe, so it ends when the driver does, however that happens.

use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::unistd::geteuid;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::child::Child;
use crate::network::{free_port, http_client};
use crate::time::eventually;

/// The limit until the driver answers.
const START_DEADLINE: Duration = Duration::from_secs(30);

/// A running chromedriver. Dropping it kills it.
pub(super) struct Driver {
    child: Child,
    port: u16,
    browser: OsString,
    // Dropped after the child, so that nobody writes into the directory any more.
    dir: TempDir,
}

impl Driver {
    /// Starts chromedriver and waits until it answers HTTP; panics after 30 seconds. Returns `None` if chromedriver or
    /// Chromium is not installed.
    pub(super) async fn start() -> Option<Self> {
        let browser = program("CHROMIUM", "chromium")?;
        let driver = program("CHROMEDRIVER", "chromedriver")?;
        let dir = tempfile::Builder::new().prefix("ringback-browser-").tempdir().expect("a temp directory");
        let port = free_port();
        let mut command = Command::new(driver);
        // Whatever they keep is in the directory of this browser.
        command.arg(format!("--port={port}")).env("HOME", dir.path()).env("XDG_CONFIG_HOME", dir.path());
        let child = Child::spawn("chromedriver", &mut command, &dir.path().join("log"));
        let driver = Self { child, port, browser, dir };
        let (http, url) = (http_client(), driver.url("/status"));
        eventually(START_DEADLINE, "chromedriver answers", async || {
            http.get(&url).send().await.map(|_| ()).map_err(|_| driver.child.log_tail())
        })
        .await;
        Some(driver)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.pid()
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The capabilities of a new session: this Chromium, headless, its own profile, full logs, dialogs that stay open.
    pub(super) fn capabilities(&self) -> Value {
        let profile = format!("--user-data-dir={}", self.dir.path().join("profile").display());
        // `/dev/shm` is small in containers.
        let mut arguments =
            vec!["--headless=new", "--remote-debugging-pipe", "--disable-dev-shm-usage", profile.as_str()];
        if geteuid().is_root() {
            arguments.push("--no-sandbox");
        }
        let options = json!({"binary": self.browser.to_string_lossy(), "args": arguments});
        json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
            // A dialog of a script stays open, for a test to find.
            "unhandledPromptBehavior": "ignore",
        }}})
    }
}

/// The path of a program: the value of `variable`, else the file in PATH; `None` if it fails with `--version`.
fn program(variable: &str, name: &str) -> Option<OsString> {
    let found = std::env::var_os(variable).unwrap_or_else(|| {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let file = std::env::split_paths(&paths).map(|path| path.join(name)).find(|file| file.is_file());
        file.map_or_else(|| name.into(), Into::into)
    });
    let status = Command::new(&found).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success()).then_some(found)
}
