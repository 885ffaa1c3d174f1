//! What can be chosen for a run, and what follows from it.

use std::net::SocketAddr;
use std::time::Duration;

use ringback_core::contract::Options;
use ringback_store::{Store, settings};

use crate::{Persistence, RedisOptions, RedisServer, Stack, StackOptions};

/// How large the runs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// For the figures.
    Full,
    /// To see that the benchmarks work.
    Quick,
}

impl Size {
    pub(super) fn pick<T>(self, full: T, quick: T) -> T {
        match self {
            Self::Full => full,
            Self::Quick => quick,
        }
    }
}

/// When Redis syncs what it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Before anyone is answered.
    Always,
    /// Once a second.
    EverySec,
}

impl Profile {
    /// As `appendfsync` calls it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::EverySec => "everysec",
        }
    }

    /// A server of this kind.
    pub(super) fn redis(self) -> RedisOptions {
        RedisServer::options().persistence(match self {
            Self::Always => Persistence::Always,
            Self::EverySec => Persistence::EverySec,
        })
    }
}

/// What can be chosen for a run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// How large.
    pub size: Size,
    /// `RINGBACK_SHARDS`, where it is not to be the default.
    pub shards: Option<u16>,
    /// How Redis syncs: each is measured where it matters, the first one everywhere.
    pub profiles: Vec<Profile>,
    /// The most pending jobs of the scenario `growth`.
    pub growth: usize,
}

impl Setup {
    /// How often what varies is measured.
    pub(super) fn rounds(&self) -> usize {
        self.size.pick(3, 1)
    }

    /// The profile of what is measured with one only.
    pub(super) fn profile(&self) -> Profile {
        self.profiles.first().copied().unwrap_or(Profile::Always)
    }

    /// A stack with the times of a real installation.
    pub(super) fn stack(&self, profile: Profile) -> StackOptions {
        let options = Stack::options().redis(profile.redis()).lock_ttl("5s").lease_margin("10s").unaudited();
        match self.shards {
            Some(shards) => options.env("RINGBACK_SHARDS", &shards.to_string()),
            None => options,
        }
    }

    /// The store of a server, prepared.
    ///
    /// # Panics
    /// When it is not fit.
    pub(super) async fn open(&self, server: &RedisServer) -> Store {
        let defaults = settings::defaults(Duration::from_secs(10));
        let shards = self.shards.unwrap_or(defaults.shards);
        let store = Store::open(Options { url: server.url(), shards, ..defaults }).expect("the URL is good");
        store.prepare().await.expect("a private server is fit");
        store
    }
}

/// Where the API of a stack listens.
///
/// # Panics
/// When the stack has none.
pub(super) fn api_address(stack: &Stack) -> SocketAddr {
    let url = stack.url("");
    url.strip_prefix("http://").and_then(|address| address.parse().ok()).expect("an API has an address")
}
