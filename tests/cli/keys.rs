//! `ringback key`, and calls with a key and for a tenant, on real APIs that require keys.

use ringback_testkit::free_port;

use super::{Run, run_fed, spec};
use crate::prelude::*;

pub(super) const ROOT: &str = "root-key-of-the-tests-0123456789abcdef";

/// The options of two APIs that require keys, one on each kind of store.
fn apis() -> [StackOptions; 2] {
    StackOptions::api_on_each_store().map(|options| options.env("RINGBACK_ROOT_KEY", ROOT))
}

/// Runs the command line with a key. Asserts that the output does not contain the key.
pub(super) async fn keyed(server: &str, key: &str, words: &[&str]) -> Run {
    let run = run_fed(spec(server, words).env("RINGBACK_KEY", key), Vec::new()).await;
    for text in [&run.out, &run.err] {
        assert!(!text.contains(key), "the key is shown: {words:?}");
    }
    run
}

async fn make(server: &str, words: &[&str]) -> String {
    let run = keyed(server, ROOT, &[&["key", "create"], words].concat()).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    run.out.trim_end().to_owned()
}

async fn keys(server: &str, words: &[&str]) -> Vec<Value> {
    let run = keyed(server, ROOT, &[&["key", "list", "--json"], words].concat()).await;
    assert_eq!(run.code, Some(0), "{run:?}");
    run.json()["items"].as_array().expect("a list").clone()
}

#[tokio::test]
async fn a_key_is_made_shown_once_listed_used_and_ended() {
    for options in apis() {
        let stack = options.start().await;
        let server = stack.url("");
        let words = [
            "key",
            "create",
            "--tenant",
            "acme",
            "--scope",
            "submit",
            "--scope",
            "read",
            "--topic",
            "pay",
            "--destination",
            "hooks.example.com",
            "--cidr",
            "127.0.0.0/8",
            "--expires",
            "2100-01-01T00:00:00Z",
        ];
        let run = keyed(&server, ROOT, &words).await;
        assert_eq!(run.code, Some(0), "{run:?}");
        let key = run.out.strip_suffix('\n').expect("a line").to_owned();
        assert!(key.starts_with("rbk_") && key.len() == 52, "{key}");
        assert!(
            run.err.contains(" of tenant acme allows submit, read; the key is not shown again"),
            "{run:?}"
        );

        let listed = keys(&server, &[]).await;
        assert!(listed.len() == 1 && !json!(listed).to_string().contains(&key), "{listed:?}");
        let expected = json!({
            "tenant": "acme", "scopes": ["submit", "read"], "topics": ["pay"], "destinations": ["hooks.example.com"],
            "cidrs": ["127.0.0.0/8"], "expires_at": "2100-01-01T00:00:00.000Z",
        });
        for (field, value) in expected.as_object().expect("an object") {
            assert_eq!(&listed[0][field], value, "{field}");
        }
        make(&server, &["--scope", "read"]).await;
        assert_eq!(
            (keys(&server, &[]).await.len(), keys(&server, &["--tenant", "acme"]).await),
            (2, listed.clone())
        );
        let table = keyed(&server, ROOT, &["key", "list"]).await.out;
        assert!(table.starts_with("KEY ") && table.lines().count() == 3, "{table}");
        assert!(table.contains("submit,read  pay     hooks.example.com  127.0.0.0/8"), "{table}");

        let url = "https://hooks.example.com/";
        let submit = ["submit", "--topic", "pay", "--id", "a", "--delay", "1h", "--url", url];
        let run = keyed(&server, &key, &submit).await;
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{run:?}");
        let run = keyed(&server, &key, &["topics"]).await;
        assert!(run.code == Some(0) && run.out.contains("\npay "), "{run:?}");
        let run = keyed(&server, ROOT, &["get", "pay/a"]).await;
        assert!(run.code == Some(1) && run.err.contains("404"), "the root key without a tenant: {run:?}");
        let run = keyed(&server, ROOT, &["get", "pay/a", "--tenant", "acme"]).await;
        assert_eq!(run.code, Some(0), "{run:?}");
        let run = keyed(&server, &key, &["pause", "pay"]).await;
        assert!(run.code == Some(2) && run.err.contains("does not have the scope manage"), "{run:?}");

        let id = listed[0]["id"].as_str().expect("an id");
        let run = keyed(&server, ROOT, &["key", "delete", id, "--json"]).await;
        assert_eq!((run.code, run.json()["items"].as_array().map(Vec::len)), (Some(0), Some(1)), "{run:?}");
        let run = keyed(&server, &key, &["topics"]).await;
        assert!(
            run.code == Some(2) && run.err.starts_with("error: 401 Unauthorized: no such key"),
            "{run:?}"
        );
        assert!(run.err.contains("next: set RINGBACK_KEY to a key of this installation"), "{run:?}");
        let run = keyed(&server, ROOT, &["key", "delete", id]).await;
        assert!(run.code == Some(1) && run.err.contains("no key with this id"), "{run:?}");
    }
}

