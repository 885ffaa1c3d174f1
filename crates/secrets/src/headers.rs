//! The names of the headers that identify and sign a callback. Their prefix is `webhook` unless configured otherwise.

use std::str::FromStr;

const MAX_PREFIX: usize = 32;
/// Other headers of a callback begin with it and a hyphen.
const RESERVED: &str = "ringback";

/// The names of the headers of a callback: its id, when it was sent, and its signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookHeaders {
    pub id: String,
    pub timestamp: String,
    pub signature: String,
}

impl Default for WebhookHeaders {
    fn default() -> Self {
        Self::of("webhook")
    }
}

impl WebhookHeaders {
    fn of(prefix: &str) -> Self {
        let name = |name| format!("{prefix}-{name}");
        Self { id: name("id"), timestamp: name("timestamp"), signature: name("signature") }
    }

    /// Whether a header of a job has one of these names, in any case, and with `_` for `-` as many servers treat it.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        let is = |own: &String| {
            own.len() == name.len()
                && own
                    .bytes()
                    .zip(name.bytes())
                    .all(|(a, b)| a == if b == b'_' { b'-' } else { b.to_ascii_lowercase() })
        };
        [&self.id, &self.timestamp, &self.signature].into_iter().any(is)
    }
}

impl FromStr for WebhookHeaders {
    type Err = String;

    fn from_str(prefix: &str) -> Result<Self, String> {
        let is_letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let is_valid = prefix.bytes().all(is_letter) && prefix.starts_with(|c: char| c.is_ascii_lowercase());
        let is_reserved = prefix.split('-').next() == Some(RESERVED);
        if !is_valid || prefix.len() > MAX_PREFIX || prefix.ends_with('-') || is_reserved {
            return Err(format!(
                "must have 1 to {MAX_PREFIX} letters a to z, digits or -, beginning with a letter, such as webhook or svix; {RESERVED} and what begins with {RESERVED}- are taken"
            ));
        }
        Ok(Self::of(prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_names_all_three() {
        let headers: WebhookHeaders = "svix".parse().unwrap();
        assert_eq!((headers.id.as_str(), headers.signature.as_str()), ("svix-id", "svix-signature"));
        assert_eq!(headers.timestamp, "svix-timestamp");
        assert_eq!(WebhookHeaders::default(), "webhook".parse().unwrap());
    }

    #[test]
    fn a_prefix_is_part_of_a_header_name() {
        for wrong in [
            "",
            "Webhook",
            "-a",
            "a-",
            "1a",
            "a b",
            "a:",
            "ringback",
            "ringback-job",
            "ringback-a-b",
            "ä",
            &"a".repeat(33),
        ] {
            assert!(wrong.parse::<WebhookHeaders>().is_err(), "{wrong}");
        }
        for right in ["a", "x-shop", "x-ringback", "ringbacks", "a1", &"a".repeat(32)] {
            assert!(right.parse::<WebhookHeaders>().is_ok(), "{right}");
        }
    }

    #[test]
    fn a_job_cannot_name_one_in_another_spelling() {
        let headers: WebhookHeaders = "x-shop".parse().unwrap();
        for name in ["x-shop-id", "X_Shop_Signature", "x-shop_timestamp"] {
            assert!(headers.contains(name), "{name}");
        }
        for name in ["x-shop", "x-shop-ids", "webhook-id", "x-shop-"] {
            assert!(!headers.contains(name), "{name}");
        }
    }
}
