//! The connections of one pool, by origin: idle ones of HTTP/1.1, shared ones of HTTP/2, and those that are being
//! opened. No attempt waits for another to end: it uses a free connection or stream, or opens one more.

use std::collections::HashMap;
use std::future::pending;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::Uri;
use http::uri::Scheme;
use hyper::rt::Executor as _;
use hyper_util::rt::TokioExecutor;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::connection::{Http1, Http2, NewConnection, SETTLES, open};
use super::connector::Connector;
use super::error::PostError;
use super::lent_connection::{Lent, Used};

/// Idle connections are closed after this time. Common servers close them later (Node.js after 5 s), so
/// a request does not meet a connection that the server is about to close.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// How long an attempt waits at most for a connection that another one makes.
const LONGEST_WAIT: Duration = Duration::from_millis(250);
/// How many streams a receiver probably allows, until it says so (RFC 9113, section 6.5.2).
const EXPECTED_STREAMS: usize = 100;
/// How many connections to an origin are finished or kept for later attempts, when the attempts that began to make them
/// have found others.
const SPARE: usize = 2;

/// Which connection an attempt is sent on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ConnectionChoice {
    #[default]
    Any,
    /// One on which nothing was sent before.
    New,
}

/// The connections of a pool.
#[derive(Clone)]
pub(super) struct Connections(Arc<Shared>);

struct Shared {
    connector: Connector,
    /// How many connections of HTTP/1.1 wait at most for their next attempt, by origin.
    most_idle: usize,
    origins: Mutex<Origins>,
}

#[derive(Default)]
struct Origins {
    by_name: HashMap<Arc<str>, Origin>,
    /// Whether a task closes what is idle for too long.
    is_cleaned: bool,
}

struct Origin {
    idle: Vec<(Http1, Instant)>,
    http2: Vec<Arc<Http2>>,
    /// The attempts that make a connection, and those that wait for one.
    connecting: usize,
    waiting: usize,
    /// How many of `connecting` are for the next attempts.
    spare: usize,
    /// How many attempts at a time a new connection probably serves.
    streams: usize,
    changed: Arc<Notify>,
}

impl Origin {
    fn new(is_tls: bool) -> Self {
        let streams = if is_tls { EXPECTED_STREAMS } else { 1 };
        let (idle, http2, changed) = (Vec::new(), Vec::new(), Arc::default());
        Self { idle, http2, connecting: 0, waiting: 0, spare: 0, streams, changed }
    }

    fn take(&mut self) -> Option<Used> {
        while let Some((one, since)) = self.idle.pop() {
            if one.is_usable() && since.elapsed() < IDLE_TIMEOUT {
                return Some(Used::Http1(one));
            }
        }
        self.http2.retain(|one| one.is_usable());
        let free = self.http2.iter().find(|one| one.begin())?;
        Some(Used::Http2(Arc::clone(free)))
    }

    /// Whether the connections that are being made probably have too few streams for the attempts that wait.
    fn needs_one_more(&mut self) -> bool {
        let mut unknown = self.connecting;
        for one in &self.http2 {
            match one.limit() {
                Some(limit) => self.streams = limit.max(1),
                None => unknown += 1,
            }
        }
        // The attempt that makes a connection takes the first place.
        self.waiting > unknown.saturating_mul(self.streams - 1)
    }

    /// Counts one more spare connection and returns true, unless there are enough with the idle ones.
    fn adds_spare(&mut self) -> bool {
        let is_added = self.spare + self.idle.len() < SPARE;
        self.spare += usize::from(is_added);
        is_added
    }

    fn is_empty(&self) -> bool {
        self.idle.is_empty() && self.http2.is_empty() && self.connecting == 0 && self.waiting == 0
    }
}

impl Connections {
    pub(super) fn new(connector: Connector, most_idle: usize) -> Self {
        Self(Arc::new(Shared { connector, most_idle, origins: Mutex::default() }))
    }

