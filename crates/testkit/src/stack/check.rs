//! The consistency check when a stack is dropped: all indexes must lead to their jobs and all counts must be right.
//! The check runs over HTTP, or in this process if no API runs any more.

use std::time::Duration;

use ringback_core::store_types::{Check, Options, Repair};
use ringback_store::{Store, settings};
use ringback_wire::CheckResponse;

use super::Stack;
use crate::network::http_client;

/// The limit for an API, which a test may have frozen.
const CHECK_TIMEOUT: Duration = Duration::from_secs(10);
/// The limit of one store call.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// The store to check, and the API that can do it.
struct Target {
    /// The URL of the check of an API that runs.
    url: Option<String>,
    /// The key that the API asks for.
    root_key: Option<String>,
    store: Options,
}

impl Drop for Stack {
    fn drop(&mut self) {
        if !self.is_checked || std::thread::panicking() {
            return;
        }
        let Some(target) = self.check_target() else { return };
        // Runs on a runtime of its own, because the test's runtime may be the one that drops this.
        let check = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime can be built").block_on(target.check())
        });
        match check.join().expect("the check does not panic") {
            Ok(check) => {
                assert!(check.clean, "the check at the end has findings: {check:#?}");
                assert_eq!(check.missing, 0, "a repair has found jobs to be missing: {check:#?}");
            }
            Err(why) => panic!(
                "the store cannot be checked at the end; call skip_check() when it is gone on purpose: {why}"
            ),
        }
    }
}

impl Stack {
    /// Skips the check at the end, for a store that is gone or damaged on purpose.
    pub fn skip_check(&mut self) {
        self.is_checked = false;
    }

    /// The store to check and a running API, if there is one. `None` for a stack without processes.
    fn check_target(&mut self) -> Option<Target> {
        let (apis, ups) = (&mut self.apis, &mut self.ups);
        let running = |process: &mut &mut crate::Process| process.exit_status().is_none();
        let api = apis.iter_mut().chain(ups).find_map(|mut process| running(&mut process).then_some(process));
        let setting = |name| api.as_ref().and_then(|api| api.setting(name)).map(str::to_owned);
        let url = setting("RINGBACK_API_LISTEN").map(|at| format!("http://{at}/v1/check"));
        let root_key = setting("RINGBACK_ROOT_KEY");
        let process = self.processes().next()?;
        let mut store = Options { url: self.store.url(), ..settings::defaults(CALL_TIMEOUT) };
        // A relative directory is below that of the process.
        if let Some(directory) = store.url.strip_prefix("embedded:") {
            store.url = format!("embedded:{}", process.directory().join(directory).display());
        }
        if let Some(prefix) = process.setting("RINGBACK_PREFIX") {
            prefix.clone_into(&mut store.prefix);
        }
        if let Some(shards) = process.setting("RINGBACK_SHARDS") {
            store.shards = shards.parse().ok()?;
        }
        Some(Target { url, root_key, store })
    }
}

impl Target {
    async fn check(self) -> Result<CheckResponse, String> {
        let why = match &self.url {
            Some(url) => match over_http(url, self.root_key.as_deref()).await {
                Ok(check) => return Ok(check),
                Err(why) => why,
            },
            None => "no API runs".to_owned(),
        };
        let check = in_process(self.store).await;
        check.map(|check| CheckResponse::new(check, Duration::ZERO)).map_err(|here| format!("{why}; {here}"))
    }
}

async fn over_http(url: &str, root_key: Option<&str>) -> Result<CheckResponse, String> {
    let mut request = http_client().get(url).timeout(CHECK_TIMEOUT);
    if let Some(key) = root_key {
        request = request.bearer_auth(key);
    }
    let answer = request.send().await;
    let answer = answer.and_then(reqwest::Response::error_for_status).map_err(|error| error.to_string())?;
    let body = answer.bytes().await.map_err(|error| error.to_string())?;
    serde_json::from_slice(&body).map_err(|error| format!("{error} in {body:?}"))
}

async fn in_process(options: Options) -> Result<Check, String> {
    let check = async {
        let store = Store::open(options)?;
        store.prepare().await?;
        store.check(Repair::No).await
    };
    check.await.map_err(|error| error.to_string())
}
