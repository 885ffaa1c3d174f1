//! The schema in PostgreSQL: brought up to date by whichever archiver is first, under a lock, forward only.

use tokio_postgres::Client;

use super::Failed;

/// The versions of the schema, in order: what each adds.
const MIGRATIONS: [&str; 1] = [include_str!("schema.sql")];
/// The number of the advisory lock that archivers take while they change the schema: "ringback" in ASCII.
pub(super) const LOCK: i64 = 0x7269_6e67_6261_636b;

/// Applies what the database does not have yet, and returns its version.
pub(super) async fn run(client: &mut Client) -> Result<usize, Failed> {
    let txn = client.transaction().await?;
    txn.execute("select pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    txn.batch_execute(
        "create table if not exists ringback_migrations (version integer primary key, applied_at timestamptz not null default now())",
    )
    .await?;
    let version: i32 =
        txn.query_one("select coalesce(max(version), 0) from ringback_migrations", &[]).await?.get(0);
    let version = usize::try_from(version).unwrap_or(0);
    if version > MIGRATIONS.len() {
        return Err(Failed::Other(format!(
            "it has version {version} of the schema, and this archiver knows {}: use the version that made it",
            MIGRATIONS.len()
        )));
    }
    for (number, sql) in (1_i32..).zip(MIGRATIONS).skip(version) {
        txn.batch_execute(sql).await?;
        txn.execute("insert into ringback_migrations (version) values ($1)", &[&number]).await?;
    }
    txn.commit().await?;
    Ok(MIGRATIONS.len())
}
