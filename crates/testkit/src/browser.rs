//! A headless Chromium that tests drive by WebDriver. Tests open pages, click elements, type, run scripts, read logs,
//! take screenshots and emulate sizes, colour schemes and time zones. The processes are in `driver`.

mod driver;

use std::time::Duration;

use reqwest::{Client, Method};
use serde_json::{Value, json};

use self::driver::Driver;
use crate::network::http_client;
use crate::time::eventually;

/// The limit for what a page does at once; generous, for a busy machine.
const SOON: Duration = Duration::from_secs(20);

/// The key of an element in answers of WebDriver.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A key of the keyboard that writes no character, as WebDriver names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Moves the focus on.
    Tab,
    /// Presses the button or follows the link that has the focus.
    Enter,
    /// Closes a dialog.
    Escape,
}

impl Key {
    fn code(self) -> &'static str {
        match self {
            Self::Tab => "\u{e004}",
            Self::Enter => "\u{e007}",
            Self::Escape => "\u{e00c}",
        }
    }
}

/// A browser with one tab and a profile of its own. Dropping it ends all of its processes. A method panics when the
/// browser answers with an error.
pub struct Browser {
    http: Client,
    session: String,
    driver: Driver,
}

impl Browser {
    /// Starts a browser. Returns `None` if Chromium or its driver is not installed; see `deploy/local/chromium.sh`.
    pub async fn start() -> Option<Self> {
        let driver = Driver::start().await?;
        let http = http_client();
        let url = driver.url("/session");
        let made = call(&http, Method::POST, &url, &driver.capabilities()).await;
        let made = made.unwrap_or_else(|error| panic!("no session of the browser: {error}"));
        let id = made["sessionId"].as_str().expect("a session has an id");
        Some(Self { session: driver.url(&format!("/session/{id}")), http, driver })
    }

    /// The process id of the driver, whose end is the end of the browser.
    pub fn pid(&self) -> u32 {
        self.driver.pid()
    }

    /// Opens a URL and waits until the page has loaded.
    pub async fn open(&self, url: &str) {
        self.must("/url", &json!({"url": url})).await;
    }

    /// Runs `script`, the body of a function with `arguments`, in the page and returns its result.
    pub async fn run(&self, script: &str, arguments: &[Value]) -> Value {
        self.must("/execute/sync", &json!({"script": script, "args": arguments})).await
    }

    /// Runs `script`, the body of an async function with `arguments`, in the page and returns its awaited result.
    pub async fn run_async(&self, script: &str, arguments: &[Value]) -> Value {
        // WebDriver awaits promises.
        self.run(&format!("return (async () => {{ {script} }}).apply(null, arguments)"), arguments).await
    }

    /// Clicks the first element that matches a CSS selector, as a user does: the element has to be visible and not
    /// covered. Tries again for up to `SOON`, then panics.
    pub async fn click(&self, selector: &str) {
        eventually(SOON, &format!("{selector} can be clicked"), async || {
            self.element_call(selector, "click", &json!({})).await
        })
        .await;
    }

    /// Replaces the text of the first field that matches a CSS selector. Tries again for up to `SOON`, then panics.
    pub async fn write(&self, selector: &str, text: &str) {
        eventually(SOON, &format!("{selector} can be written to"), async || {
            self.element_call(selector, "clear", &json!({})).await?;
            self.element_call(selector, "value", &json!({"text": text})).await
        })
        .await;
    }

    /// Presses and releases a key. The element that has the focus receives it.
    pub async fn press(&self, key: Key) {
        let strokes = ["keyDown", "keyUp"].map(|kind| json!({"type": kind, "value": key.code()}));
        let keyboard = json!({"type": "key", "id": "keyboard", "actions": strokes});
        self.must("/actions", &json!({"actions": [keyboard]})).await;
    }

    /// The number of elements that match a CSS selector.
    pub async fn count(&self, selector: &str) -> u64 {
        let script = "return document.querySelectorAll(arguments[0]).length";
        self.run(script, &[selector.into()]).await.as_u64().expect("a number")
    }

    /// The visible text of the first element that matches a CSS selector; `None` if no element matches.
    pub async fn text(&self, selector: &str) -> Option<String> {
        let script = "return document.querySelector(arguments[0])?.innerText";
        self.run(script, &[selector.into()]).await.as_str().map(str::to_owned)
    }

    /// Waits until an element matches a CSS selector. Panics after `SOON`.
    pub async fn wait_for(&self, selector: &str) {
        eventually(SOON, &format!("{selector} is shown"), async || match self.count(selector).await {
            0 => Err(self.text("body").await.unwrap_or_default()),
            _ => Ok(()),
        })
        .await;
    }

