//! Asks each server after its start to rewrite its append-only file, which removes a half-written transaction.
//!
//! A server that is killed in the middle of a write leaves the first commands of a transaction at the end of its file.
//! The next start runs none of them, but leaves the complete ones in the file. The start after that runs them, together
//! with the transaction that was written after them. A rewrite replaces the file by the data of the server.
//!
//! No answer of a server shows what it found at its start, so each start leads to a rewrite. The process that first
//! records a new run id asks for it; the others find the run id recorded.

use std::collections::BTreeSet;

use ringback_core::store_types::StoreError;

use crate::keys::KeySpace;
use crate::redis_store::RedisStore;
use crate::script;
use crate::server_checks::AofServer;
use crate::topology::is_under_way;

impl RedisStore {
    /// Asks the servers that have started since the last call, by any process, to rewrite their files. Errors are only
    /// logged; the next process that checks asks again.
    pub(crate) async fn rewrite_after_start(&self, servers: &[AofServer]) {
        if servers.is_empty() {
            return;
        }
        let run_ids: Vec<_> = servers.iter().map(|server| &server.run_id).collect();
        let new: BTreeSet<String> = match self
            .call(&script::NOTE_SERVERS, KeySpace::Installation)
            .early()
            .arg(run_ids)
            .run()
            .await
        {
            Ok(new) => new,
            Err(error) => {
                tracing::warn!(%error, "cannot note the servers of the store; their files are not rewritten");
                return;
            }
        };
        for server in servers.iter().filter(|server| new.contains(&server.run_id)) {
            let asked = self.topology.call_node(&redis::cmd("BGREWRITEAOF"), &server.node).await;
            match asked {
                Ok(_) => tracing::info!(
                    server = server.server,
                    "the store has started; asked it to rewrite its append-only file"
                ),
                Err(error) if is_under_way(&error) => {}
                Err(error) => self.not_rewritten(server, &error).await,
            }
        }
    }

    /// Logs that a file is not rewritten, and removes the server's run id, so that the next process asks again.
    async fn not_rewritten(&self, server: &AofServer, error: &StoreError) {
        tracing::warn!(
            server = server.server,
            %error,
            "the store has started, and its append-only file cannot be rewritten; if it was killed in the middle of a write, its next start can replay half of a change: allow BGREWRITEAOF, or call it after each start"
        );
        if let Err(error) = self
            .call(&script::DROP_SERVER, KeySpace::Installation)
            .early()
            .arg(&server.run_id)
            .run::<u8>()
            .await
        {
            tracing::debug!(%error, "a server stays noted although its file is not rewritten");
        }
    }
}
