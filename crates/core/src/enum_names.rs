//! The error message for a text that is not one of an enum's names.

use strum::VariantNames;

/// Lists the names of the enum: "must be a, b or c". The text itself is not used.
pub fn must_be<T: VariantNames>(_text: &str) -> String {
    match T::VARIANTS {
        [others @ .., last] if !others.is_empty() => format!("must be {} or {last}", others.join(", ")),
        names => format!("must be {}", names.concat()),
    }
}
