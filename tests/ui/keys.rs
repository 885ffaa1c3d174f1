//! The dashboard of an API that requires keys: it asks for one, refuses a wrong key, and offers what the root key or a
//! key that may only read can do.

use reqwest::Method;
use ringback_testkit::Browser;

use super::dashboard::{Dashboard, id, in_row};
use crate::http::tenants::{Caller, ROOT, stacks};
use crate::prelude::*;

#[tokio::test]
async fn a_key_is_asked_for_and_says_what_its_caller_may_do() {
    let [_, embedded]: [StackOptions; 2] = stacks();
    let stack = embedded.start().await;
    let Some(ui) = Dashboard::start(&stack).await else { return };
    let browser = &ui.browser;
    let job = json!({"topic": TOPIC, "id": "one", "url": "http://127.0.0.1:9/", "delay": "1h"});
    Caller::root(None).post(&stack, "/v1/jobs", &job).await.expect(201);
    let daily = json!({"cron": "0 9 * * *", "job": {"topic": TOPIC, "url": "http://127.0.0.1:9/"}});
    Caller::root(None).send(&stack, Method::PUT, "/v1/schedules/daily", Some(&daily)).await.expect(201);
    // A bulk operation over so many jobs takes longer than the test.
    for n in 0..120 {
        let job =
            json!({"topic": "many", "id": format!("job-{n}"), "url": "http://127.0.0.1:9/", "delay": "1h"});
        Caller::root(None).post(&stack, "/v1/jobs", &job).await.expect(201);
    }
    let slowly = json!({"filter": {"topic": "many"}, "rate": 1});
    let slowly = Caller::root(None).post(&stack, "/v1/jobs/cancel", &slowly).await.expect(202);
    let slowly = slowly["id"].as_str().expect("an id");
    let (_, _, reader) = Caller::made(&stack, &json!({"scopes": ["read"]})).await;
    let job_page = format!("#/job?topic={TOPIC}&id=one");

    ui.open("", "key-form").await;
    use_key(browser, "wrong-key-0123456789abcdef0123456789").await;
    browser.wait_for(&format!("{} [role='alert']", id("key-form"))).await;

    use_key(browser, ROOT).await;
    browser.wait_for(&id("panel-states")).await;
    ui.open(&job_page, "page-job").await;
    browser.wait_for(&format!("{}:enabled", id("action-cancel"))).await;
    browser.wait_for(&id("tenant-select")).await;

    browser.click(&id("key-forget")).await;
    use_key(browser, &reader).await;
    browser.wait_text(&id("key-limits"), "may only read").await;
    browser.wait_for(&format!("{}:disabled", id("action-cancel"))).await;
    for action in ["run", "cancel", "reschedule", "revive", "purge"] {
        assert_eq!(
            browser.count(&format!("{}:enabled", id(&format!("action-{action}")))).await,
            0,
            "{action}"
        );
    }
    for (page, action) in [("topics", "pause"), ("destinations", "pause")] {
        ui.open(&format!("#/{page}"), &format!("page-{page}")).await;
        browser.wait_for(&format!("{}:disabled", id(&format!("action-{action}")))).await;
        assert_eq!(browser.count(&format!("{}:enabled", id(&format!("action-{action}")))).await, 0, "{page}");
    }
    for (page, actions) in [("schedules", &["pause", "run"][..]), ("bulk", &["stop"])] {
        ui.open(&format!("#/{page}"), &format!("page-{page}")).await;
        for action in actions {
            let action = id(&format!("action-{action}"));
            browser.wait_for(&format!("{action}:disabled")).await;
            assert_eq!(browser.count(&format!("{action}:enabled")).await, 0, "{page}");
        }
    }

    browser.click(&id("key-forget")).await;
    use_key(browser, ROOT).await;
    ui.open("#/bulk", "page-bulk").await;
    ui.confirm(&in_row(slowly, "action-stop"), &format!("DELETE /v1/bulk/{slowly}")).await;
    let operation = Caller::root(None).get(&stack, &format!("/v1/bulk/{slowly}")).await.expect(200);
    assert_eq!(operation["state"], "stopped", "{operation}");
    ui.stays_at_home().await;
    let kept = browser.run("return [document.cookie, localStorage.length, location.href]", &[]).await;
    assert_eq!((&kept[0], &kept[1]), (&json!(""), &json!(0)));
    assert!(!kept[2].as_str().expect("an address").contains(&reader), "{kept}");
}

pub(super) async fn use_key(browser: &Browser, key: &str) {
    browser.write(&id("key-input"), key).await;
    browser.click(&id("key-submit")).await;
}
