//! The tags of a job: short texts by which callers find it again, such as `customer:42`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The most tags of a job.
pub const MAX_TAGS: usize = 4;
/// The longest tag, in bytes.
pub const MAX_TAG: usize = 64;

/// The tags of a job, in the order written. None is twice among them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Box<str>")]
pub struct Tags(
    /// The tags with a space between them, which no tag has.
    Box<str>,
);

impl Tags {
    /// What tags are allowed, for error messages.
    pub const ALLOWED: &'static str = "at most 4 texts, each of 1 to 64 visible ASCII characters, none twice";
    /// What one tag may be, for error messages.
    pub const ALLOWED_TAG: &'static str = "1 to 64 visible ASCII characters";

    /// Checks the tags of a submit.
    ///
    /// # Errors
    /// How many tags there are, if too many; the place of a tag that is not allowed; or the tag that is there twice.
    pub fn parse(tags: &[String]) -> Result<Self, String> {
        if tags.len() > MAX_TAGS {
            return Err(format!("{} tags", tags.len()));
        }
        for (place, tag) in tags.iter().enumerate() {
            if !Self::is_tag(tag) {
                return Err(format!("the tag in place {} is not allowed", place + 1));
            }
            if tags[..place].contains(tag) {
                return Err(format!("{tag} is there twice"));
            }
        }
        Ok(Self(tags.join(" ").into()))
    }

    /// Whether a text can be a tag.
    pub fn is_tag(text: &str) -> bool {
        (1..=MAX_TAG).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
    }

    /// Reads what [`as_str`](Self::as_str) has returned; `None` if the text is something else.
    pub fn from_stored(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::default());
        }
        let is_valid = text.split(' ').count() <= MAX_TAGS && text.split(' ').all(Self::is_tag);
        is_valid.then(|| Self(text.into()))
    }

    /// The tags with a space between them; empty if there are none. Stores keep this.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The tags, in the order written.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.as_str().split(' ').filter(|tag| !tag.is_empty())
    }

    pub fn to_vec(&self) -> Vec<String> {
        self.iter().map(ToOwned::to_owned).collect()
    }
}

impl TryFrom<Box<str>> for Tags {
    type Error = &'static str;

    fn try_from(text: Box<str>) -> Result<Self, Self::Error> {
        Self::from_stored(&text).ok_or("they are not tags")
    }
}

impl fmt::Display for Tags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(tags: &[&str]) -> Result<Tags, String> {
        let tags: Vec<_> = tags.iter().map(|tag| (*tag).to_owned()).collect();
        Tags::parse(&tags)
    }

    #[test]
    fn tags_are_read_back_as_they_were_stored() {
        let longest = "x".repeat(MAX_TAG);
        for tags in
            [&[][..], &["customer:42"], &["b", "a", "é".escape_unicode().to_string().as_str(), &longest]]
        {
            let parsed = parse(tags).unwrap();
            assert_eq!(parsed.to_vec(), tags);
            assert_eq!(parsed.is_empty(), tags.is_empty());
            assert_eq!(Tags::from_stored(parsed.as_str()), Some(parsed));
        }
    }

    #[test]
    fn other_tags_are_refused() {
        let too_long = "x".repeat(MAX_TAG + 1);
        for tags in
            [&["a", "b", "c", "d", "e"][..], &["a", "a"], &[""], &["a b"], &["ä"], &["a\n"], &[&too_long]]
        {
            assert!(parse(tags).is_err(), "{tags:?}");
        }
        for stored in [" ", "a  b", "a b c d e", "ä", " a"] {
            assert_eq!(Tags::from_stored(stored), None, "{stored:?}");
        }
    }
}