    /// Returns a connection for one attempt: a free one, or the first that becomes free or is made. If those that
    /// others are making will not do, or after 250 ms, it makes one itself. With [`ConnectionChoice::New`] it always
    /// makes one. Fails if that cannot be made.
    pub(super) async fn lend(
        &self,
        uri: &Uri,
        name: &str,
        wanted: ConnectionChoice,
    ) -> Result<Lent, PostError> {
        let may_share = wanted == ConnectionChoice::Any;
        let take = || may_share.then(|| self.0.take(name)).flatten();
        if let Some(lent) = take() {
            return Ok(lent);
        }
        let mut place = Place::waiting(&self.0, name, uri.scheme() == Some(&Scheme::HTTPS));
        let (changed, until) = (Arc::clone(&place.changed), Instant::now() + LONGEST_WAIT);
        loop {
            let mut changed = pin!(changed.notified());
            if may_share {
                changed.as_mut().enable();
            }
            if let Some(lent) = take() {
                place.leave();
                return Ok(lent);
            }
            let is_alone = !may_share || Instant::now() >= until;
            if place.making.is_none() && (is_alone || place.needs_one_more()) {
                place.make(uri.clone());
            }
            tokio::select! {
                biased;
                opened = place.made() => return opened.map(|opened| self.0.first(opened)),
                // Would take it from one that can use what has changed.
                () = changed, if may_share => {}
                () = sleep_until(until), if place.making.is_none() => {}
            }
        }
    }
}

impl Connections {
    /// Returns the connection of an attempt whose response was read. One of HTTP/1.1 is kept for the next attempt once
    /// it is ready for it, unless that takes longer than a second.
    pub(super) fn give_back(&self, lent: Lent) {
        let Some(mut one) = lent.finish() else { return };
        if one.sender.is_ready() {
            self.0.put(one);
        } else if !one.sender.is_closed() {
            let shared = Arc::clone(&self.0);
            TokioExecutor::new().execute(async move {
                if let Ok(Ok(())) = timeout(SETTLES, one.sender.ready()).await {
                    shared.put(one);
                }
            });
        }
    }
}

impl Shared {
    fn origins(&self) -> MutexGuard<'_, Origins> {
        self.origins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes an entry of an origin, and removes it if it is empty then. `None` if there is no entry.
    fn with<T>(&self, name: &str, change: impl FnOnce(&mut Origin) -> T) -> Option<T> {
        let mut origins = self.origins();
        let origin = origins.by_name.get_mut(name)?;
        let changed = change(origin);
        if origin.is_empty() {
            origins.by_name.remove(name);
        }
        Some(changed)
    }

    fn take(self: &Arc<Self>, name: &str) -> Option<Lent> {
        self.with(name, Origin::take)?.map(Lent::new)
    }

    /// Lends a connection to the attempt that has made it. One of HTTP/2 becomes available to others too.
    fn first(self: &Arc<Self>, opened: NewConnection) -> Lent {
        let used = match opened {
            NewConnection::Http1(one) => {
                self.with(&one.name, |origin| origin.streams = 1);
                Used::Http1(one)
            }
            NewConnection::Http2(one) => {
                one.begin_first();
                let one = Arc::new(one);
                self.with(&one.name, |origin| origin.http2.push(Arc::clone(&one)));
                Used::Http2(one)
            }
        };
        Lent::new(used)
    }

    /// Keeps a connection that was made for an attempt that has found another one. One of HTTP/2 is dropped if there is
    /// another to its origin.
    fn keep(self: &Arc<Self>, opened: NewConnection) {
        match opened {
            NewConnection::Http1(one) => self.put(one),
            NewConnection::Http2(mut one) => {
                one.was_kept = true;
                self.with(&one.name.clone(), |origin| {
                    if origin.http2.is_empty() {
                        origin.http2.push(Arc::new(one));
                    }
                });
            }
        }
    }