#[tokio::test]
async fn calls_without_the_right_key_are_refused_and_say_what_to_set() {
    let stack = StackOptions::api_only().env("RINGBACK_ROOT_KEY", ROOT).start().await;
    let server = stack.url("");
    for (run, why) in [
        (super::ringback(&server, &["stats"]).await, "the API needs a key"),
        // The key of the server is not that of a caller.
        (
            run_fed(spec(&server, &["stats"]).env("RINGBACK_ROOT_KEY", ROOT), Vec::new()).await,
            "the API needs a key",
        ),
        (keyed(&server, &ROOT[1..], &["stats"]).await, "no such key is known"),
        (keyed(&server, "rbk_of-somebody-else", &["export"]).await, "no such key is known"),
    ] {
        assert!(run.code == Some(2) && run.err.contains(why), "{run:?}");
        assert!(run.err.contains("next: set RINGBACK_KEY to a key of this installation"), "{run:?}");
    }
    let key = make(&server, &["--tenant", "a", "--scope", "read"]).await;
    let run = keyed(&server, &key, &["stats", "--tenant", "b"]).await;
    assert!(run.code == Some(2) && run.err.contains("the key is of another tenant"), "{run:?}");
    assert_eq!(keyed(&server, &key, &["stats", "--tenant", "a"]).await.code, Some(0));
    let run = keyed(&server, &key, &["key", "list"]).await;
    assert!(run.code == Some(2) && run.err.contains("this is for the root key alone"), "{run:?}");
}

#[tokio::test]
async fn a_key_is_not_sent_to_other_machines_in_the_clear() {
    let words = ["stats", "--server", "http://ringback.example:7411"];
    let run = keyed("http://127.0.0.1:1", "rbk_secret", &words).await;
    assert!(
        run.code == Some(64) && run.err.contains("is not sent to http://ringback.example:7411"),
        "{run:?}"
    );
    assert!(run.err.contains("RINGBACK_KEY_OVER_HTTP=1"), "{run:?}");
    // With this variable the key may be sent; the call fails because nobody listens there.
    let port = free_port();
    let elsewhere = format!("http://0.0.0.0:{port}");
    let allowed =
        spec(&elsewhere, &["stats"]).env("RINGBACK_KEY", "rbk_secret").env("RINGBACK_KEY_OVER_HTTP", "1");
    for run in [
        keyed(&format!("http://localhost:{port}"), "rbk_secret", &["stats"]).await,
        run_fed(allowed, Vec::new()).await,
        super::ringback(&elsewhere, &["stats"]).await,
    ] {
        assert!(run.code == Some(2) && run.err.contains("no response from"), "{run:?}");
    }
    assert_eq!(keyed(&elsewhere, "rbk_secret", &["stats"]).await.code, Some(64));
}