    /// Waits until no element matches a CSS selector. Panics after `SOON`.
    pub async fn wait_gone(&self, selector: &str) {
        eventually(SOON, &format!("{selector} is gone"), async || match self.count(selector).await {
            0 => Ok(()),
            _ => Err(self.text("body").await.unwrap_or_default()),
        })
        .await;
    }

    /// Waits until the text of the first element that matches a CSS selector contains `part`, and returns the whole
    /// text. Panics after `SOON`.
    pub async fn wait_text(&self, selector: &str, part: &str) -> String {
        eventually(SOON, &format!("{selector} has the text {part}"), async || {
            let text = self.text(selector).await;
            text.filter(|text| text.contains(part))
                .ok_or("no text")
                .or(Err(self.text("body").await))
                .map_err(Option::unwrap_or_default)
        })
        .await
    }

    /// The entries that a log got since its last call. `kind` is `browser` for the console, `performance` for network
    /// events.
    pub async fn log(&self, kind: &str) -> Vec<Value> {
        let log = self.must("/se/log", &json!({"type": kind})).await;
        log.as_array().unwrap_or_else(|| panic!("no log: {log}")).clone()
    }

    /// The URLs that the browser requested since the last call of this method or of `log("performance")`.
    pub async fn requests(&self) -> Vec<String> {
        let log = self.log("performance").await;
        let events = log.iter().map(|entry| {
            let text = entry["message"].as_str().expect("a message");
            let event: Value = serde_json::from_str(text).expect("an event in JSON");
            event["message"].clone()
        });
        let requests = events.filter(|event| event["method"] == "Network.requestWillBeSent");
        requests
            .map(|event| event["params"]["request"]["url"].as_str().expect("an address").to_owned())
            .collect()
    }

    /// A screenshot of the visible part of the page: a PNG in base64.
    pub async fn screenshot(&self) -> String {
        let image = self.call(Method::GET, "/screenshot", &Value::Null).await.expect("a screenshot");
        image.as_str().expect("base64").to_owned()
    }

    /// Sets the size of the visible part of the page in CSS pixels.
    pub async fn resize(&self, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", &size).await;
    }

    /// Sets the colour scheme that the user prefers: `light` or `dark`.
    pub async fn prefer_colours(&self, scheme: &str) {
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        self.devtools("Emulation.setEmulatedMedia", &json!({"features": [feature]})).await;
    }

    /// Sets the time zone that pages of the tab see, by its IANA name.
    pub async fn set_time_zone(&self, zone: &str) {
        self.devtools("Emulation.setTimezoneOverride", &json!({"timezoneId": zone})).await;
    }

    /// Whether an alert, a confirmation or a prompt of a script is open; also false if the browser does not answer.
    pub async fn has_alert(&self) -> bool {
        self.call(Method::GET, "/alert/text", &Value::Null).await.is_ok()
    }

    /// Runs a command of the DevTools protocol.
    async fn devtools(&self, command: &str, params: &Value) {
        self.must("/goog/cdp/execute", &json!({"cmd": command, "params": params})).await;
    }

    async fn element_call(&self, selector: &str, action: &str, body: &Value) -> Result<(), String> {
        let found =
            self.call(Method::POST, "/element", &json!({"using": "css selector", "value": selector})).await?;
        let id = found[ELEMENT].as_str().ok_or("no element")?;
        self.call(Method::POST, &format!("/element/{id}/{action}"), body).await.map(|_| ())
    }

    async fn must(&self, path: &str, body: &Value) -> Value {
        let answer = self.call(Method::POST, path, body).await;
        answer.unwrap_or_else(|error| panic!("{path} {body}: {error}"))
    }

    async fn call(&self, method: Method, path: &str, body: &Value) -> Result<Value, String> {
        call(&self.http, method, &format!("{}{path}", self.session), body).await
    }
}

/// Sends a WebDriver command, without a body if `body` is null. Returns the `value` of the answer, or the error as text.
async fn call(http: &Client, method: Method, url: &str, body: &Value) -> Result<Value, String> {
    let mut request = http.request(method, url);
    if !body.is_null() {
        request = request.header("content-type", "application/json").body(body.to_string());
    }
    let answer = request.send().await.map_err(|error| error.to_string())?;
    let is_done = answer.status().is_success();
    let text = answer.text().await.map_err(|error| error.to_string())?;
    let mut answer: Value = serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))?;
    let value = answer["value"].take();
    if is_done { Ok(value) } else { Err(format!("{}: {}", value["error"], value["message"])) }
}
