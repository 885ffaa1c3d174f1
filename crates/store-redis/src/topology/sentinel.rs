//! A master that sentinels watch: which server it is, which replicas may take over, and its connection. The sentinels
//! are asked before each connection, and regularly whether the master is still the same server: one that was cut off
//! from them still accepts writes, which are lost.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{join_all, join3};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use redis::aio::MultiplexedConnection;
use redis::{Client, ConnectionAddr, ConnectionInfo, Value};
use ringback_core::backoff::Backoff;
use ringback_core::store_types::StoreError;
use tokio::time::timeout;

use super::CONNECT;
use super::address::Watched;
use super::candidates;
use super::connection::{FIRST_PAUSE, SharedConnection};
use super::error::{classify_connect, unfit};
use super::server_answers::{self, Master};
use super::single::{self, LONGEST_PAUSE, SERVERS, Single};

/// How long the sentinels may take to answer.
const ASK: Duration = Duration::from_millis(500);

pub(super) struct Sentinel {
    sentinels: Arc<Sentinels>,
    pub(super) connection: SharedConnection<Connected>,
}

/// A connection to a master, and its address.
#[derive(Clone)]
pub(super) struct Connected {
    connection: MultiplexedConnection,
    address: (String, u16),
}

impl From<Connected> for MultiplexedConnection {
    fn from(connected: Connected) -> Self {
        connected.connection
    }
}

/// The sentinels, and the master that they have named.
struct Sentinels {
    all: Vec<Single>,
    name: String,
    /// How to connect to the master, whatever its address is.
    info: ConnectionInfo,
    /// The master of the highest epoch that sentinels have named.
    known: Mutex<Option<Master>>,
    was_known: AtomicBool,
    /// Whether sentinels are asked for the replicas too.
    count_replicas: bool,
}

impl Sentinel {
    pub(super) fn open(
        watched: Watched,
        call_timeout: Duration,
        count_replicas: bool,
        mut rng: StdRng,
    ) -> Result<Self, StoreError> {
        let Watched { sentinels, name, master: info } = watched;
        let one = |info| Single::open(info, ASK, StdRng::from_rng(&mut rng));
        let all = sentinels.into_iter().map(one).collect::<Result<_, _>>()?;
        let (known, was_known) = (Mutex::default(), AtomicBool::new(false));
        let sentinels = Sentinels { all, name, info, known, was_known, count_replicas };
        Ok(Self::over(Arc::new(sentinels), call_timeout, rng))
    }

    /// Returns the same master with a connection of its own. Both share what the sentinels have answered.
    pub(super) fn beside(&self, call_timeout: Duration, rng: StdRng) -> Self {
        Self::over(Arc::clone(&self.sentinels), call_timeout, rng)
    }

    fn over(sentinels: Arc<Sentinels>, call_timeout: Duration, rng: StdRng) -> Self {
        let backoff = Backoff::between(FIRST_PAUSE, LONGEST_PAUSE, rng);
        let of = Arc::clone(&sentinels);
        let make = move |_silent: Option<usize>| connect(Arc::clone(&of)).boxed();
        Self { sentinels, connection: SharedConnection::new(SERVERS, call_timeout, backoff, make) }
    }

    /// Asks for the master; returns a client for it, and its address. Fails with `Away` or `Unfit` if none is named.
    pub(super) async fn client(&self) -> Result<(Client, (String, u16)), StoreError> {
        let address = self.sentinels.find().await?;
        Ok((self.sentinels.client(&address)?, address))
    }

    /// Returns the replicas that may take over from the server of a connection, by the last answers of the sentinels.
    /// `None` if this is not the present connection, or they have named another master.
    pub(super) fn candidates(&self, connection: u64) -> Option<BTreeSet<(String, u16)>> {
        let (current, _) = self.connection.current().filter(|(_, number)| *number == connection)?;
        let known = self.sentinels.known();
        let known = known.as_ref().filter(|master| master.address == current.address);
        known.map(|master| master.candidates.clone())
    }

    /// Whether the master has this address by the last answers of the sentinels; true if they have not answered yet.
    pub(super) fn is_at(&self, address: &(String, u16)) -> bool {
        self.sentinels.known().as_ref().is_none_or(|master| master.address == *address)
    }

    /// Returns the address of the master by the last answers of the sentinels; `None` if they have not answered yet.
    pub(super) fn master(&self) -> Option<(String, u16)> {
        self.sentinels.known().as_ref().map(|master| master.address.clone())
    }

    /// Asks the sentinels, and leaves a server that is no longer the master. If none answers, the connection stays.
    pub(super) async fn look(&self) {
        if self.sentinels.find().await.is_ok() {
            self.follow();
        }
    }

