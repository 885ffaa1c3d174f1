//! Runs a process: runtime, telemetry, signals and admin port around its work; its exit status, and its name.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;
use ringback_core::clock::{Clock as _, EARLIEST, SystemClock};
use ringback_core::connection_url::shown_in_text;
use tokio::runtime;

use crate::admin_port::{self, Health};
use crate::context::Context;
use crate::open_files;
use crate::scrape::Scrapes;
use crate::settings::ProcessSettings;
use crate::shutdown::Shutdown;
use crate::signals::{Caught, Signals};
use crate::telemetry::{self, LogQueue, Telemetry};

/// The exit status for a wrong configuration or command line (`EX_USAGE` of sysexits.h).
pub const USAGE: u8 = 64;
/// The exit status for a process that cannot do its work.
pub(crate) const FAILURE: u8 = 1;
/// How long work may take to stop after the grace period.
const ABORT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long the last log lines may take to be written.
const LAST_LINES: Duration = Duration::from_secs(1);
/// The same after a second signal, which ends the process at once.
const LAST_LINES_AT_ONCE: Duration = Duration::from_millis(100);

/// The result of the work; the outer error is a panic.
type WorkResult = Result<anyhow::Result<()>, Box<dyn Any + Send>>;

/// The work of a process, boxed: everything around it is compiled once, in this crate.
pub(crate) type Work = Box<dyn FnOnce(Context) -> LocalBoxFuture<'static, anyhow::Result<()>>>;

/// A process that is ready to run: its identity and its settings.
pub(crate) struct Process {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    pub(crate) settings: ProcessSettings,
    pub(crate) unknown_variables: Vec<String>,
}

impl Process {
    /// Runs the work until it ends, and returns the exit status; does not run if the machine's clock has lost its time.
    pub(crate) fn run(self, work: Work) -> ExitCode {
        let now = SystemClock.now();
        if now < EARLIEST {
            return refuse(
                &format!(
                    "the clock of this machine shows {now}, so it has lost its time; set it, and start again"
                ),
                FAILURE,
            );
        }
        // An error means that a provider is installed already.
        rustls::crypto::ring::default_provider().install_default().ok();
        let runtime = match runtime::Builder::new_multi_thread().thread_name(self.name).enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return refuse(&format!("cannot start a runtime: {error}"), FAILURE),
        };
        let log = match LogQueue::to_stderr(self.settings.format) {
            Ok(log) => log,
            Err(error) => return refuse(&format!("cannot start the log: {error}"), FAILURE),
        };
        let ended = runtime.block_on(self.run_async(work, &log));
        // Tasks that still run did not stop in time or have no owner.
        runtime.shutdown_background();
        let (code, last_lines) = match ended {
            Ok(code) => (code, LAST_LINES),
            Err(second) => (second.exit_code(), LAST_LINES_AT_ONCE),
        };
        log.end(last_lines);
        ExitCode::from(code)
    }

    /// Runs until the work ends, and returns the exit status; the error is a second signal.
    async fn run_async(self, work: Work, log: &LogQueue) -> Result<u8, Caught> {
        let options = telemetry::Options {
            service: self.name,
            version: self.version,
            filter: self.settings.filter,
            format: self.settings.format,
            export_traces: self.settings.export_traces,
        };
        let telemetry = match Telemetry::start(&options, log) {
            Ok(telemetry) => telemetry,
            Err(error) => {
                print_refusal(&shown_in_text(&format!("{error:#}")));
                return Ok(USAGE);
            }
        };
        for variable in &self.unknown_variables {
            tracing::warn!("{variable} is set, but no Ringback process reads it; see --help for the names");
        }
        if !self.settings.not_honoured.is_empty() {
            let names = self.settings.not_honoured.join(", ");
            tracing::warn!(
                "these variables are set and have no effect here, or not with their value: {names}; docs/reference/configuration.md has those that are honoured"
            );
        }
        open_files::raise();
        let shutdown = Shutdown::new(self.settings.drain);
        let health = Health::new(&shutdown);
        let scrapes = Scrapes::default();
        let context = Context {
            shutdown: shutdown.clone(),
            health: health.clone(),
            meter: telemetry.meter(),
            scrapes: scrapes.clone(),
            clock: Arc::new(SystemClock),
        };
        let code = match (Signals::listen(), admin_port::bind(self.settings.admin).await) {
            (Ok(mut signals), Ok(listener)) => {
                let address = listener.local_addr().unwrap_or(self.settings.admin);
                tracing::info!(version = self.version, admin = %address, "{} started", self.name);
                let admin = admin_port::serve(
                    listener,
                    self.settings.admin_tls,
                    health,
                    telemetry.registry(),
                    scrapes,
                );
                let work = AssertUnwindSafe(async { work(context).await }).catch_unwind();
                supervise(work, signals.obey(&shutdown, self.settings.drain_delay), admin, &shutdown).await?
            }
            (Err(error), _) => failed("cannot listen for signals", &error.into()),
            (_, Err(error)) => failed("cannot start", &error),
        };
        telemetry.stop().await;
        Ok(code)
    }
}

/// Runs a short command without telemetry, signals and admin port. Prints an error that ends it, with exit status 1.
pub(crate) fn once(name: &str, work: impl Future<Output = anyhow::Result<ExitCode>>) -> ExitCode {
    rustls::crypto::ring::default_provider().install_default().ok();
    let runtime = match runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return refuse(&format!("cannot start a runtime: {error}"), FAILURE),
    };
    runtime.block_on(work).unwrap_or_else(|error| refuse(&format!("{name}: {error:#}"), FAILURE))
}

