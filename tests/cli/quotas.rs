//! `ringback quota` on real stacks: sets, lists and deletes quotas, which submits keep to; wrong values are refused.

use super::keys::{ROOT, keyed};
use super::{Run, ringback};
use crate::prelude::*;

#[tokio::test]
async fn without_a_root_key_it_says_that_a_quota_has_no_effect_yet() {
    let stack = StackOptions::api_only().start().await;
    for format in [&[][..], &["--json"]] {
        let words = [&["quota", "set", "acme", "--jobs", "7"], format].concat();
        let run = ringback(&stack.url(""), &words).await;
        assert!(run.code == Some(0) && run.out.contains("acme"), "{run:?}");
        assert!(run.err.starts_with("the quota has no effect yet"), "{run:?}");
        assert!(run.err.contains("RINGBACK_ROOT_KEY"), "{run:?}");
        assert_eq!(run.out.contains("no effect yet"), !format.is_empty(), "{run:?}");
    }
}

fn items(run: &Run) -> Vec<Value> {
    assert_eq!(run.code, Some(0), "{run:?}");
    run.json()["items"].as_array().expect("a list").clone()
}

#[tokio::test]
async fn a_quota_is_set_listed_kept_to_and_deleted() {
    for options in StackOptions::api_on_each_store().map(|options| options.env("RINGBACK_ROOT_KEY", ROOT)) {
        let stack = options.start().await;
        let server = stack.url("");
        let root = async |words: &[&str]| keyed(&server, ROOT, words).await;
        assert!(root(&["quota", "list"]).await.err.contains("no quotas"));

        let run = root(&["quota", "set", "*", "--jobs", "1", "--jobs-per-second", "50"]).await;
        assert_eq!(
            (run.code, run.out.as_str()),
            (
                Some(0),
                "TENANT  JOBS/S  JOBS  TOPICS  LANES  BODY\n*       50      1     any     any    any\n"
            )
        );
        let run = root(&[
            "quota",
            "set",
            "acme",
            "--jobs",
            "7",
            "--topics",
            "2",
            "--lanes",
            "3",
            "--body-bytes",
            "4",
            "--json",
        ])
        .await;
        let acme = json!({"tenant": "acme", "jobs_per_second": null, "jobs": 7, "topics": 2, "lanes": 3, "body_bytes": 4});
        assert_eq!((run.code, run.json()), (Some(0), acme.clone()), "{run:?}");
        let run = root(&["quota", "set", "free", "--unlimited"]).await;
        assert!(
            run.code == Some(0) && run.out.contains("free    any     any   any     any    any"),
            "{run:?}"
        );

        let all = items(&root(&["quota", "list", "--json"]).await);
        let any = json!({"tenant": "free", "jobs_per_second": null, "jobs": null, "topics": null, "lanes": null, "body_bytes": null});
        let of = |tenant: &str, limits: &[(&str, u64)]| {
            let mut quota = any.clone();
            quota["tenant"] = tenant.into();
            limits.iter().for_each(|(name, n)| quota[name] = (*n).into());
            quota
        };
        let (others, free) = (of("*", &[("jobs_per_second", 50), ("jobs", 1)]), any.clone());
        assert_eq!(all, [&others, &acme, &free].map(Clone::clone));
        for (tenant, quota) in [("acme", acme.clone()), ("free", free.clone()), ("another", others)] {
            let held = items(&root(&["quota", "list", "--json", "--tenant", tenant]).await);
            assert_eq!(held, [quota], "{tenant}");
        }

        let run = root(&["key", "create", "--tenant", "another", "--scope", "submit"]).await;
        let key = run.out.trim_end();
        let submit = ["submit", "--topic", "t", "--delay", "1h", "--url", "http://127.0.0.1:9/"];
        assert_eq!(keyed(&server, key, &submit).await.code, Some(0));
        let run = keyed(&server, key, &submit).await;
        assert!(run.code != Some(0) && run.err.contains("429"), "{run:?}");

        let left = items(&root(&["quota", "delete", "*", "--json", "--tenant", "acme"]).await);
        assert_eq!(left, [acme, free], "all that are left, whatever the tenant");
        assert_eq!(keyed(&server, key, &submit).await.code, Some(0));
        assert!(items(&root(&["quota", "list", "--json", "--tenant", "another"]).await).is_empty());
        let run = root(&["quota", "delete", "*"]).await;
        assert!(run.code == Some(1) && run.err.contains("no quota"), "{run:?}");
        let run = keyed(&server, key, &["quota", "list"]).await;
        assert!(run.code == Some(2) && run.err.contains("this is for the root key alone"), "{run:?}");
    }
}

#[tokio::test]
async fn what_is_no_quota_is_refused_before_a_call() {
    for words in [
        &["set", "acme"][..],
        &["set", "--jobs", "1"],
        &["set", "a/b", "--jobs", "1"],
        &["set", "acme", "--jobs", "0"],
        &["set", "acme", "--jobs", "1000000001"],
        &["set", "acme", "--jobs-per-second", "0"],
        &["set", "acme", "--jobs-per-second", "1000001"],
        &["set", "acme", "--jobs-per-second", "1.5"],
        &["set", "acme", "--topics", "10001"],
        &["set", "acme", "--lanes", "0"],
        &["set", "acme", "--body-bytes", "262145"],
        &["set", "acme", "--unlimited", "--jobs", "1"],
        &["delete", ".."],
        &["delete"],
    ] {
        let run = super::ringback("http://127.0.0.1:1", &[&["quota"], words].concat()).await;
        assert_eq!((run.code, run.out.as_str()), (Some(64), ""), "{words:?}: {run:?}");
    }
}
