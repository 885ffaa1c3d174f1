//! Serves the files of the dashboard at `/ui/`, to which `/` redirects. They are part of the binary, and are sent with
//! a strict content security policy and entity tags. The dashboard calls the public API like any other client.

mod assets;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, LazyLock};

use axum::extract::Path;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::{MethodRouter, get};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use self::assets::ASSETS;
use crate::error;
use crate::operation::Need;
use crate::route::Route;
use crate::state::Api;

/// The page itself, relative to `/ui/`.
const INDEX: &str = "index.html";

/// What the page may do: load its own files, call its own origin, and nothing else. Markup is made by lit-html alone.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types lit-html",
);

/// A file of the dashboard, as it is served.
struct Asset {
    name: &'static str,
    body: Bytes,
    media_type: HeaderValue,
    tag: HeaderValue,
}

static SERVED: LazyLock<Vec<Asset>> =
    LazyLock::new(|| ASSETS.iter().map(|(name, body)| Asset::new(name, body)).collect());

impl Asset {
    fn new(name: &'static str, body: &'static [u8]) -> Self {
        // It tells versions of a file apart; nobody gains from a collision.
        let mut hasher = DefaultHasher::new();
        body.hash(&mut hasher);
        let tag = format!("\"{:016x}\"", hasher.finish());
        Self {
            name,
            body: Bytes::from_static(body),
            media_type: media_type(name),
            tag: tag.try_into().expect("hexadecimal digits in quotes are a header value"),
        }
    }

    /// The file with its headers; 304 without the file if the request's `If-None-Match` has its tag.
    fn answer(&self, request: &HeaderMap) -> Response {
        let known = request.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        let is_known = known
            .flat_map(|value| value.split(','))
            .any(|tag| tag.trim().trim_start_matches("W/").as_bytes() == self.tag.as_bytes());
        let status = if is_known { StatusCode::NOT_MODIFIED } else { StatusCode::OK };
        let body = if is_known { Bytes::new() } else { self.body.clone() };
        let mut answer = (status, body).into_response();
        let headers = answer.headers_mut();
        headers.insert(header::CONTENT_TYPE, self.media_type.clone());
        headers.insert(header::ETAG, self.tag.clone());
        // After an upgrade the files of both versions must not be mixed, so each is asked for again.
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        answer
    }
}

/// The routes of the dashboard, which need no key, with the redirects of `/` and `/ui`.
pub(crate) fn table() -> Vec<Route> {
    let pages: [(_, MethodRouter<Arc<Api>>); 4] = [
        // For whoever types the address of the API into a browser.
        ("/", get(|| async { Redirect::temporary("ui/") })),
        // A relative address, so that it also holds behind a proxy with a prefix.
        ("/ui", get(|| async { Redirect::permanent("ui/") })),
        ("/ui/", get(|headers: HeaderMap| async move { answer(INDEX, &headers).await })),
        (
            "/ui/{*asset}",
            get(|Path(name): Path<String>, headers: HeaderMap| async move { answer(&name, &headers).await }),
        ),
    ];
    let route = |(path, page)| Route::undocumented(Need::Nothing, ("dashboard", Method::GET, path), page);
    pages.into_iter().map(route).collect()
}

async fn answer(name: &str, request: &HeaderMap) -> Response {
    match SERVED.iter().find(|asset| asset.name == name) {
        Some(asset) => asset.answer(request),
        None => error::not_found().await.into_response(),
    }
}

fn media_type(name: &str) -> HeaderValue {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    HeaderValue::from_static(match ending {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "text/plain; charset=utf-8",
    })
}

#[cfg(test)]
mod tests;
