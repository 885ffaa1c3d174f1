//! Opens the dashboard of a stack in a browser, confirms its dialogs, and checks for errors and foreign requests.

use ringback_testkit::{Browser, Stack};
use serde_json::Value;

/// A browser that shows the dashboard of a stack.
pub(super) struct Dashboard {
    pub(super) browser: Browser,
    url: String,
}

/// A selector of the element with a test id.
pub(super) fn id(name: &str) -> String {
    format!("[data-testid='{name}']")
}

/// A selector of the element with a test id in the table row of a key.
pub(super) fn in_row(key: &str, name: &str) -> String {
    format!("[data-testid='row'][data-key='{key}'] [data-testid='{name}']")
}

impl Dashboard {
    /// Starts a browser with nothing open. Without Chromium, prints that and returns `None`.
    #[expect(clippy::print_stderr, reason = "tests that are left out say so")]
    pub(super) async fn start(stack: &Stack) -> Option<Self> {
        let browser = Browser::start().await;
        if browser.is_none() {
            eprintln!("chromium or chromedriver is not installed: the dashboard is not tested");
        }
        Some(Self { browser: browser?, url: stack.url("/ui/") })
    }

    /// Opens a page by its fragment, and waits until it is drawn and has loaded its data.
    pub(super) async fn open(&self, fragment: &str, page: &str) {
        // Another fragment of the same address would not load the page anew.
        self.browser.open("about:blank").await;
        self.browser.open(&format!("{}{fragment}", self.url)).await;
        self.browser.wait_for(&id(page)).await;
        self.browser.wait_gone("[aria-busy='true']").await;
    }

    /// Clicks what a selector matches, checks the API call that the dialog shows, and confirms the dialog. Returns the
    /// status line of the page.
    pub(super) async fn confirm(&self, selector: &str, call: &str) -> String {
        self.browser.click(selector).await;
        self.browser.wait_text(&id("dialog-call"), call).await;
        self.browser.click(&id("dialog-confirm")).await;
        self.browser.wait_gone(&id("dialog")).await;
        self.browser.text(&id("status")).await.expect("the page has a status line")
    }

    /// Panics if the browser logged an error, such as of a script or of the content security policy. Failed requests
    /// are left out, because some are expected.
    pub(super) async fn has_no_complaints(&self) {
        let log = self.browser.log("browser").await;
        let complaints: Vec<&Value> =
            log.iter().filter(|entry| entry["level"] == "SEVERE" && entry["source"] != "network").collect();
        assert!(complaints.is_empty(), "{complaints:#?}");
    }

    /// Panics if a request went to another origin, or if no call of the API was seen.
    pub(super) async fn stays_at_home(&self) {
        let requests = self.browser.requests().await;
        assert!(requests.iter().any(|url| url.contains("/v1/")), "no call of the API was seen: {requests:?}");
        let origin = self.url.strip_suffix("ui/").expect("the path of the dashboard");
        let foreign: Vec<_> = requests
            .iter()
            .filter(|url| !url.starts_with(origin) && !url.starts_with("data:") && !url.starts_with("chrome"))
            .collect();
        assert!(foreign.is_empty(), "{foreign:?}");
    }
}
