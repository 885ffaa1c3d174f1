//! One life: runtime, telemetry, signals, the admin port, and how the work in their midst ended.

mod signals;

use std::any::Any;
use std::future::Future;
use std::io;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::runtime;

use crate::Context;
use crate::admin::{self, Health};
use crate::files;
use crate::settings::Own;
use crate::shutdown::Shutdown;
use crate::telemetry::{self, Telemetry};

use self::signals::{Caught, Signals};

/// The exit status of a wrong configuration or command line, `EX_USAGE` of sysexits.h.
pub const USAGE: u8 = 64;
const FAILURE: u8 = 1;
/// How long work that was told to drop everything may take to do so.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How the work ended.
type Outcome = Result<anyhow::Result<()>, Box<dyn Any + Send>>;

/// What is known of the process before it lives.
pub(crate) struct Process {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    pub(crate) own: Own,
    pub(crate) unknown_variables: Vec<String>,
}

impl Process {
    /// Lives until the work ends, and answers with the exit status.
    pub(crate) fn run<F, Fut>(self, work: F) -> ExitCode
    where
        F: FnOnce(Context) -> Fut,
        Fut: Future<Output = anyhow::Result<()>>,
    {
        // An error says that a provider is installed already, which is as good.
        rustls::crypto::ring::default_provider().install_default().ok();
        let runtime = match runtime::Builder::new_multi_thread().thread_name(self.name).enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return refuse(&format!("cannot start a runtime: {error}"), FAILURE),
        };
        let code = runtime.block_on(self.live(work));
        // What is left was either asked to end and did not, or belongs to nobody.
        runtime.shutdown_background();
        code
    }

    async fn live<F, Fut>(self, work: F) -> ExitCode
    where
        F: FnOnce(Context) -> Fut,
        Fut: Future<Output = anyhow::Result<()>>,
    {
        let options = telemetry::Options {
            service: self.name,
            version: self.version,
            filter: self.own.filter,
            format: self.own.format,
            export_traces: self.own.export_traces,
        };
        let telemetry = match Telemetry::start(&options) {
            Ok(telemetry) => telemetry,
            Err(error) => return refuse(&format!("{error:#}"), USAGE),
        };
        for variable in &self.unknown_variables {
            tracing::warn!(
                "{variable} is set but no Ringback process reads it: did you mean another? See --help"
            );
        }
        files::raise();
        let shutdown = Shutdown::new(self.own.drain);
        let health = Health::new(&shutdown);
        let context =
            Context { shutdown: shutdown.clone(), health: health.clone(), meter: telemetry.meter() };
        let code = match (Signals::listen(), admin::bind(self.own.admin).await) {
            (Ok(mut signals), Ok(listener)) => {
                let address = listener.local_addr().unwrap_or(self.own.admin);
                tracing::info!(version = self.version, admin = %address, "{} started", self.name);
                let admin = admin::serve(listener, health, telemetry.registry());
                let work = AssertUnwindSafe(async { work(context).await }).catch_unwind();
                match supervise(work, signals.obey(&shutdown), admin, &shutdown).await {
                    Ok(code) => code,
                    Err(second) => return ExitCode::from(second.exit_code()),
                }
            }
            (Err(error), _) => failed("cannot listen for signals", &error.into()),
            (_, Err(error)) => failed("cannot start", &error),
        };
        telemetry.stop().await;
        ExitCode::from(code)
    }
}

