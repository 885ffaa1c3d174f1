//! The secret header values of policies: sealed before they are stored, if there is a master key, and opened to keep
//! those that a caller puts back as a mask.

use ringback_admission::invalid_field;
use ringback_core::job::Topic;
use ringback_core::policy::Policy;
use ringback_wire::{Problem, secret_header_values, with_opened_headers, with_sealed_headers};

use crate::state::Api;

/// A policy with its sealed header values in the clear, to be put together with others and sealed again.
///
/// # Errors
/// 422 if they cannot be opened.
pub(crate) fn with_opened(api: &Api, topic: &Topic, policy: Policy) -> Result<Policy, Problem> {
    let Some(sealed) = &policy.sealed_headers else { return Ok(policy) };
    let why = match api.master_keys.open(&policy.sealed_name(topic), sealed) {
        Ok(values) => match with_opened_headers(&policy, &values) {
            Some(opened) => return Ok(opened),
            None => "they are not the values of the headers that are masked".to_owned(),
        },
        Err(why) => why.to_string(),
    };
    Err(invalid_field(
        "sealed_headers",
        format!("the values of secret headers cannot be opened: {why}"),
        "values that a master key of this installation has sealed for this topic and the same headers_to; or the values themselves in headers",
    ))
}

/// A policy with its secret header values sealed. Without a master key they stay as they are.
///
/// # Errors
/// 422 if the headers are too long with masks in place of the values.
pub(crate) fn with_sealed_values(api: &Api, topic: &Topic, policy: &Policy) -> Result<Policy, Problem> {
    let sealed = secret_header_values(policy)
        .and_then(|values| api.seal(&policy.sealed_name(topic), values.as_bytes()));
    sealed.map_or_else(|| Ok(policy.clone()), |sealed| with_sealed_headers(policy, &sealed))
}
