//! Tenants in the dashboard of the root key: lists show what the overview counts, links and actions go to the tenant
//! of their row, and one tenant can be chosen.

use super::dashboard::{Dashboard, id, in_row};
use super::keys::use_key;
use crate::http::tenants::{Caller, ROOT, stacks};
use crate::prelude::*;

/// Imports a dead job with the same topic and id for each of two tenants and for none.
async fn dead_jobs(stack: &Stack) {
    for tenant in [None, Some("acme"), Some("globex")] {
        let dead = json!({"topic": "pay", "id": "order-1", "url": "http://127.0.0.1:9/", "state": "dead", "tenant": tenant,
            "reason": "exhausted", "attempts": 4, "failures": 3, "body": {"of": tenant},
            "last": {"at": "2026-11-20T09:30:00.000Z", "status": 503, "duration_ms": 7}});
        Caller::root(tenant).post(stack, "/v1/import", &dead).await.expect(200);
    }
}

#[tokio::test]
async fn the_root_key_finds_the_dead_jobs_of_all_tenants_and_acts_for_the_one_of_a_row() {
    let [_, embedded]: [StackOptions; 2] = stacks();
    let stack = embedded.start().await;
    let Some(ui) = Dashboard::start(&stack).await else { return };
    let browser = &ui.browser;
    dead_jobs(&stack).await;

    ui.open("", "key-form").await;
    use_key(browser, ROOT).await;
    browser.wait_text(&id("panel-states"), "3 dead").await;
    browser.wait_for(&format!("{} option[value='globex']", id("tenant-select"))).await;
    let options = browser.text(&id("tenant-select")).await.expect("a select");
    assert_eq!(options.split_whitespace().collect::<Vec<_>>(), ["all", "none", "acme", "globex", "another…"]);

    ui.open("#/jobs?state=dead", "page-jobs").await;
    for row in ["pay/order-1", "acme/pay/order-1", "globex/pay/order-1"] {
        browser.wait_for(&format!("[data-key='{row}']")).await;
    }
    assert_eq!(
        browser.count(&format!("{}:enabled", id("action-purge"))).await,
        0,
        "not for all tenants at once"
    );
    ui.open("#/topics", "page-topics").await;
    ui.confirm(&in_row("acme/pay", "action-pause"), "POST /v1/topics/pay/pause").await;
    let paused =
        async |tenant| Caller::root(tenant).get(&stack, "/v1/topics/pay").await.expect(200)["paused"].clone();
    assert_eq!(
        (paused(None).await, paused(Some("acme")).await, paused(Some("globex")).await),
        (false.into(), true.into(), false.into())
    );
    ui.open("#/dead", "page-dead").await;
    browser.wait_text(&id("dead-sample"), "Complete: 3 dead jobs.").await;
    browser.click(&in_row("globex/exhausted|127.0.0.1:9|503", "action-purge")).await;
    browser.wait_text(&id("dry-run-count"), "1 job fit").await;
    browser.click(&id("dialog-dismiss")).await;

    ui.open("#/jobs?state=dead", "page-jobs").await;
    browser.click("[data-key='acme/pay/order-1'] th a").await;
    browser.wait_text(&id("owner"), "tenant acme").await;
    browser.wait_text(&id("request-body"), "acme").await;
    ui.confirm(&id("action-revive"), "POST /v1/jobs/pay/order-1/revive").await;
    let state = async |tenant| {
        Caller::root(tenant).get(&stack, "/v1/jobs/pay/order-1").await.expect(200)["state"].clone()
    };
    assert_eq!((state(None).await, state(Some("globex")).await), ("dead".into(), "dead".into()));
    assert_eq!(state(Some("acme")).await, "ready");

    ui.open("#/jobs?state=dead", "page-jobs").await;
    choose(&ui, "globex").await;
    browser.wait_gone("[data-key='globex/pay/order-1']").await;
    browser.wait_for("[data-key='pay/order-1']").await;
    assert_eq!(browser.count(&id("row")).await, 1);
    browser.wait_for(&format!("{}:enabled", id("action-purge"))).await;
    choose(&ui, "").await;
    browser.write(&id("tenant-input"), "initech").await;
    browser.click(&id("tenant-apply")).await;
    browser.wait_for(&id("empty-jobs")).await;
    let chosen = browser.run("return sessionStorage.getItem('ringback-tenant')", &[]).await;
    assert_eq!(chosen, "initech");
    ui.has_no_complaints().await;
}

/// Sets the tenant selector to a value by a script, and fires its `change` event.
async fn choose(ui: &Dashboard, value: &str) {
    let script = "const select = document.querySelector(arguments[0]);
        select.value = arguments[1];
        select.dispatchEvent(new Event('change', { bubbles: true }));";
    ui.browser.wait_for(&format!("{} option[value='{value}']", id("tenant-select"))).await;
    ui.browser.run(script, &[id("tenant-select").into(), value.into()]).await;
}
