//! Hides passwords of URLs in text that is printed.

/// Replaces a secret.
const HIDDEN: &str = "***";

/// Hides the password of a `scheme://user:password@…` in `text`.
///
/// Everything up to the last `@` is hidden, because a password that is not percent-encoded may
/// contain any character.
pub(super) fn passwords(text: &str) -> String {
    let hidden = text.split_once("://").and_then(|(scheme, rest)| {
        let (userinfo, host) = rest.rsplit_once('@')?;
        let (user, _password) = userinfo.split_once(':')?;
        Some(format!("{scheme}://{user}:{HIDDEN}@{host}"))
    });
    hidden.unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::passwords;

    #[test]
    fn a_password_is_hidden_with_and_without_a_user() {
        assert_eq!(passwords("redis://app:s3cret@db:6379/0"), "redis://app:***@db:6379/0");
        assert_eq!(passwords("rediss://:s3cret@db"), "rediss://:***@db");
    }

    #[test]
    fn a_password_that_is_not_encoded_is_hidden_whole() {
        assert_eq!(passwords("redis://app:a/b@c, d@db"), "redis://app:***@db");
    }

    #[test]
    fn of_several_urls_no_password_is_left() {
        assert_eq!(passwords("redis://a:b@c or redis://d:e@f"), "redis://a:***@f");
    }

    #[test]
    fn what_holds_no_password_stays_as_it_is() {
        for text in ["", "info,ringback=debug", "redis://db:6379", "https://example.com/a?b=c", "15s 3m  10m"]
        {
            assert_eq!(passwords(text), text);
        }
    }
}
