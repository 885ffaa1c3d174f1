//! Databases of feeds that hang, are replaced or removed, or need TLS as providers offer it.

use std::path::Path;

use ringback_testkit::{PostgresServer, Process, Role};

use super::business::{Business, UNPAID, feeding, within};
use crate::archive::database::Database;
use crate::prelude::*;

const LONG: Duration = Duration::from_secs(600);

pub(super) async fn says(process: &Process, status: u16, part: &str) {
    process.wait_readiness(status, part, SOON).await;
}

#[tokio::test]
async fn a_feed_whose_database_hangs_is_not_ready_long_before_it_gives_up_waiting() {
    let mut business = Business::in_postgres().await;
    let stack = feeding(&business.orders(), 1).start().await;
    says(&stack.feeds[0], 200, "this process loads it").await;
    let Database::Postgres(server) = &mut business.database else { panic!("it is PostgreSQL") };
    server.pause(true);
    says(&stack.feeds[0], 503, "its database has not answered for").await;
    server.pause(false);
    says(&stack.feeds[0], 200, "this process loads it").await;
}

#[tokio::test]
async fn a_file_that_is_replaced_is_read_from_the_next_pass_on_and_one_that_is_removed_is_noticed() {
    let [_, business] = Business::each().await;
    let (sink, [_, other]) = (Sink::start().await, Business::each().await);
    business.insert(&sink, &[("before", within(LONG))]).await;
    other.insert(&sink, &[("after", within(LONG))]).await;
    let stack = feeding(&business.orders(), 1).start().await;
    let is_loaded = async |id: &str| {
        stack.wait_status(&format!("/v1/jobs/order.unpaid/{id}"), 200, SOON).await;
    };
    is_loaded("before").await;
    let [from, to] = [&other, &business].map(|it| it.database.url().replace("sqlite:", ""));
    // Moves all rows from the write-ahead log into the file.
    drop(other.database.rows("pragma journal_mode = delete").await);
    std::fs::rename(&from, &to).expect("it is replaced");
    is_loaded("after").await;
    std::fs::remove_file(&to).expect("it is removed");
    says(&stack.feeds[0], 503, "No such file").await;
}

#[tokio::test]
async fn every_sslmode_of_a_url_does_what_its_name_says() {
    let file = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("tls").join(name);
    let shown = |name: &str| file(name).display().to_string();
    let mut database = Database::Postgres(Box::new(PostgresServer::start().await));
    let url = database.url().split('?').next().unwrap_or_default().to_owned();
    database.execute("create table orders (id text primary key, due_at timestamptz, url text, body jsonb, paid_at timestamptz)").await;
    let Database::Postgres(server) = &mut database else { panic!("it is PostgreSQL") };
    let (stack, dir) = (Stack::start().await, tempfile::tempdir().expect("a directory"));
    let (authority, itself) = (shown("authority.pem"), shown("itself.pem"));
    // The server's certificates have another name; the second one is its own authority.
    let of_authority = [
        (format!("sslmode=verify-ca&sslrootcert={authority}"), None),
        (format!("sslmode=verify-ca&sslrootcert={}", shown("other.pem")), Some("UnknownIssuer")),
        (format!("sslmode=verify-full&sslrootcert={authority}"), Some("not valid for name")),
        (format!("sslmode=require&sslrootcert={authority}"), Some("not valid for name")),
        ("sslmode=verify-ca&sslrootcert=system".to_owned(), Some("UnknownIssuer")),
        ("sslmode=disable".to_owned(), Some("no pg_hba.conf entry")),
        ("sslmode=verify-ca&sslrootcert=/nowhere.pem".to_owned(), Some("RINGBACK_CA_FILE")),
    ];
    let of_itself = [
        (format!("sslmode=verify-ca&sslrootcert={itself}"), None),
        (format!("sslmode=verify-full&sslrootcert={itself}"), Some("not valid for name")),
        (format!("sslmode=verify-ca&sslrootcert={authority}"), Some("CaUsedAsEndEntity")),
    ];
    let of_authority = of_authority.into_iter().map(|(options, said)| ("receiver", options, said));
    let of_itself = of_itself.into_iter().map(|(options, said)| ("itself", options, said));
    let mut presented = "";
    for (certificate, options, said) in of_authority.chain(of_itself) {
        if std::mem::replace(&mut presented, certificate) != certificate {
            let [certificate, key] = ["pem", "key"].map(|kind| file(&format!("{certificate}.{kind}")));
            server.require_tls(&certificate, &key);
            server.restart().await;
        }
        let feeds = dir.path().join("feeds.toml");
        let text = format!(
            "[[feed]]\nname = \"a\"\nsource = \"{url}?{options}\"\ntopic = \"t\"\nquery = \"{UNPAID}\"\n"
        );
        std::fs::write(&feeds, text).expect("a file");
        let spec = stack.spec(Role::Feed).env("RINGBACK_KEEP_DONE", "2h").arg("check");
        let command = spec.arg(&feeds.display().to_string()).command();
        let output = tokio::process::Command::from(command).output().await.expect("it runs");
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let is_as_expected = match said {
            None => output.status.success(),
            Some(said) => output.status.code() == Some(1) && text.contains(said),
        };
        assert!(is_as_expected, "{options}: {text}");
    }
}
