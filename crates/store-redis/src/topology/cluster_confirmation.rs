//! Calls in a cluster that are answered only after replicas have the change: finds the master of each space and leaves
//! the wait to [`Confirmed`]. The client of a cluster does not say over which of its connections a call went, so each
//! master has a connection of its own here, and masters are found by the redirections that nodes answer.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use redis::{Cmd, ConnectionAddr, ConnectionInfo, Value};
use ringback_core::store_types::StoreError;

use super::error::{is_half_moved, moved_to};
use super::replica_confirmation::{Confirmed, Server};
use super::single::Single;
use crate::keys::{KeySpace, Keys};

/// How often a call follows a redirection.
const MAX_REDIRECTIONS: usize = 5;

/// The nodes of a cluster that are or were masters, for changes that replicas confirm.
pub(super) struct ConfirmedNodes {
    /// The first node's URL. Its user, password and TLS settings are used for all nodes.
    info: ConnectionInfo,
    call_timeout: Duration,
    keys: Keys,
    known: Mutex<NodeState>,
}

struct NodeState {
    nodes: Vec<(ConnectionAddr, Arc<Confirmed>)>,
    /// For each space the index of the node that is asked for it first.
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
        let known = NodeState { nodes: Vec::new(), of_places, is_synced: false, rng };
        let nodes = Self { info, call_timeout, keys, known: Mutex::new(known) };
        for info in infos {
            nodes.index(&mut nodes.known(), info.addr())?;
        }
        Ok(nodes)
    }

    /// Sends a command to a space's master, and waits for replicas. Fails with `Moving` while the slot of the space
    /// moves.
    pub(super) async fn call(&self, cmd: &Cmd, space: KeySpace) -> Result<Value, StoreError> {
        self.at_master(space, Some(cmd)).await
    }

    /// Waits until replicas have all that every master has, or fails. Checks one space of each master, and all of one
    /// that is behind, because after a failover each must find its new master. Passes over spaces whose slot moves.
    pub(super) async fn check(&self) -> Result<(), StoreError> {
        let behind = self.keys.spaces().filter(|space| self.is_behind(*space));
        let mut spaces: Vec<_> = self.masters().into_iter().map(|(_, space)| space).chain(behind).collect();
        spaces.sort_unstable();
        spaces.dedup();
        for answer in join_all(spaces.into_iter().map(|space| self.at_master(space, None))).await {
            match answer {
                // Calls on a space whose slot moves are refused elsewhere.
                Ok(_) | Err(StoreError::Moving(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Waits until replicas have synced all that every master has, even if calls do not wait for that.
    pub(super) async fn check_synced(&self) -> Result<(), StoreError> {
        let masters = self.masters();
        let checked =
            masters.iter().map(async |(node, space)| node.check_synced(&self.keys.mark(*space)).await);
        join_all(checked).await.into_iter().collect()
    }

    /// Sends the master of a space a command, or without one checks its replicas. Follows redirections, at most
    /// [`MAX_REDIRECTIONS`], then fails with `Slow`. Fails with `Moving` while the slot moves. A node that cannot be
    /// reached or is a replica is left for the next one, and the error is returned.
    async fn at_master(&self, space: KeySpace, cmd: Option<&Cmd>) -> Result<Value, StoreError> {
        let mark = self.keys.mark(space);
        for _ in 0..MAX_REDIRECTIONS {
            let (index, node) = self.node(space);
            let answer = match cmd {
                Some(cmd) => node.call(cmd, &mark).await,
                None => node.check(&mark).await.map(|()| Value::Nil),
            };
            let error = match answer {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            match moved_to(&error) {
                Some((host, port)) => self.moved(space, host, port)?,
                None => {
                    if is_half_moved(&error) {
                        return Err(StoreError::Moving(space.to_string()));
                    }
                    if matches!(error, StoreError::Away(_) | StoreError::Slow(_) | StoreError::Replica) {
                        self.leave(index);
                    }
                    return Err(error);
                }
            }
        }
        Err(StoreError::Slow(self.call_timeout))
    }

    /// Reads again which replicas may take over from each master, and forgets those of nodes that are not masters.
    pub(super) async fn look(&self) {
        let masters = self.masters();
        let is_master = |node: &Arc<Confirmed>| masters.iter().any(|(master, _)| Arc::ptr_eq(master, node));
        let nodes: Vec<_> = self.known().nodes.iter().map(|(_, node)| Arc::clone(node)).collect();
        nodes.iter().filter(|node| !is_master(node)).for_each(|node| node.forget_replicas());
        join_all(masters.iter().map(|(node, _)| node.look())).await;
    }

    fn masters(&self) -> Vec<(Arc<Confirmed>, KeySpace)> {
        let (mut met, known) = (BTreeSet::new(), self.known());
        let index = |space: KeySpace| known.of_places[self.keys.index(space)];
        let spaces = self.keys.spaces().filter(|space| met.insert(index(*space)));
        spaces.map(|space| (Arc::clone(&known.nodes[index(space)].1), space)).collect()
    }

    pub(super) fn is_behind(&self, space: KeySpace) -> bool {
        self.node(space).1.is_behind()
    }

    pub(super) fn wait_for_sync(&self, is_synced: bool) {
        let mut known = self.known();
        known.is_synced = is_synced;
        known.nodes.iter().for_each(|(_, node)| node.wait_for_sync(is_synced));
    }

    /// Returns the node that is asked for a space first, and its index.
    fn node(&self, space: KeySpace) -> (usize, Arc<Confirmed>) {
        let known = self.known();
        let index = known.of_places[self.keys.index(space)];
        (index, Arc::clone(&known.nodes[index].1))
    }

    fn moved(&self, space: KeySpace, host: &str, port: u16) -> Result<(), StoreError> {
        let mut known = self.known();
        let addr = match &known.nodes[known.of_places[self.keys.index(space)]].0 {
            // A node that redirects to no host means its own host.
            ConnectionAddr::Tcp(asked, _) if host.is_empty() => ConnectionAddr::Tcp(asked.clone(), port),
            _ => ConnectionAddr::Tcp(host.to_owned(), port),
        };
        let index = self.index(&mut known, &addr)?;
        known.of_places[self.keys.index(space)] = index;
        Ok(())
    }

    /// Sends the spaces of a node that may have ended to the next node from now on: any other knows which one took over.
    fn leave(&self, node: usize) {
        let mut known = self.known();
        let next = (node + 1) % known.nodes.len();
        known.of_places.iter_mut().filter(|index| **index == node).for_each(|index| *index = next);
    }

    /// Returns the index of a node, which is added if it is new. Fails with `Unfit` if its address cannot be used.
    fn index(&self, known: &mut NodeState, addr: &ConnectionAddr) -> Result<usize, StoreError> {
        if let Some(index) = known.nodes.iter().position(|(other, _)| other == addr) {
            return Ok(index);
        }
        let rng = StdRng::seed_from_u64(known.rng.random());
        let server = Single::open(self.info.clone().set_addr(addr.clone()), self.call_timeout, rng)?;
        let node = Confirmed::new(Server::Node(server), self.call_timeout);
        node.wait_for_sync(known.is_synced);
        known.nodes.push((addr.clone(), Arc::new(node)));
        Ok(known.nodes.len() - 1)
    }

    fn known(&self) -> MutexGuard<'_, NodeState> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
