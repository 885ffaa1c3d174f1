//! Tests of the driven browser: it clicks, types, reports logs, requests and dialogs, and leaves no process or file.

use std::path::Path;

use ringback_testkit::{Browser, Key, eventually};

use crate::sample_jobs::SOON;

const PAGE: &str = "data:text/html,<title>A page</title><button onclick='count.textContent=1'>Count</button><p id=count>0</p><script>console.error('said so')</script>";

#[tokio::test]
async fn a_browser_clicks_types_logs_and_is_gone_when_dropped() {
    let Some(browser) = Browser::start().await else {
        return eprintln!("chromium or chromedriver is not installed: the browser is not tested");
    };
    browser.open(PAGE).await;
    assert_eq!(browser.run("return document.title + arguments[0]", &["!".into()]).await, "A page!");
    assert_eq!(browser.run_async("return await Promise.resolve(7)", &[]).await, 7);
    assert_eq!(browser.text("#count").await.as_deref(), Some("0"));
    browser.press(Key::Tab).await;
    browser.press(Key::Enter).await;
    browser.wait_text("#count", "1").await;
    let log = browser.log("browser").await;
    assert!(log.iter().any(|entry| entry["message"].to_string().contains("said so")), "{log:?}");
    assert!(browser.requests().await.iter().any(|url| url.starts_with("data:text/html")));
    assert!(!browser.has_alert().await);
    browser.run("setTimeout(() => alert('here'))", &[]).await;
    eventually(
        SOON,
        "the alert is open",
        async || if browser.has_alert().await { Ok(()) } else { Err("none") },
    )
    .await;

    let pid = browser.pid();
    let processes = children(pid);
    assert!(!processes.is_empty(), "the driver has started a browser");
    drop(browser);
    assert!(!is_there(pid));
    eventually(SOON, "the browser has ended", async || {
        let left: Vec<_> = processes.iter().filter(|&&pid| is_there(pid)).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await;
}

/// The process ids of the children that any thread of a process has started.
fn children(pid: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it runs").flatten();
    let lists =
        threads.map(|thread| std::fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    lists.collect::<String>().split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Whether a process exists and is no zombie.
fn is_there(pid: u32) -> bool {
    let path = format!("/proc/{pid}");
    let state = std::fs::read_to_string(Path::new(&path).join("stat")).unwrap_or_default();
    !state.is_empty() && !state.contains(") Z ")
}
