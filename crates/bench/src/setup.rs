//! The settings of a run: its size, its shards and how Redis syncs; and the stacks and stores that follow from them.

use std::net::SocketAddr;
use std::time::Duration;

use ringback_core::store_types::Options;
use ringback_store::{Store, settings};
use ringback_testkit::{Persistence, RedisOptions, RedisServer, Stack, StackOptions};
use serde::Serialize;

/// The size of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Large enough for figures that mean something.
    Full,
    /// Only to see that the benchmarks work.
    Quick,
}

impl Size {
    pub(crate) fn pick<T>(self, full: T, quick: T) -> T {
        match self {
            Self::Full => full,
            Self::Quick => quick,
        }
    }
}

/// When Redis syncs its log to disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[value(rename_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Before it answers a write.
    Always,
    /// Once a second.
    EverySec,
}

impl Profile {
    /// The options of a redis-server with this profile.
    pub(crate) fn redis(self) -> RedisOptions {
        RedisServer::options().persistence(match self {
            Self::Always => Persistence::Always,
            Self::EverySec => Persistence::EverySec,
        })
    }
}

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Full or quick.
    pub size: Size,
    /// `RINGBACK_SHARDS`, when it is not the default.
    pub shards: Option<u16>,
    /// How Redis syncs. Scenarios where it matters run with each, the others with the first.
    pub profiles: Vec<Profile>,
    /// The most pending jobs of the scenario `growth`.
    pub growth: usize,
    /// The only attack that the scenario `attacks` runs; `None` for all.
    pub attack: Option<&'static str>,
}

impl Setup {
    /// The number of rounds of a figure that varies: 3, in a quick run 1.
    pub(crate) fn rounds(&self) -> usize {
        self.size.pick(3, 1)
    }

    /// Runs all rounds one after the other, and returns their values.
    pub(crate) async fn repeat<T>(&self, mut round: impl AsyncFnMut() -> T) -> Vec<T> {
        let mut values = Vec::new();
        for _ in 0..self.rounds() {
            values.push(round().await);
        }
        values
    }

    /// Runs all rounds one after the other, and returns their values or the first error.
    pub(crate) async fn try_repeat<T, E>(
        &self,
        mut round: impl AsyncFnMut() -> Result<T, E>,
    ) -> Result<Vec<T>, E> {
        let mut values = Vec::new();
        for _ in 0..self.rounds() {
            values.push(round().await?);
        }
        Ok(values)
    }

    /// The profile of scenarios that run with only one: the first.
    pub(crate) fn profile(&self) -> Profile {
        self.profiles.first().copied().unwrap_or(Profile::Always)
    }

    /// The options of a stack with the timings of a real installation, without the check at its end.
    pub(crate) fn stack(&self, profile: Profile) -> StackOptions {
        let options = Stack::options().redis(profile.redis()).lock_ttl("5s").lease_margin("10s").unchecked();
        match self.shards {
            Some(shards) => options.env("RINGBACK_SHARDS", &shards.to_string()),
            None => options,
        }
    }

    pub(crate) async fn open(&self, server: &RedisServer) -> Store {
        let defaults = settings::defaults(Duration::from_secs(10));
        let shards = self.shards.unwrap_or(defaults.shards);
        let store = Store::open(Options { url: server.url(), shards, ..defaults }).expect("the URL is good");
        store.prepare().await.expect("a private server is fit");
        store
    }
}

pub(crate) fn api_address(stack: &Stack) -> SocketAddr {
    address_of(&stack.url(""))
}

/// The address of an API with this base URL.
pub(crate) fn address_of(url: &str) -> SocketAddr {
    url.strip_prefix("http://").and_then(|address| address.parse().ok()).expect("an API has an address")
}
