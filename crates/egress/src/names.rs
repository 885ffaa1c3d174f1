//! Which names callbacks may go to: those of the public DNS, and those that match a pattern.

/// Names that are not names of the public DNS, with all below them: RFC 6761, RFC 6762, RFC 7686, RFC 8375, and
/// `internal`, which is reserved for private use.
const SPECIAL: [&str; 5] = ["localhost", "local", "internal", "home.arpa", "onion"];

/// A pattern of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    All,
    Below(String),
    Name(String),
}

impl Pattern {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let name = text.strip_prefix("*.").unwrap_or(text);
        let is_label = |label: &str| {
            !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
        };
        let is_name = without_root(name).split('.').all(is_label);
        match () {
            () if text == "*" => Ok(Self::All),
            () if !is_name => Err(format!(
                "{text} is not a pattern of names: such as receiver,*.internal; a name that is not ASCII in its form for the DNS (xn--)"
            )),
            () if name.len() < text.len() => Ok(Self::Below(plain(name))),
            () => Ok(Self::Name(plain(name))),
        }
    }

    fn matches(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Below(parent) => is_below(name, parent),
            Self::Name(own) => own == name,
        }
    }
}

/// Whether callbacks may go to a name, if its addresses are allowed: it is of the public DNS or matches a pattern.
pub(crate) fn is_allowed(name: &str, patterns: &[Pattern]) -> bool {
    let name = plain(name);
    let is_special =
        || !name.contains('.') || SPECIAL.iter().any(|special| name == *special || is_below(&name, special));
    patterns.iter().any(|pattern| pattern.matches(&name)) || !is_special()
}

fn is_below(name: &str, parent: &str) -> bool {
    name.strip_suffix(parent).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
}

/// In lower case and without the dot of the root.
fn plain(name: &str) -> String {
    without_root(name).to_ascii_lowercase()
}

fn without_root(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_public_dns_are_allowed_and_others_by_a_pattern() {
        let patterns = ["receiver", "*.internal", "printer.local."].map(|text| Pattern::parse(text).unwrap());
        for (name, by_default, by_pattern) in [
            ("example.com", true, true),
            ("example.com.", true, true),
            ("xn--mnchen-3ya.de", true, true),
            ("local.example.com", true, true),
            ("notlocal.notinternal", true, true),
            ("localhost", false, false),
            ("LOCALHOST.", false, false),
            ("a.localhost", false, false),
            ("receiver", false, true),
            ("Receiver.", false, true),
            ("internal", false, false),
            ("a.internal", false, true),
            ("a.b.internal.", false, true),
            ("printer.local", false, true),
            ("a.printer.local", false, false),
            ("x.home.arpa", false, false),
            ("x.onion", false, false),
            ("", false, false),
            (".", false, false),
        ] {
            assert_eq!(is_allowed(name, &[]), by_default, "{name:?}");
            assert_eq!(is_allowed(name, &patterns), by_pattern, "{name:?} with patterns");
            assert!(is_allowed(name, &[Pattern::All]), "{name:?} with *");
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for wrong in
            ["", ".", "*.", "a..b", "a*", "*a", "a.*.b", "**", "*.*", "münchen.de", "a b", "http://a", "a:80"]
        {
            assert!(Pattern::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
