//! Changes that a replica has to have before they are answered, in a cluster: each master has a connection of its own
//! for them. The client of a cluster does not say over which of its connections a call went, so this follows the
//! masters itself, by the redirections that they answer.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use redis::{Cmd, ConnectionAddr, ConnectionInfo, Value};
use ringback_core::contract::StoreError;

use super::confirm::{Confirmed, Server};
use super::error::{is_half_moved, moved_to};
use super::single::Single;
use crate::keys::{Keys, Place};

/// How often a call follows a redirection.
const MAX_REDIRECTIONS: usize = 5;

/// The masters of a cluster, for changes that are confirmed by replicas.
pub(super) struct ConfirmedNodes {
    /// Any node's URL. Its user, password and sockets are those of all.
    info: ConnectionInfo,
    call_timeout: Duration,
    keys: Keys,
    known: Mutex<Known>,
}

struct Known {
    nodes: Vec<(ConnectionAddr, Arc<Confirmed>)>,
    /// For each place the index of the node that may have it.
    of_places: Box<[usize]>,
    is_synced: bool,
    rng: StdRng,
}

impl ConfirmedNodes {
    pub(super) fn open(
        infos: &[ConnectionInfo],
        call_timeout: Duration,
        keys: Keys,
        rng: StdRng,
    ) -> Result<Self, StoreError> {
        let info = infos.first().cloned().ok_or(StoreError::Unreadable("the nodes of a cluster"))?;
        let of_places = vec![0; keys.bases().len()].into_boxed_slice();
        let known = Known { nodes: Vec::new(), of_places, is_synced: false, rng };
        let nodes = Self { info, call_timeout, keys, known: Mutex::new(known) };
        for info in infos {
            nodes.index(&mut nodes.known(), info.addr())?;
        }
        Ok(nodes)
    }

    /// Sends a command to the master of a place, and waits until a replica of it has what it changed.
    pub(super) async fn call(&self, cmd: &Cmd, place: Place) -> Result<Value, StoreError> {
        let mark = self.keys.mark(place);
        for _ in 0..MAX_REDIRECTIONS {
            let error = match self.node(place).call(cmd, &mark).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            match moved_to(&error) {
                Some((host, port)) => self.moved(place, host, port)?,
                None => {
                    if is_half_moved(&error) {
                        return Err(StoreError::Moving(place.to_string()));
                    }
                    if matches!(error, StoreError::Away(_) | StoreError::Slow(_) | StoreError::Replica) {
                        self.try_another(place);
                    }
                    return Err(error);
                }
            }
        }
        Err(StoreError::Slow(self.call_timeout))
    }

    /// Waits until replicas have all that every master has. One place of each master is called, and every place of a
    /// master that is behind: it may have been replaced, and places are refused until they have left it.
    pub(super) async fn confirm(&self) -> Result<(), StoreError> {
        let mut met = BTreeSet::new();
        let places: Vec<_> = {
            let known = self.known();
            let is_called = |place: &Place| {
                let index = known.of_places[self.keys.index(*place)];
                met.insert(index) || known.nodes[index].1.is_behind()
            };
            self.keys.places().filter(is_called).collect()
        };
        let called = join_all(places.into_iter().map(async |place| {
            let mut cmd = redis::cmd("EXISTS");
            self.call(cmd.arg(self.keys.mark(place)), place).await
        }));
        for answer in called.await {
            match answer {
                // A part whose slot moves is refused by itself.
                Ok(_) | Err(StoreError::Moving(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits until replicas have synced all that every master has, whatever calls wait for.
    pub(super) async fn confirm_synced(&self) -> Result<(), StoreError> {
        let mut met = BTreeSet::new();
        let nodes: Vec<_> = {
            let known = self.known();
            let of = |place: Place| known.of_places[self.keys.index(place)];
            let places = self.keys.places().filter(|place| met.insert(of(*place)));
            places.map(|place| (Arc::clone(&known.nodes[of(place)].1), self.keys.mark(place))).collect()
        };
        for (node, mark) in nodes {
            node.confirm_synced(&mark).await?;
        }
        Ok(())
    }

    pub(super) fn is_behind(&self, place: Place) -> bool {
        self.node(place).is_behind()
    }

    pub(super) fn wait_for_sync(&self, is_synced: bool) {
        let mut known = self.known();
        known.is_synced = is_synced;
        known.nodes.iter().for_each(|(_, node)| node.wait_for_sync(is_synced));
    }

    fn node(&self, place: Place) -> Arc<Confirmed> {
        let known = self.known();
        Arc::clone(&known.nodes[known.of_places[self.keys.index(place)]].1)
    }

    fn moved(&self, place: Place, host: &str, port: u16) -> Result<(), StoreError> {
        let mut known = self.known();
        let addr = match &known.nodes[known.of_places[self.keys.index(place)]].0 {
            // A node that does not know its own name has that by which it was asked.
            ConnectionAddr::Tcp(asked, _) if host.is_empty() => ConnectionAddr::Tcp(asked.clone(), port),
            _ => ConnectionAddr::Tcp(host.to_owned(), port),
        };
        let index = self.index(&mut known, &addr)?;
        known.of_places[self.keys.index(place)] = index;
        Ok(())
    }

    /// The master of a place may have ended: any other node knows the one that took over.
    fn try_another(&self, place: Place) {
        let mut known = self.known();
        let count = known.nodes.len();
        let index = &mut known.of_places[self.keys.index(place)];
        *index = (*index + 1) % count;
    }

    /// The index of a node, which is added if it is new.
    fn index(&self, known: &mut Known, addr: &ConnectionAddr) -> Result<usize, StoreError> {
        if let Some(index) = known.nodes.iter().position(|(other, _)| other == addr) {
            return Ok(index);
        }
        let rng = StdRng::seed_from_u64(known.rng.random());
        let server = Single::open(self.info.clone().set_addr(addr.clone()), self.call_timeout, rng)?;
        let node = Confirmed::new(Server::Single(server), self.call_timeout);
        node.wait_for_sync(known.is_synced);
        known.nodes.push((addr.clone(), Arc::new(node)));
        Ok(known.nodes.len() - 1)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
