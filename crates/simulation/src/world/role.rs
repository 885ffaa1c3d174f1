//! One role of a simulation, an API, a carrier or a notifier: starts it, shuts it down, crashes it.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::metrics::noop::NoopMeterProvider;
use ringback_core::retry::{InstallationRetry, RetryPolicy};
use ringback_core::store_types::Options;
use ringback_egress::Guard;
use ringback_service::{Context, Health, Scrapes, Shutdown, Tasks};
use ringback_store::{Memory, Store};
use tokio::task::JoinHandle;

use super::{LEASE_MARGIN, LOCK_TTL};
use crate::calls::RoleCalls;
use crate::clock::VirtualClock;
use crate::receiver::ScriptedReceiver;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Api,
    Carrier,
    Notifier,
}

/// What a role needs to start.
pub(super) struct Parts {
    pub(super) memory: Memory,
    pub(super) options: Options,
    pub(super) clock: VirtualClock,
    pub(super) receiver: Arc<ScriptedReceiver>,
}

pub(super) struct Role {
    pub(super) kind: Kind,
    pub(super) calls: Arc<RoleCalls>,
    running: Option<Running>,
}

struct Running {
    router: Option<Router>,
    shutdown: Shutdown,
    /// Ends with the first task that fails.
    tasks: JoinHandle<anyhow::Result<()>>,
}

impl Role {
    pub(super) const fn new(kind: Kind, calls: Arc<RoleCalls>) -> Self {
        Self { kind, calls, running: None }
    }

    pub(super) async fn start(&mut self, parts: Parts) {
        let Parts { memory, options, clock, receiver } = parts;
        let faults: Arc<RoleCalls> = Arc::clone(&self.calls);
        let store = Store::in_memory(&memory.with_faults(faults), options.clone());
        store.prepare().await.expect("the store is fit");
        let shutdown = Shutdown::new(Duration::from_secs(30));
        let context = Context {
            health: Health::new(&shutdown),
            meter: NoopMeterProvider::new().meter("simulation"),
            scrapes: Scrapes::default(),
            clock: Arc::new(clock),
            shutdown: shutdown.clone(),
        };
        let (mut tasks, mut router) = (Tasks::new(), None);
        let retry = InstallationRetry::unlimited(RetryPolicy::preset("default").expect("a preset"));
        match self.kind {
            Kind::Api => {
                let listen = ([127, 0, 0, 1], 0).into();
                let config = ringback_api::Config {
                    listen,
                    store: options,
                    retry,
                    event_listeners: 10,
                    connections: 10,
                    tls: None,
                    guard: Guard::open(),
                    master_keys: Default::default(),
                    history: None,
                    access: ringback_api::Access::open(),
                    dashboard: ringback_api::Dashboard::Off,
                };
                router = Some(ringback_api::router(&config, &store, &context, &mut tasks));
            }
            Kind::Carrier => {
                let config = ringback_carrier::Config { store: options, lock_ttl: LOCK_TTL, retry };
                ringback_carrier::start(&config, &store, &context, &mut tasks);
            }
            Kind::Notifier => {
                let config = ringback_notifier::Config {
                    store: options,
                    concurrency: 64,
                    lane_concurrency: 8,
                    breakers: false,
                    outgoing: Default::default(),
                    signing: Default::default(),
                    retry,
                    lease_margin: LEASE_MARGIN,
                };
                ringback_notifier::start_local(receiver, config, &store, &context, &mut tasks);
            }
        }
        let of_tasks = shutdown.clone();
        #[expect(clippy::disallowed_methods, reason = "the role that it is kept in ends it")]
        let tasks = tokio::spawn(async move { tasks.join_all(&of_tasks).await });
        self.running = Some(Running { router, shutdown, tasks });
    }

    pub(super) fn router(&self) -> Option<Router> {
        self.running.as_ref()?.router.clone()
    }

    /// Aborts all tasks of the role, if it runs. Panics if one has ended by itself.
    pub(super) fn crash(&mut self) {
        if let Some(running) = self.running.take() {
            assert!(!running.tasks.is_finished(), "a task of the {:?} has ended", self.kind);
            running.tasks.abort();
        }
    }

    pub(super) async fn shut_down(&mut self) {
        if let Some(Running { router, shutdown, tasks }) = self.running.take() {
            drop(router);
            shutdown.begin();
            tasks.await.expect("the tasks do not panic").expect("the tasks end without an error");
        }
    }
}
