//! Replicas of a redis-server: follows a master, waits for roles, and promotes a replica.

use std::time::Duration;

use super::RedisServer;
use crate::time::eventually;

/// How long a first copy of the data may take.
const COPY_DEADLINE: Duration = Duration::from_secs(30);
/// The limit until a server has the role on which the others have agreed.
const AGREE_DEADLINE: Duration = Duration::from_secs(60);

impl RedisServer {
    /// Makes this server a replica of another, and waits until it has the data and has rewritten its own file.
    pub async fn follow(&self, master: &Self) {
        self.replica_of("127.0.0.1", &master.port().to_string()).await;
        eventually(COPY_DEADLINE, "the replica has the data of its master", async || {
            // A master sends changes only after the replica has acknowledged the first copy.
            let offset = master.info_field("replication", "master_repl_offset").await;
            let replica = master.info_field("replication", "slave0").await;
            let is_there = replica.contains(&format!("state=online,offset={offset},"));
            if is_there && offset != "0" { Ok(()) } else { Err(replica) }
        })
        .await;
        eventually(COPY_DEADLINE, "the replica has written its file anew", async || {
            let fields = ["aof_rewrite_in_progress", "aof_rewrite_scheduled"];
            for field in fields {
                if self.info_field("persistence", field).await != "0" {
                    return Err(field);
                }
            }
            Ok(())
        })
        .await;
    }

    /// Closes the connections to the replicas, and waits until the server has written something after that. Replicas
    /// that are stopped never get that write if the server is killed before they go on.
    ///
    /// # Panics
    /// If nobody writes to the server within 30 seconds.
    pub async fn writes_without_replicas(&self) {
        let mut kill = redis::cmd("CLIENT");
        let kill = kill.arg("KILL").arg("TYPE").arg("replica");
        kill.exec_async(&mut self.client().await).await.expect("CLIENT KILL");
        let before = self.info_field("replication", "master_repl_offset").await;
        eventually(COPY_DEADLINE, "the master writes", async || {
            let offset = self.info_field("replication", "master_repl_offset").await;
            if offset == before { Err(offset) } else { Ok(()) }
        })
        .await;
    }

    /// Whether the server says that it is a master.
    pub async fn is_master(&self) -> bool {
        self.info_field("replication", "role").await == "master"
    }

    /// Waits until the server is a master. Panics after a minute.
    pub async fn becomes_master(&self) {
        eventually(AGREE_DEADLINE, "the replica takes over", async || {
            if self.is_master().await { Ok(()) } else { Err("it is a replica") }
        })
        .await;
    }

    /// Waits until the server is a replica. Panics after a minute.
    pub async fn becomes_replica(&self) {
        eventually(AGREE_DEADLINE, "the server becomes a replica", async || {
            if self.is_master().await { Err("it is a master") } else { Ok(()) }
        })
        .await;
    }

    /// Makes this replica a master.
    pub async fn promote(&self) {
        self.replica_of("NO", "ONE").await;
    }

    async fn replica_of(&self, host: &str, port: &str) {
        let mut command = redis::cmd("REPLICAOF");
        command.arg(host).arg(port).exec_async(&mut self.client().await).await.expect("REPLICAOF");
    }
}
