//! The audit at the end of a stack: after any test all indexes must lead to their jobs and all counts must be right. It
//! runs over HTTP, or in this process when no API answers any more.

use std::time::Duration;

use ringback_core::contract::{Audit, Options, Repair};
use ringback_core::wire::AuditAnswer;
use ringback_store::{Store, settings};

use super::Stack;
use crate::network::http_client;

/// The limit for an API, which a test may have frozen.
const AUDIT_TIMEOUT: Duration = Duration::from_secs(10);
/// The limit of one store call.
const CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// The store to audit, and the API that can do it.
struct Target {
    /// The URL of the audit of an API that runs.
    url: Option<String>,
    /// The key that the API asks for.
    root_key: Option<String>,
    store: Options,
}

impl Drop for Stack {
    fn drop(&mut self) {
        if !self.is_audited || std::thread::panicking() {
            return;
        }
        let Some(target) = self.audit_target() else { return };
        // On a runtime of its own, because the test's runtime may be the one that drops this.
        let audit = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime can be built").block_on(target.audit())
        });
        match audit.join().expect("the audit does not panic") {
            Ok(audit) => {
                assert!(audit.clean, "the audit at the end has findings: {audit:#?}");
                assert_eq!(audit.missing, 0, "a repair has found jobs to be missing: {audit:#?}");
            }
            Err(why) => panic!(
                "the store cannot be audited at the end; call forgo_audit() when it is gone on purpose: {why}"
            ),
        }
    }
}

impl Stack {
    /// Skips the audit at the end, for a store that is gone or damaged on purpose.
    pub fn forgo_audit(&mut self) {
        self.is_audited = false;
    }

    /// `None` for a stack without processes.
    fn audit_target(&mut self) -> Option<Target> {
        let (apis, ups) = (&mut self.apis, &mut self.ups);
        let running = |process: &mut &mut crate::Process| process.exit_status().is_none();
        let api = apis.iter_mut().chain(ups).find_map(|mut process| running(&mut process).then_some(process));
        let setting = |name| api.as_ref().and_then(|api| api.setting(name)).map(str::to_owned);
        let url = setting("RINGBACK_API_LISTEN").map(|at| format!("http://{at}/v1/audit"));
        let root_key = setting("RINGBACK_ROOT_KEY");
        let processes = self
            .apis
            .iter()
            .chain(&self.carriers)
            .chain(&self.notifiers)
            .chain(&self.ups)
            .chain(&self.archivers)
            .chain(&self.feeds);
        let process = processes.into_iter().next()?;
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
    async fn audit(self) -> Result<AuditAnswer, String> {
        let why = match &self.url {
            Some(url) => match over_http(url, self.root_key.as_deref()).await {
                Ok(audit) => return Ok(audit),
                Err(why) => why,
            },
            None => "no API runs".to_owned(),
        };
        let audit = in_process(self.store).await;
        audit.map(|audit| AuditAnswer::new(audit, Duration::ZERO)).map_err(|here| format!("{why}; {here}"))
    }
}

async fn over_http(url: &str, root_key: Option<&str>) -> Result<AuditAnswer, String> {
    let mut request = http_client().get(url).timeout(AUDIT_TIMEOUT);
    if let Some(key) = root_key {
        request = request.bearer_auth(key);
    }
    let answer = request.send().await;
    let answer = answer.and_then(reqwest::Response::error_for_status).map_err(|error| error.to_string())?;
    let body = answer.bytes().await.map_err(|error| error.to_string())?;
    serde_json::from_slice(&body).map_err(|error| format!("{error} in {body:?}"))
}

async fn in_process(options: Options) -> Result<Audit, String> {
    let audit = async {
        let store = Store::open(options)?;
        store.prepare().await?;
        store.audit(Repair::No).await
    };
    audit.await.map_err(|error| error.to_string())
}
