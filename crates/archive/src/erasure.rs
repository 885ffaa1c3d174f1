//! Erasures: which ended jobs are removed from the archive, and kept out of it if they come later. An ended job may
//! wait in the store while it is erased, so a database notes each erasure as a mark: a hash instead of the text, which
//! can be found only by guessing.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::ended_job_row::EndedJobRow;

/// For how long marks are kept, in ms. An ended job that waits for the database longer is archived.
pub const KEEP_MARKS: i64 = 90 * 24 * 60 * 60 * 1000;

/// The ended jobs of a tenant to erase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Erasure {
    /// The tenant, empty for none.
    pub tenant: String,
    pub topics: Vec<String>,
    /// Which jobs of these topics.
    pub what: Erased,
    /// When it was asked for, in ms. What ended later stays.
    pub at: i64,
}

/// The id or the tag of the jobs to erase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Erased {
    Id(String),
    Tag(String),
}

/// A SHA-256.
pub type Digest = [u8; 32];

impl Erasure {
    pub fn marks(&self) -> Vec<Digest> {
        let (kind, text) = match &self.what {
            Erased::Id(id) => ("id", id),
            Erased::Tag(tag) => ("tag", tag),
        };
        let topics = if self.topics.is_empty() { &[String::new()][..] } else { &self.topics };
        topics.iter().map(|topic| mark(&self.tenant, topic, kind, text)).collect()
    }
}

/// The marks that an erasure of this ended job would leave: of its id and tags, for its topic and for all topics.
pub fn marks_of(row: &EndedJobRow) -> Vec<Digest> {
    let EndedJobRow { tenant, topic, id, tags, .. } = row;
    let names = std::iter::once(("id", id)).chain(tags.iter().map(|tag| ("tag", tag)));
    names.flat_map(|(kind, text)| ["", topic].map(|topic| mark(tenant, topic, kind, text))).collect()
}

/// The hash of these parts. None has a space, so different parts make different texts. An empty topic is for all.
fn mark(tenant: &str, topic: &str, kind: &str, text: &str) -> Digest {
    Sha256::digest([tenant, topic, kind, text].join(" ")).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ended_job_row::tests::row;

    fn erases(tenant: &str, topics: &[&str], what: Erased) -> bool {
        let topics = topics.iter().map(|topic| (*topic).to_owned()).collect();
        let erasure = Erasure { tenant: tenant.to_owned(), topics, what, at: 0 };
        let marks = erasure.marks();
        marks_of(&row()).iter().any(|mark| marks.contains(mark))
    }

    #[test]
    fn an_end_is_erased_by_its_id_or_a_tag_in_its_topic_or_in_all() {
        let id = || Erased::Id("order-1".to_owned());
        let tag = |text: &str| Erased::Tag(text.to_owned());
        assert!(erases("acme", &["pay"], id()) && erases("acme", &[], id()));
        assert!(erases("acme", &["other", "pay"], tag("customer:42")) && erases("acme", &[], tag("order:1")));
        for other in [
            erases("", &["pay"], id()),
            erases("acme", &["refund"], id()),
            erases("acme", &[], tag("order-1")),
            erases("acme", &[], tag("customer:4")),
            erases("acme", &["refund"], tag("customer:42")),
            erases("acme pay", &[], id()),
        ] {
            assert!(!other);
        }
    }
}
