//! Reads the `Idempotency-Key` header. Callers send the same key with a submit and each of its repetitions. The id of a
//! job without one, and the token of a submit that may change a job, are derived from the key elsewhere.

use axum::extract::FromRequestParts;
use http::request::Parts;
use ringback_admission::invalid_field;
use ringback_core::limits::is_idempotency_key;
use ringback_wire::Problem;

use crate::error::ApiError;

const NAME: &str = "idempotency-key";
const ALLOWED: &str = "1 to 255 visible ASCII characters, as they are or as one quoted string; once";

/// The caller's key, if there is one.
#[derive(Debug)]
pub(crate) struct IdempotencyKey(pub(crate) Option<String>);

impl<S: Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let mut values = parts.headers.get_all(NAME).iter();
        let Some(value) = values.next() else { return Ok(Self(None)) };
        let key = value.to_str().ok().and_then(unquoted).filter(|_| values.next().is_none());
        let key = key.ok_or_else(|| invalid_field(NAME, format!("{value:?} is not a key"), ALLOWED))?;
        Ok(Self(Some(key)))
    }
}

/// Refuses a key on a request that takes none.
#[derive(Debug)]
pub(crate) struct NoIdempotencyKey;

impl<S: Sync> FromRequestParts<S> for NoIdempotencyKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        match parts.headers.get(NAME) {
            None => Ok(Self),
            Some(_) => {
                Err(invalid_field(NAME, "a batch takes no key", "none here: give each item an id").into())
            }
        }
    }
}

/// The problem of a submit that has both a key and an id and cannot change a job.
pub(crate) fn key_and_id() -> Problem {
    let detail = "the job has an id, which already makes its submit safe to repeat";
    let allowed = "either a key or an id; both only with \"if_exists\":\"replace\" or \"postpone\"";
    invalid_field(NAME, detail, allowed)
}

/// The key of a structured-field string (RFC 9651), or a bare key, which many clients send. `None` if it is not valid.
fn unquoted(text: &str) -> Option<String> {
    let text = text.trim();
    let key = match text.strip_prefix('"') {
        None => text.to_owned(),
        Some(rest) => unescaped(rest.strip_suffix('"')?)?,
    };
    is_idempotency_key(&key).then_some(key)
}

/// Resolves the escapes of a quote and of a backslash. `None` for any other escape, and for a quote without one.
fn unescaped(text: &str) -> Option<String> {
    let (mut key, mut characters) = (String::with_capacity(text.len()), text.chars());
    while let Some(c) = characters.next() {
        key.push(match c {
            '"' => return None,
            '\\' => characters.next().filter(|c| matches!(c, '"' | '\\'))?,
            c => c,
        });
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use ringback_core::job::JobId;
    use ringback_core::limits::MAX_IDEMPOTENCY_KEY;

    use super::*;

    async fn extract(values: &[&str]) -> Result<Option<String>, u16> {
        let mut request = http::Request::new(());
        for value in values {
            request.headers_mut().append(NAME, value.parse().unwrap());
        }
        let (mut parts, ()) = request.into_parts();
        IdempotencyKey::from_request_parts(&mut parts, &()).await.map(|key| key.0).map_err(|e| e.0.status)
    }

    #[tokio::test]
    async fn a_key_is_the_same_with_and_without_quotes() {
        let bare = extract(&["8e03978e-40d5"]).await.unwrap().unwrap();
        assert_eq!(bare, "8e03978e-40d5");
        assert_eq!(JobId::of_key(&bare).as_str(), "key-5c7776970d4aa80b75ff61b5a1924bdd");
        assert_eq!(extract(&[r#""8e03978e-40d5""#]).await, Ok(Some(bare.clone())));
        assert_ne!(extract(&["8e03978e-40d6"]).await, Ok(Some(bare)));
        assert_eq!(extract(&[r#""a\"b\\c""#]).await, extract(&[r#"a"b\c"#]).await);
        assert_eq!(extract(&[]).await, Ok(None));
    }

    #[tokio::test]
    async fn an_invalid_key_is_refused() {
        let long = "k".repeat(MAX_IDEMPOTENCY_KEY + 1);
        for wrong in ["", " ", "\"\"", "\"a", "a b", r#""a"b""#, r#""a\b""#, long.as_str()] {
            assert_eq!(extract(&[wrong]).await, Err(422), "{wrong}");
        }
        assert_eq!(extract(&["a", "a"]).await, Err(422), "twice");
        assert!(extract(&[&long[1..]]).await.is_ok());
    }
}
