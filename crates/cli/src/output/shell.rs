//! Renders the callback of a job as a curl command for a POSIX shell, with the body as an argument, or through
//! `base64 -d` where an argument cannot have it. Also quotes words for a shell.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::escape::{is_layout, is_unsafe};

/// The longest body that is an argument. Linux takes at most 128 KiB in one.
const MAX_ARGUMENT: usize = 96 * 1024;
/// From this size on some versions of curl ask with `expect: 100-continue` before they send the body.
const EXPECTS: usize = 1024;

/// A request to print as a command.
pub(crate) struct Post<'a> {
    /// The method, unless it is `POST`.
    pub(crate) method: Option<&'a str>,
    pub(crate) url: &'a str,
    /// Names and values, in the order to print them.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Cow<'a, [u8]>,
}

impl Post<'_> {
    /// The command, each header on a line of its own.
    pub(crate) fn command(&self) -> String {
        let (pipe, data) = match self.argument() {
            Some(text) => (String::new(), format!("--data-raw {}", quoted(text))),
            None => {
                let base64 = quoted(&STANDARD.encode(&self.body));
                (format!("printf '%s' {base64} | base64 -d | "), "--data-binary @-".to_owned())
            }
        };
        let mut parts = vec![format!("{pipe}curl {}", quoted(self.url))];
        if self.url.contains(['[', ']', '{', '}']) {
            parts.push("--globoff".to_owned());
        }
        parts.extend(self.method.map(|method| format!("-X {method}")));
        parts.extend(self.headers.iter().map(|(name, value)| format!("-H {}", quoted(&header(name, value)))));
        if self.body.len() > EXPECTS {
            parts.push("-H 'expect:'".to_owned());
        }
        // Without data curl sends none, nor its length.
        if self.method.is_none() || !self.body.is_empty() {
            parts.push(data);
        }
        parts.join(" \\\n  ") + "\n"
    }

    /// The body, if it can be an argument and be printed on a terminal: text that is not too long, without
    /// characters that a terminal may act on, other than tabs and line feeds.
    fn argument(&self) -> Option<&str> {
        let text = std::str::from_utf8(&self.body).ok().filter(|text| text.len() <= MAX_ARGUMENT)?;
        text.chars().all(|c| !is_unsafe(c) || is_layout(c)).then_some(text)
    }
}

/// A header as an argument of curl. An empty value needs a semicolon: after a colon, curl would remove the header.
fn header(name: &str, value: &str) -> String {
    if value.is_empty() { format!("{name};") } else { format!("{name}: {value}") }
}

/// Quotes a text as one word of a POSIX shell.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(url: &str, headers: &[(&str, &str)], body: &[u8]) -> String {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Post { method: None, url, headers: headers.collect(), body: Cow::Borrowed(body) }.command()
    }

    #[test]
    fn another_method_is_named_and_has_no_data_without_a_body() {
        let command = |method, body: &'static [u8]| {
            let body = Cow::Borrowed(body);
            Post { method: Some(method), url: "http://h/", headers: Vec::new(), body }.command()
        };
        assert_eq!(command("GET", b""), "curl 'http://h/' \\\n  -X GET\n");
        assert_eq!(command("PUT", b"x"), "curl 'http://h/' \\\n  -X PUT \\\n  --data-raw 'x'\n");
    }

    #[test]
    fn a_text_is_an_argument_in_single_quotes() {
        let body = "@it's\n\"$(x)\" `y` \\ ü";
        let expected = "curl 'http://h/a'\\''b' \\\n  -H 'x-a: it'\\''s' \\\n  -H 'x-empty;' \\\n  --data-raw '@it'\\''s\n\"$(x)\" `y` \\ ü'\n";
        assert_eq!(command("http://h/a'b", &[("x-a", "it's"), ("x-empty", "")], body.as_bytes()), expected);
        assert_eq!(command("http://h/", &[], b""), "curl 'http://h/' \\\n  --data-raw ''\n");
    }

    #[test]
    fn bytes_that_no_argument_can_have_go_through_base64() {
        let large = "x".repeat(MAX_ARGUMENT + 1);
        for body in [&b"\0"[..], b"\xff", b"a\r\n", b"\x1b[31m", "\u{9b}".as_bytes(), large.as_bytes()] {
            let command = command("http://h/", &[], body);
            let start =
                format!("printf '%s' '{}' | base64 -d | curl 'http://h/' \\\n", STANDARD.encode(body));
            assert!(command.starts_with(&start) && command.ends_with("  --data-binary @-\n"), "{command}");
        }
        let longest = "x".repeat(MAX_ARGUMENT);
        assert!(command("http://h/", &[], longest.as_bytes()).contains("-H 'expect:' \\\n  --data-raw 'xxx"));
    }

    #[test]
    fn curl_must_not_take_a_url_for_a_pattern() {
        assert!(command("http://h/?a={1,2}", &[], b"").contains("--globoff"));
        assert!(command("http://[::1]/", &[], b"").contains("--globoff"));
    }
}
