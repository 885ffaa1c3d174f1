//! A single server: how its connection is made, and how one command is sent over a shared connection to one server.

use std::time::Duration;

use futures_util::FutureExt as _;
use rand::rngs::StdRng;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, ConnectionInfo, Value};
use ringback_core::backoff::Backoff;
use ringback_core::store_types::StoreError;

use super::CONNECT;
use super::connection::{FIRST_PAUSE, SharedConnection};
use super::diagnosis;
use super::error::{classify, classify_connect, unfit};

/// How many commands may wait in the connection's queue.
const PIPELINE: usize = 1024;
/// The longest pause between two attempts to connect.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// The number of servers that calls go to.
pub(super) const SERVERS: usize = 1;
/// The place of the only server.
const SERVER: usize = 0;

pub(super) struct Single {
    client: Client,
    pub(super) connection: SharedConnection<MultiplexedConnection>,
}

impl Single {
    pub(super) fn open(
        info: ConnectionInfo,
        call_timeout: Duration,
        rng: StdRng,
    ) -> Result<Self, StoreError> {
        let client = Client::open(info).map_err(|error| unfit(&error))?;
        let backoff = Backoff::between(FIRST_PAUSE, LONGEST_PAUSE, rng);
        let to = client.clone();
        let make = move |_silent: Option<usize>| connect(to.clone()).boxed();
        Ok(Self { client, connection: SharedConnection::new(SERVERS, call_timeout, backoff, make) })
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Sends one command, like [`SharedConnection::send`], and returns only the answer.
    pub(super) async fn ask(&self, cmd: &Cmd) -> Result<Value, StoreError> {
        Ok(self.connection.send(cmd).await?.0)
    }
}

impl<C: Into<MultiplexedConnection> + Clone + Send + Sync + 'static> SharedConnection<C> {
    /// Sends one command. Returns the answer, the connection that the command was sent over, and the connection's number.
    /// An error of the server is returned as a store error. The shared connection is dropped if it broke, or if the
    /// server answers that it is a replica or that the login is not valid.
    pub(super) async fn send(&self, cmd: &Cmd) -> Result<(Value, MultiplexedConnection, u64), StoreError> {
        let send = async |connection: C| {
            let mut connection = connection.into();
            let answer = connection.send_packed_command(cmd).await?;
            Ok((answer, connection))
        };
        let (answer, number) = self.call(SERVER, send).await?;
        match answer {
            Ok((Value::ServerError(error), _)) => {
                let error = classify(error.into());
                // The host name may lead to another server by now, and only a new connection logs in.
                if matches!(error, StoreError::Replica | StoreError::Unauthorized(_)) {
                    self.refused(number, &error);
                }
                Err(error)
            }
            Ok((value, over)) => Ok((value, over, number)),
            Err(error) => {
                // The client fails by itself only when the connection is gone.
                let error = classify(error);
                self.lost(number, &error);
                Err(error)
            }
        }
    }
}

/// Makes a connection and resolves the server's host name anew. A refused login fails with the server's own words.
pub(super) async fn connect(client: Client) -> Result<MultiplexedConnection, StoreError> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT))
        // Calls have a time-out of their own.
        .set_response_timeout(None)
        .set_pipeline_buffer_size(PIPELINE);
    // Checks of the server belong behind this: no call can use the connection before this function returns.
    match client.get_multiplexed_async_connection_with_config(&config).await {
        Ok(connection) => Ok(connection),
        Err(error) => Err(classify_connect(diagnosis::in_its_words(&client, error).await)),
    }
}