    /// Drops the connection, with a warning, if by the last answers of the sentinels another server is the master.
    pub(super) fn follow(&self) {
        let Some(address) = self.sentinels.known().as_ref().map(|master| master.address.clone()) else {
            return;
        };
        if let Some((current, number)) =
            self.connection.current().filter(|(current, _)| current.address != address)
        {
            tracing::warn!(
                from = %format_args!("{}:{}", current.address.0, current.address.1),
                to = %format_args!("{}:{}", address.0, address.1),
                "the sentinels name another master; connecting to it"
            );
            self.connection.refused(number, &away("the sentinels name another master"));
        }
    }
}

impl Sentinels {
    /// Asks all sentinels and returns the address of the master with the highest epoch, because a sentinel that was cut
    /// off names the former one. If none names a master, fails with `Unfit` if all answer and none ever has, with
    /// `Refused` if one refuses the question, else with `Away`.
    async fn find(&self) -> Result<(String, u16), StoreError> {
        let ask = |what| redis::cmd("SENTINEL").arg(what).arg(&self.name).to_owned();
        // GET-MASTER-ADDR-BY-NAME names the new master as soon as it is promoted; only MASTER has the epoch.
        let (master, address, replicas) = (ask("MASTER"), ask("GET-MASTER-ADDR-BY-NAME"), ask("REPLICAS"));
        let replicas = async |sentinel: &Single| match self.count_replicas {
            true => sentinel.ask(&replicas).await,
            false => Ok(Value::Array(Vec::new())),
        };
        let asked = self
            .all
            .iter()
            .map(|sentinel| join3(sentinel.ask(&master), sentinel.ask(&address), replicas(sentinel)));
        let (mut heard, mut unknown, mut failed) = (Vec::new(), 0, None);
        for (master, address, replicas) in join_all(asked).await {
            // Without the right to REPLICAS only the replicas that the master lists are known.
            let replicas = match replicas {
                Err(error) if error.is_refusal() => Ok(Value::Array(Vec::new())),
                replicas => replicas,
            };
            match master.and_then(|master| server_answers::heard(master, address?, replicas?)) {
                Ok(one) => heard.push(one),
                Err(error) if server_answers::is_unknown(&error) => unknown += 1,
                Err(error) => failed = Some(error),
            }
        }
        if let Some(newest) = heard.iter().map(|one| &one.master).max_by_key(|master| master.epoch) {
            let agreeing: Vec<_> = heard.iter().filter(|one| one.master == *newest).collect();
            let candidates = candidates::of_sentinels(&agreeing, self.all.len());
            let master = Master { candidates, ..newest.clone() };
            return Ok(self.take(master, heard.len() == self.all.len()));
        }
        Err(match failed {
            None if !self.was_known.load(Ordering::Relaxed) => {
                StoreError::Unfit(format!("the sentinels know no master named {:?}", self.name))
            }
            Some(refused) if refused.is_refusal() => refused,
            Some(error) if unknown == 0 => away(&format!("no sentinel answers: {error}")),
            _ => away(&format!("no sentinel that answers knows a master named {:?}", self.name)),
        })
    }

    /// Records the master that was named, unless one of a higher epoch is known and not all sentinels have answered:
    /// epochs begin anew when all sentinels are set up again. Returns the address of the master that is known then.
    fn take(&self, heard: Master, heard_all: bool) -> (String, u16) {
        self.was_known.store(true, Ordering::Relaxed);
        let mut known = self.known();
        match &*known {
            Some(newer) if newer.epoch > heard.epoch && !heard_all => newer.address.clone(),
            _ => known.insert(heard).address.clone(),
        }
    }

    fn known(&self) -> MutexGuard<'_, Option<Master>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn client(&self, (host, port): &(String, u16)) -> Result<Client, StoreError> {
        let address = ConnectionAddr::Tcp(host.clone(), *port);
        Client::open(self.info.clone().set_addr(address)).map_err(|error| unfit(&error))
    }
}

/// Connects to the master that the sentinels name. Fails with `Replica` if the server itself says that it is none.
async fn connect(sentinels: Arc<Sentinels>) -> Result<Connected, StoreError> {
    let address = sentinels.find().await?;
    let mut connection = single::connect(sentinels.client(&address)?).await?;
    let mut info = redis::cmd("INFO");
    let info = timeout(CONNECT, info.arg("replication").query_async::<String>(&mut connection)).await;
    let info = info.map_err(|_elapsed| StoreError::Slow(CONNECT))?.map_err(classify_connect)?;
    if !server_answers::is_of_master(&info) {
        return Err(StoreError::Replica);
    }
    Ok(Connected { connection, address })
}

fn away(why: &str) -> StoreError {
    StoreError::Away(Arc::new(io::Error::other(why.to_owned())))
}
