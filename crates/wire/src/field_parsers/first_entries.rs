//! Objects of a request that may have more entries than are allowed: no more are kept than that, and the rest is
//! skipped without being read.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::object::Name;

/// The first entries of a JSON object, `MOST` at most.
#[derive(Debug)]
pub(crate) struct FirstEntries<'a, const MOST: usize> {
    /// Names, and values as they were written.
    pub(crate) first: Vec<(Cow<'a, str>, &'a RawValue)>,
    /// Whether there are more.
    pub(crate) has_more: bool,
}

impl<'de: 'a, 'a, const MOST: usize> Deserialize<'de> for FirstEntries<'a, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object<const MOST: usize>;
        impl<'de, const MOST: usize> Visitor<'de> for Object<MOST> {
            type Value = FirstEntries<'de, MOST>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut first = Vec::new();
                while first.len() < MOST
                    && let Some(Name(name)) = map.next_key()?
                {
                    first.push((name, map.next_value()?));
                }
                let mut has_more = false;
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
                    has_more = true;
                }
                Ok(FirstEntries { first, has_more })
            }
        }
        deserializer.deserialize_map(Object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(entries: usize) -> (usize, bool) {
        let entries: Vec<_> = (0..entries).map(|n| format!("\"n{n}\":\"{n}\"")).collect();
        let json = format!("{{{}}}", entries.join(","));
        let FirstEntries::<32> { first, has_more } = serde_json::from_str(&json).unwrap();
        assert!(
            first
                .iter()
                .enumerate()
                .all(|(n, (name, raw))| (&**name, raw.get())
                    == (&format!("n{n}")[..], &format!("\"{n}\"")[..]))
        );
        assert!(first.capacity() <= 64, "room for {}", first.capacity());
        (first.len(), has_more)
    }

    #[test]
    fn no_more_entries_are_kept_than_are_allowed() {
        for (entries, found) in [(0, (0, false)), (31, (31, false)), (32, (32, false)), (33, (32, true))] {
            assert_eq!(kept(entries), found, "{entries} entries");
        }
        assert_eq!(kept(100_000), (32, true));
    }

    #[test]
    fn what_is_skipped_has_to_be_json() {
        let read = |json| serde_json::from_str::<FirstEntries<'_, 1>>(json).map(|found| found.has_more).ok();
        assert_eq!(read(r#"{"a":1,"b":[{}]}"#), Some(true));
        for bad in ["[]", "1", r#"{"a":1,"b"}"#, r#"{"a":1,"b":[}"#, r#"{"a":1,"b":2"#] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
