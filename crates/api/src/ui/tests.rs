//! Tests of the dashboard's files over the router of the API: who may load them, their headers, and what they may
//! contain.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use axum::body::Body;
use http::{Request, StatusCode};
use tower::ServiceExt as _;

use super::*;
use crate::access::{Access, Gate};
use crate::app;
use crate::config::Dashboard;
use crate::state::tests::unprepared;

/// What an API with these rules for who may call answers to a `GET`.
async fn answer_of(access: Access, dashboard: Dashboard, path: &str, headers: &[(&str, &str)]) -> Response {
    let api = unprepared();
    let gate = Gate::with(access, &api);
    let request =
        headers.iter().fold(Request::get(path), |request, (name, value)| request.header(*name, *value));
    let request = request.body(Body::empty()).unwrap();
    app::app(api, gate, app::table(dashboard)).oneshot(request).await.unwrap()
}

async fn get(path: &str, headers: &[(&str, &str)]) -> Response {
    answer_of(Access::open(), Dashboard::On, path, headers).await
}

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/ui"))
}

fn files(folder: &Path, found: &mut BTreeSet<String>, root: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found, root);
        } else {
            found.insert(path.strip_prefix(root).unwrap().display().to_string());
        }
    }
}

#[test]
fn each_file_of_the_folder_is_served() {
    let mut found = BTreeSet::new();
    files(folder(), &mut found, folder());
    let known: BTreeSet<_> = ASSETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(known, found);
}

#[test]
fn the_page_asks_for_all_modules_at_once() {
    let (_, index) = ASSETS.iter().find(|(name, _)| *name == INDEX).unwrap();
    let index = String::from_utf8_lossy(index);
    let modules = ASSETS.iter().filter(|(name, _)| name.ends_with(".js") && *name != "main.js");
    for (name, _) in modules {
        assert!(index.contains(&format!(r#"<link rel="modulepreload" href="{name}">"#)), "{name}");
    }
}

#[test]
fn no_file_has_inline_code_or_styles_or_names_another_host() {
    for (name, body) in ASSETS.iter().filter(|(name, _)| !name.starts_with("vendor/")) {
        let text = String::from_utf8_lossy(body);
        for refused in [" style=", " onclick=", "javascript:", "unsafeHTML", ".innerHTML", "https://"] {
            assert!(!text.contains(refused), "{name} has {refused}");
        }
    }
}

#[test]
fn the_dashboard_reads_the_words_of_a_refusal() {
    let (_, session) = ASSETS.iter().find(|(name, _)| *name == "core/session.js").unwrap();
    let words = "the key does not have the scope";
    assert!(String::from_utf8_lossy(session).contains(&format!("/^{words} (\\w+); it has ([\\w, ]+)$/")));
    assert!(include_str!("../access/gate.rs").contains(&format!("\"{words} {{scope}}; it has {{}}\"")));
}

#[tokio::test]
async fn the_page_has_a_strict_policy() {
    let answer = get("/ui/", &[]).await;
    assert_eq!(answer.status(), StatusCode::OK);
    let headers = answer.headers();
    assert_eq!(headers[header::CONTENT_TYPE], "text/html; charset=utf-8");
    let policy = headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none';") && !policy.contains("unsafe"), "{policy}");
    assert!(policy.contains("require-trusted-types-for 'script'"), "{policy}");
    assert_eq!(headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
    assert_eq!(headers[header::REFERRER_POLICY], "no-referrer");
}

#[tokio::test]
async fn a_file_that_the_browser_has_is_not_sent_again() {
    let tag = get("/ui/main.js", &[]).await.headers()[header::ETAG].clone();
    let tag = tag.to_str().unwrap();
    for known in [tag.to_owned(), format!("\"other\", W/{tag}")] {
        assert_eq!(
            get("/ui/main.js", &[("if-none-match", &known)]).await.status(),
            StatusCode::NOT_MODIFIED,
            "{known}"
        );
    }
    assert_eq!(get("/ui/main.js", &[("if-none-match", "\"other\"")]).await.status(), StatusCode::OK);
    assert_eq!(get("/ui/app.css", &[("if-none-match", tag)]).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn the_path_without_a_slash_leads_to_the_page() {
    let answer = get("/ui", &[]).await;
    assert_eq!(answer.status(), StatusCode::PERMANENT_REDIRECT);
    assert_eq!(answer.headers()[header::LOCATION], "ui/");
}

async fn status(access: Access, path: &str, headers: &[(&str, &str)]) -> StatusCode {
    answer_of(access, Dashboard::On, path, headers).await.status()
}

#[tokio::test]
async fn the_files_need_no_key_and_the_data_does() {
    let asking = || Access { root: Some("0123456789abcdef0123456789abcdef".parse().unwrap()), hosts: None };
    for path in ["/", "/ui", "/ui/", "/ui/main.js", "/ui/nothing.js"] {
        assert_ne!(status(asking(), path, &[]).await, StatusCode::UNAUTHORIZED, "{path}");
    }
    assert_eq!(status(asking(), "/v1/stats", &[]).await, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn without_a_root_key_it_is_for_this_machine_and_links_from_other_sites_lead_there() {
    let local = || Access { root: None, hosts: Some(vec!["localhost".to_owned()]) };
    let host = ("host", "localhost:7411");
    for site in ["same-origin", "none", "same-site", "cross-site"] {
        assert_eq!(
            status(local(), "/ui/", &[host, ("sec-fetch-site", site)]).await,
            StatusCode::OK,
            "{site}"
        );
    }
    assert_eq!(status(local(), "/ui/", &[("host", "evil.example")]).await, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn the_root_leads_a_browser_there() {
    let answer = get("/", &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")]).await;
    assert_eq!(answer.status(), StatusCode::TEMPORARY_REDIRECT);
    assert_eq!(answer.headers()[header::LOCATION], "ui/");
}

#[tokio::test]
async fn what_is_no_file_is_not_found() {
    for path in ["/ui/nothing.js", "/ui/../Cargo.toml", "/ui/%2e%2e/Cargo.toml", "/ui/pages", "/ui/pages/"] {
        assert_eq!(get(path, &[]).await.status(), StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn nothing_is_served_where_it_is_off() {
    for path in ["/", "/ui", "/ui/", "/ui/main.js"] {
        let answer = answer_of(Access::open(), Dashboard::Off, path, &[]).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{path}");
    }
}