#[tokio::test]
async fn what_is_no_key_or_tenant_is_refused_before_a_call() {
    let server = "http://127.0.0.1:1";
    let run = keyed(server, "rbk two", &["stats"]).await;
    assert!(run.code == Some(64) && run.err.contains("RINGBACK_KEY has no key"), "{run:?}");
    for words in [
        &["stats", "--tenant", "a/b"][..],
        &["stats", "--tenant", ".."],
        &["key", "create"],
        &["key", "create", "--scope", "root"],
        &["key", "create", "--scope", "read", "--topic", "a b"],
        &["key", "create", "--scope", "read", "--expires", "soon"],
        &["key", "delete", "rbk_x"],
        &["up", "--tenant", "a"],
    ] {
        let run = super::ringback(server, words).await;
        assert_eq!((run.code, run.out.as_str()), (Some(64), ""), "{words:?}: {run:?}");
    }
    let run = run_fed(spec(server, &["stats"]).env("RINGBACK_TENANT", "a b"), Vec::new()).await;
    assert!(run.code == Some(64) && run.err.contains("a tenant is 1 to 32 of"), "{run:?}");
}

#[tokio::test]
async fn a_root_key_is_made_without_a_server_and_serves_as_one() {
    let server = "http://127.0.0.1:1";
    let (first, second) = (
        super::ringback(server, &["key", "root"]).await,
        super::ringback(server, &["key", "root", "--json"]).await,
    );
    let root = first.out.trim_end();
    assert!(first.code == Some(0) && root.len() == 43 && first.err.is_empty(), "{first:?}");
    assert_ne!(second.json()["key"], root);
    let stack = StackOptions::api_only().env("RINGBACK_ROOT_KEY", root).start().await;
    assert_eq!(keyed(&stack.url(""), root, &["stats"]).await.code, Some(0));
}

#[tokio::test]
async fn no_command_shows_the_key_it_was_given() {
    let (stack, sink) = (Stack::options().env("RINGBACK_ROOT_KEY", ROOT).start().await, Sink::start().await);
    let (server, url) = (stack.url(""), sink.url("/hook"));
    let submit = ["submit", "--topic", "t", "--id", "a", "--url", &url, "--delay", "1h", "--tenant", "acme"];
    assert_eq!(keyed(&server, ROOT, &submit).await.code, Some(0));
    // `keyed` checks what each prints.
    for words in [
        &["get", "t/a", "--full"][..],
        &["get", "t/a", "--curl"],
        &["get", "t/a", "--json"],
        &["list", "--full"],
        &["topics"],
        &["topic", "t", "--json"],
        &["export"],
        &["key", "list"],
        &["check", "--json"],
        &["stats", "--help"],
        &["--help"],
    ] {
        let run = keyed(&server, ROOT, &[words, &["--tenant", "acme"]].concat()).await;
        assert_eq!(run.code, Some(0), "{words:?}: {run:?}");
    }
    for words in [&["stats", "--server", "http://127.0.0.1:1"][..], &["get", "t/nobody"], &["stats", "--fly"]]
    {
        assert_ne!(keyed(&server, ROOT, words).await.code, Some(0), "{words:?}");
    }
}

#[tokio::test]
async fn a_watch_of_all_tenants_names_that_of_each_job() {
    let stack = StackOptions::api_only().env("RINGBACK_ROOT_KEY", ROOT).start().await;
    let server = stack.url("");
    let watch = spec(&server, &["watch"]).env("RINGBACK_KEY", ROOT).start();
    // The stream may not be open when the first is submitted.
    eventually(SOON, "both jobs are shown", async || {
        for flags in [&[][..], &["--tenant", "acme"]] {
            let submit = ["submit", "--topic", "t", "--url", "http://127.0.0.1:9/", "--delay", "1h"];
            assert_eq!(keyed(&server, ROOT, &[&submit, flags].concat()).await.code, Some(0));
        }
        let log = watch.log();
        if log.contains("  ~acme/t/") && log.contains("  t/") { Ok(()) } else { Err(log) }
    })
    .await;
    assert!(!watch.log().contains(ROOT), "{}", watch.log());
}