/// Waits for the first of: the work ends, a second signal (the error), the grace runs out, the
/// admin port dies.
async fn supervise(
    work: impl Future<Output = Outcome>,
    second_signal: impl Future<Output = Caught>,
    admin: impl Future<Output = io::Result<()>>,
    shutdown: &Shutdown,
) -> Result<u8, Caught> {
    let too_late = async {
        shutdown.expired().await;
        tokio::time::sleep(LAST_WORDS).await;
    };
    tokio::select! {
        biased;
        outcome = work => Ok(ended(outcome, shutdown)),
        signal = second_signal => {
            tracing::error!(signal = signal.name, "a second signal: ending at once");
            Err(signal)
        }
        () = too_late => {
            tracing::error!(grace = ?shutdown.grace(), "the grace is over and work is still going on: ending without it");
            Ok(FAILURE)
        }
        result = admin => Ok(failed("the admin port failed", &anyhow::anyhow!("{result:?}"))),
    }
}

fn ended(outcome: Outcome, shutdown: &Shutdown) -> u8 {
    match outcome {
        Ok(Ok(())) if shutdown.is_stopping() => {
            tracing::info!("stopped");
            0
        }
        Ok(Ok(())) => {
            tracing::error!("the service ended though nobody asked it to");
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

/// Says on stderr why there is no life to live.
#[expect(clippy::print_stderr, reason = "logging is not set up")]
pub(crate) fn refuse(why: &str, code: u8) -> ExitCode {
    eprintln!("{why}");
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    const GRACE: Duration = Duration::from_secs(30);
    const TERM: Caught = Caught { name: "SIGTERM", number: 15 };

    fn work(result: anyhow::Result<()>) -> impl Future<Output = Outcome> {
        ready(Ok(result))
    }

    async fn life(work: impl Future<Output = Outcome>, shutdown: &Shutdown) -> u8 {
        supervise(work, pending(), pending(), shutdown).await.expect("no second signal")
    }

    #[tokio::test]
    async fn a_clean_shutdown_is_a_success() {
        let shutdown = Shutdown::new(GRACE);
        let until_told = async {
            shutdown.stopping().await;
            Ok(Ok(()))
        };
        let told = async { shutdown.begin() };
        assert_eq!(tokio::join!(life(until_told, &shutdown), told).0, 0);
    }

    #[tokio::test]
    async fn an_end_that_nobody_asked_for_is_a_failure() {
        assert_eq!(life(work(Ok(())), &Shutdown::new(GRACE)).await, FAILURE);
    }

    #[tokio::test]
    async fn an_error_is_a_failure_even_during_a_shutdown() {
        let shutdown = Shutdown::new(GRACE);
        shutdown.begin();
        assert_eq!(life(work(Err(anyhow::anyhow!("lost the store"))), &shutdown).await, FAILURE);
    }

    #[tokio::test]
    async fn a_panic_is_a_failure() {
        let panics = AssertUnwindSafe(async { panic!("out of luck") }).catch_unwind();
        assert_eq!(life(panics, &Shutdown::new(GRACE)).await, FAILURE);
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_outlasts_the_grace_is_given_up() {
        let shutdown = Shutdown::new(GRACE);
        shutdown.begin();
        let start = tokio::time::Instant::now();
        assert_eq!(life(pending(), &shutdown).await, FAILURE);
        assert_eq!(start.elapsed(), GRACE + LAST_WORDS);
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_drops_what_is_left_when_told_so_ends_cleanly() {
        let shutdown = Shutdown::new(GRACE);
        shutdown.begin();
        let until_expired = async {
            shutdown.expired().await;
            Ok(Ok(()))
        };
        assert_eq!(life(until_expired, &shutdown).await, 0);
    }

    #[tokio::test]
    async fn a_second_signal_ends_it_at_once_with_the_status_a_shell_would_show() {
        let shutdown = Shutdown::new(GRACE);
        let aborted = supervise(pending(), ready(TERM), pending(), &shutdown).await.unwrap_err();
        assert_eq!(aborted.exit_code(), 143);
    }

    #[tokio::test]
    async fn an_admin_port_that_dies_takes_the_process_with_it() {
        let dead = ready(Err(io::Error::other("closed")));
        assert_eq!(supervise(pending(), pending(), dead, &Shutdown::new(GRACE)).await.unwrap(), FAILURE);
    }
}