    fn put(self: &Arc<Self>, mut one: Http1) {
        if !one.is_usable() {
            return;
        }
        one.was_kept = true;
        let mut origins = self.origins();
        let name = Arc::clone(&one.name);
        let origin = origins.by_name.entry(name).or_insert_with(|| Origin::new(false));
        if origin.idle.len() < self.most_idle {
            origin.idle.push((one, Instant::now()));
            origin.changed.notify_one();
        }
        self.clean(&mut origins);
    }

    /// Starts a task that closes idle connections every second, until none is left, unless such a task is running.
    fn clean(self: &Arc<Self>, origins: &mut Origins) {
        if std::mem::replace(&mut origins.is_cleaned, true) {
            return;
        }
        let shared = Arc::downgrade(self);
        TokioExecutor::new().execute(async move {
            while shared.upgrade().is_some_and(|shared| shared.close_idle()) {
                sleep(IDLE_TIMEOUT / 4).await;
            }
        });
    }

    /// Closes connections that are idle for 4 s, or not usable any more. Returns whether any origin is left.
    fn close_idle(&self) -> bool {
        let mut origins = self.origins();
        origins.by_name.retain(|_, origin| {
            origin.idle.retain(|(one, since)| one.is_usable() && since.elapsed() < IDLE_TIMEOUT);
            origin.http2.retain(|one| one.is_usable() && !one.is_idle_for(IDLE_TIMEOUT));
            !origin.is_empty()
        });
        origins.is_cleaned = !origins.by_name.is_empty();
        origins.is_cleaned
    }
}

/// An attempt that waits for a connection, or makes one.
struct Place {
    shared: Arc<Shared>,
    name: Arc<str>,
    changed: Arc<Notify>,
    making: Option<BoxFuture<'static, Result<NewConnection, PostError>>>,
    is_spare: bool,
}

impl Place {
    fn waiting(shared: &Arc<Shared>, name: &str, is_tls: bool) -> Self {
        let name: Arc<str> = name.into();
        let mut origins = shared.origins();
        let origin = origins.by_name.entry(Arc::clone(&name)).or_insert_with(|| Origin::new(is_tls));
        origin.waiting += 1;
        let changed = Arc::clone(&origin.changed);
        shared.clean(&mut origins);
        drop(origins);
        Self { shared: Arc::clone(shared), name, changed, making: None, is_spare: false }
    }

    fn needs_one_more(&self) -> bool {
        self.shared.with(&self.name, Origin::needs_one_more).unwrap_or(true)
    }

    /// Begins to make a connection: the attempt no longer counts as waiting.
    fn make(&mut self, uri: Uri) {
        self.shared.with(&self.name, |origin| {
            (origin.waiting, origin.connecting) = (origin.waiting - 1, origin.connecting + 1);
        });
        let (name, changed) = (Arc::clone(&self.name), Arc::clone(&self.changed));
        self.making = Some(open(self.shared.connector.clone(), uri, name, changed).boxed());
    }

    /// Waits for the connection that this attempt makes; for ever if it makes none.
    async fn made(&mut self) -> Result<NewConnection, PostError> {
        match &mut self.making {
            Some(making) => making.await,
            None => pending().await,
        }
    }

    /// Leaves the queue, because the attempt has found another connection. If it was making one, that is finished in
    /// the background and kept for later attempts, unless there are enough.
    fn leave(mut self) {
        self.is_spare =
            self.making.is_some() && self.shared.with(&self.name, Origin::adds_spare) == Some(true);
        if self.is_spare {
            TokioExecutor::new().execute(async move {
                if let Ok(opened) = self.made().await {
                    self.shared.keep(opened);
                }
            });
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let was_making = self.making.is_some();
        self.shared.with(&self.name, |origin| {
            let count = if was_making { &mut origin.connecting } else { &mut origin.waiting };
            *count -= 1;
            origin.spare -= usize::from(self.is_spare);
        });
        if was_making {
            self.changed.notify_waiters();
        }
    }
}
