//! `ringback credential` on real stacks: a credential is set from files, listed without its secrets, and deleted.

use super::ringback;
use crate::prelude::*;

const KEYS: &str = "k1:MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE=";

#[tokio::test]
async fn a_credential_is_set_listed_and_deleted_and_its_secrets_come_from_files() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).to_str().expect("UTF-8").to_owned();
    std::fs::write(path("token"), "canary-token\n").expect("it is written");
    std::fs::write(path("password"), "canary:password\n").expect("it is written");
    let tls = |name: &str| format!("{}/tls/{name}", env!("CARGO_MANIFEST_DIR"));
    for options in StackOptions::api_on_each_store().map(|options| options.env("RINGBACK_MASTER_KEYS", KEYS))
    {
        let stack = options.start().await;
        let server = stack.url("");
        assert!(ringback(&server, &["credential", "list"]).await.err.contains("no credentials"));
        let to = ["--to", "https://bank.example", "--to", "https://b.example:8443"];
        let set = async |name: &str, rest: &[&str]| {
            let words = [&["credential", "set", name], &to[..], rest, &["--json"]].concat();
            ringback(&server, &words).await
        };
        let run = set("bank", &["--bearer-file", &path("token")]).await;
        assert_eq!((run.code, &run.json()["kinds"]), (Some(0), &json!(["bearer"])), "{run:?}");
        let run = set("erp", &["--user", "u", "--password-file", &path("password")]).await;
        assert_eq!((run.code, &run.json()["kinds"]), (Some(0), &json!(["basic"])), "{run:?}");
        let (pem, key, ca) = (tls("caller.pem"), tls("caller.key"), tls("authority.pem"));
        let run = set("tls", &["--certificate", &pem, "--key", &key, "--ca", &ca]).await;
        assert_eq!((run.code, &run.json()["kinds"]), (Some(0), &json!(["certificate", "ca"])), "{run:?}");

        let run = ringback(&server, &["credential", "list"]).await;
        let expected = "bank  bearer          https://b.example:8443,https://bank.example";
        assert!(run.code == Some(0) && run.out.contains(expected), "{run:?}");
        assert!(!run.out.contains("canary"), "{run:?}");
        let run = ringback(&server, &["credential", "delete", "erp", "--json"]).await;
        assert_eq!((run.code, run.json()["items"].as_array().map(Vec::len)), (Some(0), Some(2)), "{run:?}");
        assert_eq!(ringback(&server, &["credential", "delete", "erp"]).await.code, Some(1));

        for (words, expected) in [
            (&["credential", "set", "a b", "--to", "https://b.example", "--ca", "x"][..], "a name is"),
            (&["credential", "set", "bank", "--to", "https://b.example"], "required"),
            (&["credential", "set", "bank", "--to", "https://b.example", "--user", "u"], "--password-file"),
            (&["credential", "set", "bank", "--to", "https://b.example", "--certificate", "x"], "--key"),
            (&["credential", "set", "bank", "--to", "https://b.example", "--ca", "/no/file"], "/no/file"),
            (&["credential", "set", "bank", "--to", "b.example", "--bearer-file", &path("token")], "origins"),
        ] {
            let run = ringback(&server, words).await;
            assert!(run.code != Some(0) && run.err.contains(expected), "{words:?}: {run:?}");
        }
    }
}
