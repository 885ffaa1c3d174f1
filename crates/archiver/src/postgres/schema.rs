//! Makes the schema in PostgreSQL, under a lock so that only one archiver does, and reads its version.

use tokio_postgres::{Client, GenericClient};

use super::Failed;
use crate::schema;

/// The number of the advisory lock that archivers take while they make the schema or partitions: "ringback" in ASCII.
pub(super) const LOCK: i64 = 0x7269_6e67_6261_636b;

/// Makes the schema in a database that has none. Fails if its version is not that of this build.
pub(super) async fn make(client: &mut Client) -> Result<(), Failed> {
    let txn = client.transaction().await?;
    txn.execute("select pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    if version(&txn).await? == 0 {
        txn.batch_execute(include_str!("schema.sql")).await?;
    }
    check(&txn).await?;
    Ok(txn.commit().await?)
}

/// Fails unless the database has the schema of this build. Changes nothing.
pub(super) async fn check(client: &impl GenericClient) -> Result<(), Failed> {
    schema::check(version(client).await?).map_err(Failed::Other)
}

/// The version of the schema; 0 if there is none.
async fn version(client: &impl GenericClient) -> Result<i32, Failed> {
    let table = client.query_one("select to_regclass('ringback_schema') is not null", &[]).await?;
    if !table.get::<_, bool>(0) {
        return Ok(0);
    }
    Ok(client.query_one("select coalesce(max(version), 0) from ringback_schema", &[]).await?.get(0))
}
