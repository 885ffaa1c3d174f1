//! The schema in PostgreSQL: brought up to date by whichever archiver is first, under a lock, forward only.

use tokio_postgres::Client;

use super::Failed;

/// The versions of the schema, in order: what each adds.
const MIGRATIONS: [&str; 3] =
    [include_str!("schema/1.sql"), include_str!("schema/2.sql"), include_str!("schema/3.sql")];
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
    // Others that wait for the lock of a long migration get it in time or try again.
    txn.batch_execute("set local statement_timeout = 0").await?;
    for (number, sql) in (1_i32..).zip(MIGRATIONS).skip(version) {
        tracing::info!(version = number, "brings the schema of the archive up to date");
        txn.batch_execute(sql).await?;
        txn.execute("insert into ringback_migrations (version) values ($1)", &[&number]).await?;
    }
    txn.commit().await?;
    Ok(MIGRATIONS.len())
}

/// Checks that the schema is that of this version, and changes nothing.
pub(super) async fn check(client: &Client) -> Result<(), Failed> {
    let table = client.query_one("select to_regclass('ringback_migrations') is not null", &[]).await?;
    let version: i32 = match table.get(0) {
        true => {
            client.query_one("select coalesce(max(version), 0) from ringback_migrations", &[]).await?.get(0)
        }
        false => 0,
    };
    if usize::try_from(version).ok() == Some(MIGRATIONS.len()) {
        return Ok(());
    }
    Err(Failed::Other(format!(
        "it has version {version} of the schema, and this version of Ringback needs {}: an archiver of the same version brings it there",
        MIGRATIONS.len()
    )))
}
