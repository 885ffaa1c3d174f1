//! `ringback-feed seek`: sets from which due time a feed is read next.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use ringback_core::store_types::FeedPosition;
use ringback_core::written_time::parse_time;
use ringback_store::Store;

use crate::config::{Config, Rows};

/// Sets the position of a feed to a due time, and prints that.
///
/// # Errors
/// If the file has no such feed, it is an outbox, the time cannot be parsed, or the store fails.
#[expect(clippy::print_stdout, reason = "it is the output of the command")]
pub(crate) async fn run(config: Config, feed: &str, time: &str) -> anyhow::Result<ExitCode> {
    let names: Vec<_> = config.feeds.iter().map(|feed| feed.name.as_str()).collect();
    let found = config
        .feed(feed)
        .with_context(|| format!("the file has no feed {feed}; it has {}", names.join(", ")))?;
    if let Rows::Outbox(_) = found.rows {
        bail!("feed {feed} is an outbox, which has no position: all rows that wait are loaded");
    }
    let at = parse_time(time)
        .with_context(|| format!("\"{time}\" is not a time by RFC 3339, such as 2026-11-20T10:00:00Z"))?;
    let store = Store::open(config.store.clone())?;
    store.prepare().await?;
    let former = store.feed(&found.name).await?.position;
    // Changes since the last pass count whatever the time that is set.
    let passed = former.map_or(at, |former| former.passed.unwrap_or(former.at));
    store.set_feed(&found.name, FeedPosition { at, passed: Some(passed) }).await?;
    println!(
        "feed {feed} is read from rows due at {at}; of these, rows whose jobs have ended and are no longer known are delivered again"
    );
    Ok(ExitCode::SUCCESS)
}
