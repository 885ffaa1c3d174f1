//! Tenants and API keys on each store: no operation shows or touches what belongs to another tenant, and keys allow
//! what they say until they are deleted or expire. This file has the callers that the tests use.

mod all;
mod bulk;
mod failures;
mod isolation;
mod keys;
mod quotas;
mod revocation;
mod shares;
mod topic_keys;

use http::{HeaderMap, HeaderValue, Method, header};
use reqwest::Client;
use ringback_testkit::{Reply, http_client};

use crate::prelude::*;

pub(crate) const ROOT: &str = "root-key-of-the-tests-0123456789abcdef";
const MASTER_KEY: &str = "k1:MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE=";
const ALL: [&str; 5] = ["submit", "consume", "read", "manage", "import"];

/// The options of stacks whose API requires keys, one for each store.
pub(crate) fn stacks() -> [StackOptions; 2] {
    StackOptions::each_store()
        .map(|options| options.env("RINGBACK_ROOT_KEY", ROOT).env("RINGBACK_MASTER_KEYS", MASTER_KEY))
}

/// Who calls an API: a key, and the tenant that the operator has chosen.
#[derive(Clone)]
pub(crate) struct Caller {
    client: Client,
    key: String,
    tenant: Option<&'static str>,
}

impl Caller {
    pub(crate) fn root(tenant: Option<&'static str>) -> Self {
        Self { client: http_client(), key: ROOT.to_owned(), tenant }
    }

    /// A caller with a new key, made by the root key.
    pub(crate) async fn with(stack: &Stack, ask: &Value) -> Self {
        Self::made(stack, ask).await.0
    }

    /// A caller with a new key, the id of the key, and the key.
    pub(crate) async fn made(stack: &Stack, ask: &Value) -> (Self, String, String) {
        let made = Self::root(None).send(stack, Method::POST, "/v1/keys", Some(ask)).await.expect(201);
        let text = |field: &str| made[field].as_str().expect("a text").to_owned();
        (Self { client: http_client(), key: text("key"), tenant: None }, text("id"), text("key"))
    }

    /// A caller with a new key of a tenant and all scopes.
    pub(crate) async fn of(stack: &Stack, tenant: &str) -> Self {
        Self::with(stack, &json!({"tenant": tenant, "scopes": ALL})).await
    }

    fn headers(&self) -> HeaderMap {
        let bearer = HeaderValue::try_from(format!("Bearer {}", self.key)).expect("visible ASCII");
        let tenant = self.tenant.map(|tenant| ("ringback-tenant", tenant));
        let mut headers = HeaderMap::from_iter([(header::AUTHORIZATION, bearer)]);
        headers.extend(
            tenant
                .map(|(name, value)| (http::HeaderName::from_static(name), HeaderValue::from_static(value))),
        );
        headers
    }

    pub(crate) async fn send(
        &self,
        stack: &Stack,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Reply {
        self.send_to(&stack.url(path), method, body).await
    }

    async fn send_to(&self, url: &str, method: Method, body: Option<&Value>) -> Reply {
        let mut request = self.client.request(method, url).headers(self.headers());
        if let Some(body) = body {
            let is_lines = url.contains("/v1/import");
            let kind = if is_lines { "application/x-ndjson" } else { "application/json" };
            let lines = body["lines"].as_str().filter(|_| is_lines).map(str::to_owned);
            request =
                request.header(header::CONTENT_TYPE, kind).body(lines.unwrap_or_else(|| body.to_string()));
        }
        Reply::read(request.send().await.expect("an answer")).await.expect("a whole answer")
    }

    pub(crate) async fn get(&self, stack: &Stack, path: &str) -> Reply {
        self.send(stack, Method::GET, path, None).await
    }

    /// Repeats a `GET` until `is_right` accepts its answer, and returns that. Panics after [`SOON`], or for a status
    /// other than 200.
    pub(crate) async fn wait_get(
        &self,
        stack: &Stack,
        path: &str,
        is_right: impl Fn(&Value) -> bool,
    ) -> Value {
        eventually(SOON, &format!("GET {path} shows what it should"), async || {
            let answer = self.get(stack, path).await.expect(200);
            if is_right(&answer) { Ok(answer) } else { Err(answer) }
        })
        .await
    }

    /// Repeats a `GET` until it has a status. Panics after [`SOON`].
    pub(crate) async fn wait_status(&self, stack: &Stack, path: &str, status: u16) {
        self.wait_status_at(&stack.url(path), status, SOON).await;
    }

    /// Repeats a `GET` of a full URL until it has a status. Panics after `within`.
    async fn wait_status_at(&self, url: &str, status: u16, within: Duration) {
        eventually(within, &format!("GET {url} is answered {status}"), async || {
            let found = self.send_to(url, Method::GET, None).await.status;
            if found == status { Ok(()) } else { Err(found) }
        })
        .await;
    }

    pub(crate) async fn post(&self, stack: &Stack, path: &str, body: &Value) -> Reply {
        self.send(stack, Method::POST, path, Some(body)).await
    }
}
