//! Reads the answers of servers to INFO: their fields, versions and run ids.

use std::collections::BTreeSet;

use ringback_core::store_types::StoreError;

use super::reply;
use super::topology::{Node, Topology};

pub(crate) struct Info {
    pub(crate) node: Node,
    text: String,
}

impl Info {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    }

    /// Returns the server's name and version; `0` if it has none. Valkey also returns a `redis_version`, for old clients.
    pub(crate) fn version(&self) -> (&'static str, &str) {
        match self.get("valkey_version") {
            Some(version) => ("Valkey", version),
            None => ("Redis", self.get("redis_version").unwrap_or("0")),
        }
    }

    /// Returns the first three numbers of the version; 0 for one that is missing.
    pub(crate) fn version_numbers(&self) -> [u32; 3] {
        let mut parts = self.version().1.split('.').map(|part| part.parse().unwrap_or(0));
        [(); 3].map(|()| parts.next().unwrap_or(0))
    }
}

#[cfg(test)]
impl Info {
    /// Returns the answer of an only server. A space in `text` ends a line.
    pub(crate) fn of(text: &str) -> Self {
        Self { node: Node::only(), text: text.replace(' ', "\r\n") }
    }
}

pub(crate) async fn read(topology: &Topology, sections: &[&str]) -> Result<Vec<Info>, StoreError> {
    let answers = topology.call_each(redis::cmd("INFO").arg(sections)).await?;
    let read = |(node, answer)| Ok(Info { node, text: reply::read(answer, "INFO")? });
    answers.into_iter().map(read).collect()
}

/// Returns the run ids of servers. A server has another one after each start.
pub(crate) fn run_ids(all: &[Info]) -> BTreeSet<String> {
    all.iter().filter_map(|info| info.get("run_id")).map(str::to_owned).collect()
}
