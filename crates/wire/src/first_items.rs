//! Lists of a request that may be longer than is allowed: no more is kept than that, and the rest is counted for the
//! error.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The first items of a JSON array, `MOST` at most, and the number of all.
#[derive(Debug)]
pub struct FirstItems<'a, const MOST: usize> {
    /// The items as they were written.
    pub first: Vec<&'a RawValue>,
    /// How many there are.
    pub count: usize,
}

impl<'de: 'a, 'a, const MOST: usize> Deserialize<'de> for FirstItems<'a, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Array<const MOST: usize>;
        impl<'de, const MOST: usize> Visitor<'de> for Array<MOST> {
            type Value = FirstItems<'de, MOST>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut first = Vec::new();
                while first.len() < MOST
                    && let Some(item) = seq.next_element()?
                {
                    first.push(item);
                }
                let mut count = first.len();
                while seq.next_element::<IgnoredAny>()?.is_some() {
                    count += 1;
                }
                Ok(FirstItems { first, count })
            }
        }
        deserializer.deserialize_seq(Array)
    }
}
