//! The origins that get the headers of a policy. A job can name any URL, so headers with secrets go only where the
//! policy says.

use ringback_core::job::{Callback, is_secret};
use ringback_core::topic_policy::{MAX_HEADERS_TO, Policy};

use super::parse_policy;
use crate::field_parsers::object::{Fields, Mistakes, open, read};
use crate::field_parsers::values::parsed;
use crate::problem::Problem;

const ALLOWED: &str = "at most 32 origins, which are scheme, host and port, such as [\"https://shop.example\"]; or [\"*\"] for all";
const ALL: &str = "*";

/// The field `headers_to`: the sorted origins, `Some(None)` for all; `None` if missing, or wrong, which adds a mistake.
pub(super) fn headers_to(fields: &Fields<'_>, mistakes: &mut Mistakes) -> Option<Option<Vec<String>>> {
    parsed(fields, "headers_to", ALLOWED, mistakes, |raw| {
        let texts = read::<Vec<String>>(raw).filter(|texts| texts.len() <= MAX_HEADERS_TO)?;
        let (all, texts): (Vec<_>, Vec<_>) = texts.into_iter().partition(|text| text == ALL);
        let mut origins = texts.iter().map(|text| parse_origin(text)).collect::<Option<Vec<_>>>()?;
        if !all.is_empty() {
            return Some(None);
        }
        origins.sort_unstable();
        origins.dedup();
        Some(Some(origins))
    })
}

/// An origin as callbacks have it: in lower case, without a default port. `None` if the text is anything else.
pub(crate) fn parse_origin(text: &str) -> Option<String> {
    let callback = Callback::parse(text).ok()?;
    let rest = text.trim_end_matches('/').splitn(4, '/').nth(3);
    (rest.is_none() && callback.path() == "/" && !text.contains(['?', '#', '*']))
        .then(|| callback.origin().to_owned())
}

/// Adds `headers_to` to a policy that has headers and does not say where they go: the origin of its own URL. Without a
/// URL, headers that are not secret go to all.
///
/// # Errors
/// 422 if there is a secret header, no URL and no `headers_to`; else as [`parse_policy`].
pub fn close_policy(policy: Policy) -> Result<Policy, Problem> {
    let says_where = open(policy.written().as_bytes())?.get("headers_to").is_some();
    if policy.headers.entries().is_empty() || says_where {
        return Ok(policy);
    }
    if let Some(url) = &policy.url {
        let fields = policy.written().strip_suffix('}').unwrap_or_default();
        return parse_policy(format!("{fields},\"headers_to\":[\"{}\"]}}", url.origin()).as_bytes());
    }
    let Some((name, _)) = policy.headers.entries().iter().find(|(name, _)| is_secret(name)) else {
        return Ok(policy);
    };
    let mut mistakes = Mistakes::default();
    let detail = format!(
        "missing: {name} is a secret header, and the policy has no url, so each receiver that a job names would get it"
    );
    mistakes.add("headers_to", detail, ALLOWED);
    mistakes.or(policy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(json: &str) -> Result<Policy, Problem> {
        close_policy(parse_policy(json.as_bytes()).unwrap())
    }

    #[test]
    fn headers_go_to_the_origins_that_are_named() {
        let policy = put(
            r#"{"headers":{"x-token":"1"},"headers_to":["HTTPS://Shop.Example:443/","http://h:81","http://h:81"]}"#,
        )
        .unwrap();
        for (origin, gets) in [
            ("https://shop.example", true),
            ("http://h:81", true),
            ("http://h", false),
            ("http://shop.example", false),
            ("https://shop.example.evil.example", false),
        ] {
            assert_eq!(policy.sends_headers_to(origin), gets, "{origin}");
            assert_eq!(policy.headers_for(origin).len(), usize::from(gets), "{origin}");
        }
        assert!(
            policy.written().contains(r#""headers_to":["HTTPS://Shop.Example:443/","#),
            "as it was written"
        );
        assert!(!put(r#"{"headers":{"a":"1"},"headers_to":[]}"#).unwrap().sends_headers_to("http://h"));
        assert!(
            put(r#"{"headers":{"x-token":"1"},"headers_to":["*"]}"#).unwrap().sends_headers_to("http://h")
        );
    }

    #[test]
    fn by_default_they_go_to_the_url_of_the_policy() {
        let policy = put(r#"{"url":"https://Shop.Example/hook?a=}","headers":{"x-token":"1"}}"#).unwrap();
        assert!(
            policy.sends_headers_to("https://shop.example")
                && !policy.sends_headers_to("https://other.example")
        );
        let written = r#"{"url":"https://Shop.Example/hook?a=}","headers":{"x-token":"1"},"headers_to":["https://shop.example"]}"#;
        assert_eq!(policy.written(), written);
        assert_eq!(put(written).unwrap(), policy);
    }

    #[test]
    fn a_secret_header_without_a_destination_is_refused_and_a_plain_one_goes_everywhere() {
        let problem = put(r#"{"headers":{"x-a":"1","Authorization":"Bearer 1"}}"#).unwrap_err();
        assert_eq!((problem.status, problem.errors[0].field.as_str()), (422, "headers_to"));
        assert!(problem.errors[0].detail.contains("authorization is a secret header"), "{problem:?}");
        // A header of that name says nothing.
        assert!(put(r#"{"headers":{"headers_to":"x","authorization":"1"}}"#).is_err());
        assert!(put(r#"{"headers":{"x-a":"1"}}"#).unwrap().sends_headers_to("http://h"));
    }

    #[test]
    fn what_is_no_origin_is_refused() {
        let many = format!("[{}]", vec!["\"http://h\""; MAX_HEADERS_TO + 1].join(","));
        for value in [
            r#""http://h""#,
            r#"["h"]"#,
            r#"["http://h/path"]"#,
            r#"["http://h?a"]"#,
            r#"["http://h//"]"#,
            r#"["http://u:p@h"]"#,
            r#"["ftp://h"]"#,
            r#"["*","h"]"#,
            r#"["https://*.h"]"#,
            "[5]",
            &many,
        ] {
            let problem = parse_policy(format!(r#"{{"headers_to":{value}}}"#).as_bytes()).expect_err(value);
            assert_eq!((problem.status, problem.errors[0].field.as_str()), (422, "headers_to"), "{value}");
        }
    }
}
