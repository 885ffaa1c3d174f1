//! The audit at the end of a stack: whatever a test has done, every job must be where it would be looked for, and
//! every count right. It is asked for over HTTP, or made here where no API answers any more.

use std::time::Duration;

use ringback_core::contract::{Audit, Options, Repair};
use ringback_core::wire::AuditAnswer;
use ringback_store::{Store, settings};

use super::Stack;
use crate::http_client::http_client;

/// An API that does not answer within this is frozen.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// So long one call to the store may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// What there is to audit, and by whom.
struct Books {
    /// Of an API that runs.
    url: Option<String>,
    store: Options,
}

impl Drop for Stack {
    fn drop(&mut self) {
        if !self.is_audited || std::thread::panicking() {
            return;
        }
        let Some(books) = self.books() else { return };
        // In a runtime of its own: that of the test may be the one that drops this.
        let audit = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime can be built").block_on(books.audit())
        });
        match audit.join().expect("the audit does not panic") {
            Ok(audit) => assert!(audit.clean, "the books are not right at the end: {audit:#?}"),
            Err(why) => panic!(
                "the store cannot be audited at the end; where it is gone on purpose, say forgo_audit(): {why}"
            ),
        }
    }
}

impl Stack {
    /// Says that the store is gone or damaged on purpose, so that it cannot be audited at the end.
    pub fn forgo_audit(&mut self) {
        self.is_audited = false;
    }

    /// None where nobody has ever written anything.
    fn books(&mut self) -> Option<Books> {
        let (apis, ups) = (&mut self.apis, &mut self.ups);
        let running = |process: &mut &mut crate::Process| process.exit_status().is_none();
        let api = apis.iter_mut().chain(ups).find_map(|mut process| running(&mut process).then_some(process));
        let url =
            api.and_then(|api| api.setting("RINGBACK_API_LISTEN")).map(|at| format!("http://{at}/v1/audit"));
        let processes = self.apis.iter().chain(&self.carriers).chain(&self.notifiers).chain(&self.ups);
        let process = processes.into_iter().next()?;
        let mut store = Options { url: self.store.url(), ..settings::defaults(PATIENCE) };
        // A directory that is not absolute is below that of the process.
        if let Some(directory) = store.url.strip_prefix("embedded:") {
            store.url = format!("embedded:{}", process.directory().join(directory).display());
        }
        if let Some(prefix) = process.setting("RINGBACK_PREFIX") {
            prefix.clone_into(&mut store.prefix);
        }
        if let Some(shards) = process.setting("RINGBACK_SHARDS") {
            store.shards = shards.parse().ok()?;
        }
        Some(Books { url, store })
    }
}

impl Books {
    async fn audit(self) -> Result<AuditAnswer, String> {
        let why = match &self.url {
            Some(url) => match over_http(url).await {
                Ok(audit) => return Ok(audit),
                Err(why) => why,
            },
            None => "no API runs".to_owned(),
        };
        let audit = here(self.store).await;
        audit.map(|audit| AuditAnswer::new(audit, Duration::ZERO)).map_err(|here| format!("{why}; {here}"))
    }
}

async fn over_http(url: &str) -> Result<AuditAnswer, String> {
    let answer = http_client().get(url).timeout(ANSWER_WITHIN).send().await;
    let answer = answer.and_then(reqwest::Response::error_for_status).map_err(|error| error.to_string())?;
    let body = answer.bytes().await.map_err(|error| error.to_string())?;
    serde_json::from_slice(&body).map_err(|error| format!("{error} in {body:?}"))
}

async fn here(options: Options) -> Result<Audit, String> {
    let audit = async {
        let store = Store::open(options)?;
        store.prepare().await?;
        store.audit(Repair::No).await
    };
    audit.await.map_err(|error| error.to_string())
}
