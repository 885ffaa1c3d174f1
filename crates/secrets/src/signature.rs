//! The signature of a callback, by the Standard Webhooks specification: HMAC-SHA256 (RFC 2104) over id, time and body,
//! once with each secret.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::signing_secret::SigningSecret;

/// Signs a callback with each of the secrets, in their order; `None` without any. `timestamp` is in seconds since 1970.
///
/// The result is the value of the header `webhook-signature`: `v1,` and base64, separated by spaces. A receiver that
/// knows one of the secrets accepts the callback, so secrets can be rotated.
pub fn sign<'a>(
    secrets: impl IntoIterator<Item = &'a SigningSecret>,
    id: &str,
    timestamp: i64,
    body: &[u8],
) -> Option<String> {
    let signatures = secrets.into_iter().map(|secret| {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.bytes()).expect("a key may have any length");
        mac.update(format!("{id}.{timestamp}.").as_bytes());
        mac.update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    });
    let signatures: Vec<_> = signatures.collect();
    (!signatures.is_empty()).then(|| signatures.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const TIME: i64 = 1_614_265_330;
    const BODY: &[u8] = br#"{"test": 2432232314}"#;

    fn secret(text: &str) -> SigningSecret {
        SigningSecret::parse(text).unwrap()
    }

    /// The vector of the specification's own libraries.
    #[test]
    fn the_vector_of_the_specification_is_signed_as_it_says() {
        let secret = secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(sign([&secret], ID, TIME, BODY).as_deref(), Some(expected));
    }

    #[test]
    fn each_secret_signs_in_its_order() {
        let one = secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let other = secret("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
        let alone = |secret| sign([secret], ID, TIME, BODY).unwrap();
        let both = sign([&other, &one], ID, TIME, BODY).unwrap();
        assert_eq!(both, format!("{} {}", alone(&other), alone(&one)));
        assert_eq!(sign([], ID, TIME, BODY), None);
    }

    #[test]
    fn id_time_and_body_are_signed() {
        let secret = secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let signed = sign([&secret], ID, TIME, BODY);
        assert_ne!(sign([&secret], "msg_other", TIME, BODY), signed);
        assert_ne!(sign([&secret], ID, TIME + 1, BODY), signed);
        assert_ne!(sign([&secret], ID, TIME, b""), signed);
    }
}
