//! A client of the run itself for Redis, without a proxy. While Redis is away, it returns `None`.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, FromRedisValue};

const LIMIT: Duration = Duration::from_secs(2);

/// A connection, made anew when it has failed.
pub(crate) struct RedisClient {
    port: u16,
    connection: Option<MultiplexedConnection>,
}

impl RedisClient {
    pub(crate) fn new(port: u16) -> Self {
        Self { port, connection: None }
    }

    /// The time by the clock of Redis, in µs since 1970; `None` without an answer.
    pub(crate) async fn time(&mut self) -> Option<u64> {
        let (seconds, micros): (u64, u64) = self.ask(&redis::cmd("TIME")).await?;
        Some(seconds * 1_000_000 + micros)
    }

    /// The answer to a command; `None` without one or for an error, after which the next call connects anew.
    pub(crate) async fn ask<T: FromRedisValue>(&mut self, command: &Cmd) -> Option<T> {
        if self.connection.is_none() {
            let config = AsyncConnectionConfig::new()
                .set_connection_timeout(Some(LIMIT))
                .set_response_timeout(Some(LIMIT));
            let client = Client::open(("127.0.0.1", self.port)).ok()?;
            self.connection = client.get_multiplexed_async_connection_with_config(&config).await.ok();
        }
        let answer = command.query_async(self.connection.as_mut()?).await.ok();
        if answer.is_none() {
            self.connection = None;
        }
        answer
    }
}