/// Waits for the first of these, and returns the exit status: the work ends, a second signal arrives (the error), the
/// work is not done [`ABORT_TIMEOUT`] after the grace period, the admin port ends.
async fn supervise(
    work: impl Future<Output = WorkResult>,
    second_signal: impl Future<Output = Caught>,
    admin: impl Future<Output = ()>,
    shutdown: &Shutdown,
) -> Result<u8, Caught> {
    let too_late = async {
        shutdown.expired().await;
        tokio::time::sleep(ABORT_TIMEOUT).await;
    };
    tokio::select! {
        biased;
        outcome = work => Ok(ended(outcome, shutdown)),
        signal = second_signal => {
            tracing::error!(signal = signal.name, "received a second signal; exiting at once");
            Err(signal)
        }
        () = too_late => {
            tracing::error!(grace = ?shutdown.grace(), "work did not finish within the grace period; exiting without it");
            Ok(FAILURE)
        }
        () = admin => Ok(failed("the admin port ended", &anyhow::anyhow!("nothing had stopped it"))),
    }
}

fn ended(outcome: WorkResult, shutdown: &Shutdown) -> u8 {
    match outcome {
        Ok(Ok(())) if shutdown.is_stopping() => {
            tracing::info!("stopped");
            0
        }
        Ok(Ok(())) => {
            tracing::error!("the service ended without a shutdown");
            FAILURE
        }
        Ok(Err(error)) => failed("the service failed", &error),
        Err(_panic) => {
            tracing::error!("the service panicked");
            FAILURE
        }
    }
}

fn failed(what: &str, error: &anyhow::Error) -> u8 {
    tracing::error!(error = format!("{error:#}"), "{what}");
    FAILURE
}

/// Prints to stderr why the process does not run, and returns the exit status.
pub(crate) fn refuse(why: &str, code: u8) -> ExitCode {
    print_refusal(why);
    ExitCode::from(code)
}

#[expect(clippy::print_stderr, reason = "logging is not set up")]
fn print_refusal(why: &str) {
    eprintln!("{why}");
}

/// Returns the name that identifies this process to others: host and process id, such as
/// `worker-3/4711`. The host is `unknown` if it has no name in UTF-8.
#[must_use]
pub fn process_name() -> String {
    let host = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    let host = host.filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown".to_owned());
    format!("{host}/{}", std::process::id())
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    const GRACE: Duration = Duration::from_secs(30);
    const TERM: Caught = Caught { name: "SIGTERM", number: 15 };

    fn work(result: anyhow::Result<()>) -> impl Future<Output = WorkResult> {
        ready(Ok(result))
    }

    async fn exit_code(work: impl Future<Output = WorkResult>, shutdown: &Shutdown) -> u8 {
        supervise(work, pending(), pending(), shutdown).await.expect("no second signal")
    }

    #[tokio::test]
    async fn a_clean_shutdown_is_a_success() {
        let shutdown = Shutdown::new(GRACE);
        let until_stopped = async {
            shutdown.stopping().await;
            Ok(Ok(()))
        };
        let stop = async { shutdown.begin() };
        assert_eq!(tokio::join!(exit_code(until_stopped, &shutdown), stop).0, 0);
    }

    #[tokio::test]
    async fn an_end_before_the_shutdown_is_a_failure() {
        assert_eq!(exit_code(work(Ok(())), &Shutdown::new(GRACE)).await, FAILURE);
    }

    #[tokio::test]
    async fn an_error_is_a_failure_even_during_a_shutdown() {
        let shutdown = Shutdown::new(GRACE);
        shutdown.begin();
        assert_eq!(exit_code(work(Err(anyhow::anyhow!("lost the store"))), &shutdown).await, FAILURE);
    }

    #[tokio::test]
    async fn a_panic_is_a_failure() {
        let panics = AssertUnwindSafe(async { panic!("out of luck") }).catch_unwind();
        assert_eq!(exit_code(panics, &Shutdown::new(GRACE)).await, FAILURE);
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_outlasts_the_grace_period_is_abandoned() {
        let shutdown = Shutdown::new(GRACE);
        shutdown.begin();
        let start = tokio::time::Instant::now();
        assert_eq!(exit_code(pending(), &shutdown).await, FAILURE);
        assert_eq!(start.elapsed(), GRACE + ABORT_TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_stops_at_the_end_of_the_grace_period_ends_cleanly() {
        let shutdown = Shutdown::new(GRACE);
        shutdown.begin();
        let until_expired = async {
            shutdown.expired().await;
            Ok(Ok(()))
        };
        assert_eq!(exit_code(until_expired, &shutdown).await, 0);
    }

    #[tokio::test]
    async fn a_second_signal_ends_it_at_once_with_the_status_a_shell_would_show() {
        let shutdown = Shutdown::new(GRACE);
        let aborted = supervise(pending(), ready(TERM), pending(), &shutdown).await.unwrap_err();
        assert_eq!(aborted.exit_code(), 143);
    }

    #[tokio::test]
    async fn an_admin_port_that_ends_ends_the_process() {
        let ended = supervise(pending(), pending(), ready(()), &Shutdown::new(GRACE)).await;
        assert_eq!(ended.unwrap(), FAILURE);
    }
}
