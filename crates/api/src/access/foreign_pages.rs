//! Refuses cross-site requests of browsers if the API has no root key, because every caller may do everything then. A
//! page of another site must not reach the API by a host name that resolves to it (DNS rebinding), and must change
//! nothing by a form or a script (cross-site request forgery).

use http::StatusCode;
use http::header::{HOST, ORIGIN};
use http::request::Parts;
use http::uri::Authority;

use super::settings::bare;
use crate::error::ApiError;

/// The header in which browsers say where a request comes from (Fetch Metadata Request Headers).
const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// Checks that a request names the API by one of its hosts (`None`: by any), and changes nothing for a page of another
/// site.
///
/// # Errors
/// 403 for another host; and for a method that is not safe if `Origin` or `Sec-Fetch-Site` names another site.
pub(super) fn check(parts: &Parts, hosts: Option<&[String]>) -> Result<(), ApiError> {
    let named = || parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = parts.uri.authority().map(Authority::as_str).or_else(named).unwrap_or_default();
    let is_ours = |hosts: &[String]| hosts.iter().any(|ours| ours.eq_ignore_ascii_case(host_of(host)));
    if !hosts.is_none_or(is_ours) {
        let detail = format!(
            "the request names {host:?}, which is none of RINGBACK_ALLOWED_HOSTS; without a root key only these are served"
        );
        return Err(ApiError::new(StatusCode::FORBIDDEN, detail));
    }
    // A link may lead here from anywhere. What a page of another site fetches it cannot read: no answer allows that.
    if parts.method.is_safe() {
        return Ok(());
    }
    let origins = parts.headers.get_all(ORIGIN).iter();
    let is_own = |origin: &[u8]| {
        let origin = String::from_utf8_lossy(origin);
        origin.split_once("://").is_some_and(|(_, authority)| authority.eq_ignore_ascii_case(host))
    };
    let sites = parts.headers.get_all(SEC_FETCH_SITE).iter();
    let is_foreign = !origins.map(|origin| origin.as_bytes()).all(is_own)
        || !sites.map(|site| site.as_bytes()).all(|site| matches!(site, b"same-origin" | b"none"));
    if is_foreign {
        let detail = "the request was sent for a page of another site; without a root key no such request may change anything";
        return Err(ApiError::new(StatusCode::FORBIDDEN, detail));
    }
    Ok(())
}

fn host_of(text: &str) -> &str {
    let has_port = |(_, port): &(&str, &str)| port.bytes().all(|byte| byte.is_ascii_digit());
    let host =
        text.rsplit_once(':').filter(has_port).filter(|(host, _)| !host.contains(':') || host.ends_with(']'));
    bare(host.map_or(text, |(host, _)| host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(headers: &[(&str, &str)]) -> Result<(), u16> {
        let mut request = http::Request::post("/v1/topics/t/pause");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let hosts = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        check(&parts, Some(&hosts)).map_err(|error| error.0.status)
    }

    #[test]
    fn a_name_that_is_not_ours_is_refused() {
        for host in ["localhost", "LocalHost:7411", "127.0.0.1:7411", "[::1]:7411", "[::1]"] {
            assert_eq!(status(&[("host", host)]), Ok(()), "{host}");
        }
        for host in
            ["evil.example", "localhost.evil.example:7411", "127.0.0.1.evil.example", "", "10.0.0.1:7411"]
        {
            assert_eq!(status(&[("host", host)]), Err(403), "{host}");
        }
    }

    #[test]
    fn a_link_from_another_site_is_followed_but_not_by_another_name() {
        let read = |host: &str| {
            let request =
                http::Request::get("/ui/").header("host", host).header("sec-fetch-site", "cross-site");
            let (parts, ()) = request.body(()).unwrap().into_parts();
            check(&parts, Some(&["localhost".to_owned()])).map_err(|error| error.0.status)
        };
        assert_eq!((read("localhost:7411"), read("evil.example")), (Ok(()), Err(403)));
    }

    #[test]
    fn changes_for_pages_of_other_sites_are_refused() {
        let host = ("host", "localhost:7411");
        for own in [
            ("origin", "http://localhost:7411"),
            ("sec-fetch-site", "same-origin"),
            ("sec-fetch-site", "none"),
        ] {
            assert_eq!(status(&[host, own]), Ok(()), "{own:?}");
        }
        for foreign in [
            ("origin", "https://evil.example"),
            ("origin", "null"),
            ("origin", "http://localhost:8080"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            assert_eq!(status(&[host, foreign]), Err(403), "{foreign:?}");
        }
    }
}
