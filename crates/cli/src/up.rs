//! `ringback up`: API, carrier and notifier in one process, on one store that is opened and watched once, with one
//! shutdown. The work of each role is in its own crate.

mod archive;
mod args;
mod config;
mod greeting;
mod master_keys;
mod running;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::{Arc, Once};

use ringback_core::store_types::StoreError;
use ringback_service::dependency::Dependency;
use ringback_service::http_server::Tls;
use ringback_service::{Context, Service, Tasks};
use ringback_store::Store;

use self::args::DemoPort;
pub(crate) use self::args::UpArgs;
use self::config::{Config, settings};
use self::greeting::{Greeting, print};
use crate::args::Format;
use crate::listen::Demo;
use crate::output::Times;

/// Runs until shutdown, and returns the exit code. `format` and `times` are for the receiver of `--demo`.
pub(crate) fn main(args: UpArgs, format: Format, times: Times) -> ExitCode {
    let service = Service {
        name: "ringback up",
        about: "Runs a complete Ringback in one process",
        usage: None,
        version: env!("CARGO_PKG_VERSION"),
        settings: settings(),
        load: Config::load,
    };
    let UpArgs { settings, demo } = args;
    let flags = [OsString::from("ringback up")].into_iter().chain(settings);
    let run = move |config, context| run(config, context, demo, format, times);
    service.main_unless(flags, running::refuse_second, run)
}

async fn run(
    mut config: Config,
    context: Context,
    demo: Option<DemoPort>,
    format: Format,
    times: Times,
) -> anyhow::Result<()> {
    warn_beyond_loopback(&config);
    // It outlives the tasks, so that deliveries in flight can end.
    let demo = match demo {
        Some(DemoPort::Default) => Some(Demo::start(None, format, times).await?),
        Some(DemoPort::Chosen(port)) => Some(Demo::start(Some(port), format, times).await?),
        None => None,
    };
    if let Some(demo) = &demo {
        config.api.guard.exempt(demo.address);
        config.notifier.outgoing.guard.exempt(demo.address);
    }
    if config.api.master_keys.current().is_none() {
        config.api.master_keys = master_keys::of_store(&config.api.store.url)?;
        config.notifier.signing.keys = config.api.master_keys.clone();
    }
    let store = Store::open(config.api.store.clone())?;
    let (clock, of) = (store.clock(Arc::clone(&context.clock)), store.clone());
    let context = context.on_store(clock, move || of.clock_ahead_seconds());
    let listener = ringback_api::bind(&config.api).await?;
    // With port 0 the system has chosen one.
    config.api.listen = listener.local_addr().unwrap_or(config.api.listen);
    config.notifier.outgoing.listeners.push(config.api.listen);
    let greeting: Arc<str> = Greeting::of(&config, demo.as_ref().map(|demo| demo.address)).text().into();
    let mut tasks = Tasks::new();
    ringback_api::start(listener, &config.api, &store, &context, &mut tasks);
    ringback_carrier::start(&config.carrier, &store, &context, &mut tasks);
    ringback_notifier::start(config.notifier, &store, &context, &mut tasks)?;
    match config.archive {
        Some(archive) => archive.start(&store, &context, &mut tasks),
        None => {
            let (warned, stopping) = (archive::warn_without_archive(store.clone()), context.shutdown.clone());
            tasks.spawn("look for an archive", async move {
                tokio::select! {
                    biased;
                    () = stopping.stopping() => {}
                    () = async { warned.await; stopping.stopping().await } => {}
                }
            });
        }
    }
    let greeted = Arc::new(Once::new());
    let dependency = Dependency {
        name: "store",
        subject: store,
        // The API listens by now, so the commands of the greeting work.
        prepare: move |store: Store| {
            let (greeted, greeting) = (Arc::clone(&greeted), Arc::clone(&greeting));
            async move {
                let found = store.prepared().await?;
                // Not waited for: nobody may read standard output.
                greeted.call_once(|| drop(tokio::task::spawn_blocking(move || print(&greeting))));
                Ok(found)
            }
        },
        check: Store::answers,
        is_transient: StoreError::is_transient,
        is_refusal: StoreError::is_refusal,
    };
    tasks.spawn("store", dependency.watch(context.health, context.shutdown.clone()));
    tasks.join_all(&context.shutdown).await
}

/// Logs a warning for each of the API and the admin port that other machines can reach without authentication: neither
/// client certificates nor, for the API, a root key.
fn warn_beyond_loopback(config: &Config) {
    let ports = [
        ("API", config.api.listen, "submit jobs to any address, read and cancel all"),
        ("admin port", config.admin, "read its metrics"),
    ];
    let asks = config.api.tls.as_ref().is_some_and(Tls::asks_for_certificates);
    let is_guarded = |port: &str| match port {
        "API" => asks || config.api.access.root.is_some(),
        _ => asks && config.is_admin_tls,
    };
    let is_open = |port: &str, address| !is_loopback(address) && !is_guarded(port);
    for (port, address, power) in ports.into_iter().filter(|(port, address, _)| is_open(port, *address)) {
        tracing::warn!(
            listen = %address,
            "the {port} is not limited to loopback and has no authentication: anyone who can reach it can {power}"
        );
    }
}

fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_addresses_are_local() {
        for (address, expected) in [
            ("127.0.0.1:1", true),
            ("127.9.9.9:1", true),
            ("[::1]:1", true),
            ("[::ffff:127.0.0.1]:1", true),
            ("0.0.0.0:1", false),
            ("[::]:1", false),
            ("192.168.1.7:1", false),
        ] {
            assert_eq!(is_loopback(address.parse().unwrap()), expected, "{address}");
        }
    }
}
