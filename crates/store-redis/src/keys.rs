//! The names of keys and channels. All keys of a shard share a hash tag, so that its scripts stay on one
//! server, and so do those of the installation.

use std::fmt;
use std::sync::Arc;

use ringback_core::job::Locator;
use ringback_core::store_types::Shard;

/// The shard or the installation whose keys a call names. They are on one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum KeySpace {
    Shard(Shard),
    Installation,
}

impl From<Shard> for KeySpace {
    fn from(shard: Shard) -> Self {
        Self::Shard(shard)
    }
}

impl fmt::Display for KeySpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shard(shard) => write!(f, "shard {}", shard.0),
            Self::Installation => f.write_str("the installation's row"),
        }
    }
}

/// The base names of the shards and of the installation.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    prefix: String,
    /// The first parts of keys: of each shard, then of the installation.
    bases: Arc<[String]>,
}

impl Keys {
    pub(crate) fn new(prefix: &str, shards: u16) -> Self {
        let tags = tags(shards).into_iter().chain(["meta".to_owned()]);
        Self { prefix: prefix.to_owned(), bases: tags.map(|tag| format!("{prefix}:{{{tag}}}")).collect() }
    }

    /// Returns the first parts of the keys of all shards, and then of the installation.
    pub(crate) fn bases(&self) -> &Arc<[String]> {
        &self.bases
    }

    pub(crate) fn spaces(&self) -> impl Iterator<Item = KeySpace> + use<> {
        let shards = u16::try_from(self.bases.len() - 1).unwrap_or(u16::MAX);
        (0..shards).map(|shard| KeySpace::Shard(Shard(shard))).chain([KeySpace::Installation])
    }

    /// Returns the key of a key space that is written before a call waits for the confirmation of replicas.
    pub(crate) fn mark(&self, space: KeySpace) -> String {
        format!("{}:mark", self.base(space))
    }

    /// Returns the index of a key space among [`Self::bases`].
    pub(crate) fn index(&self, space: KeySpace) -> usize {
        match space {
            KeySpace::Shard(shard) => usize::from(shard.0),
            KeySpace::Installation => self.bases.len() - 1,
        }
    }

    pub(crate) fn base(&self, space: KeySpace) -> &str {
        &self.bases[self.index(space)]
    }

    /// Returns the keys that a call of a script names on a cluster. No stored key has these names. So while their slot
    /// moves key by key, the old node sends each call to the new one, and the new one refuses it (TRYAGAIN), because it
    /// does not have all of them: no script runs on half a shard.
    pub(crate) fn absent(&self, space: KeySpace) -> [String; 2] {
        let base = self.base(space);
        [base.to_owned(), format!("{base}:")]
    }

    pub(crate) fn slot(&self, space: KeySpace) -> u32 {
        let tag = self.base(space).split_once('{').and_then(|(_, rest)| rest.split_once('}'));
        tag.map_or(0, |(tag, _)| slot(tag))
    }

    fn installation(&self) -> &str {
        self.base(KeySpace::Installation)
    }

    /// Returns the key of a shard's hash.
    pub(crate) fn shard(&self, shard: Shard) -> String {
        format!("{}:shard", self.base(KeySpace::Shard(shard)))
    }

    /// Returns the key of the installation's row.
    pub(crate) fn install(&self) -> String {
        format!("{}:install", self.installation())
    }

    /// Returns the key of the hash of policies by topic.
    pub(crate) fn policies(&self) -> String {
        format!("{}:policies", self.installation())
    }

    pub(crate) fn policies_version(&self) -> String {
        format!("{}:policies:version", self.installation())
    }

    /// Returns the name of the channel `policies`, `events` or `wake`.
    pub(crate) fn channel(&self, name: &str) -> String {
        format!("{}:{name}", self.prefix)
    }

    /// Returns the key of a large payload.
    pub(crate) fn external(&self, shard: Shard, locator: Locator) -> Vec<u8> {
        [self.base(KeySpace::Shard(shard)).as_bytes(), b":body:", &locator.0].concat()
    }

    /// Returns the key of the large payload of an entry of the archive outbox, by the head of the entry.
    pub(crate) fn archived(&self, shard: Shard, head: &[u8]) -> Vec<u8> {
        [self.base(KeySpace::Shard(shard)).as_bytes(), b":archive:", head].concat()
    }

    /// Returns the shard with a hash tag, as wake-ups name it; `None` for another tag.
    pub(crate) fn by_tag(&self, tag: &str) -> Option<Shard> {
        let wanted = format!("{}:{{{tag}}}", self.prefix);
        let (_installation, shards) = self.bases.split_last()?;
        let index = shards.iter().position(|base| *base == wanted)?;
        u16::try_from(index).ok().map(Shard)
    }
}

/// Returns hash tags for `count` shards. Each tag's slot is in another of `count` equal parts of the 16,384 slots, so the
/// shards spread evenly over any number of masters.
fn tags(count: u16) -> Vec<String> {
    let part = |tag: &str| slot(tag) * u32::from(count) / 16_384;
    let numbers = || (0_u32..).map(|n| n.to_string());
    (0..u32::from(count)).filter_map(|i| numbers().find(|tag| part(tag) == i)).collect()
}

/// Returns the slot of a hash tag in a cluster.
fn slot(tag: &str) -> u32 {
    u32::from(crc16::State::<crc16::XMODEM>::calculate(tag.as_bytes()) % 16_384)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_spread_evenly_over_the_masters_of_a_cluster() {
        for count in [1, 3, 4, 8, 16, 64] {
            let tags = tags(count);
            assert_eq!(tags.len(), usize::from(count));
            let mut on_master = [0; 3];
            tags.iter().for_each(|t| on_master[(slot(t) * 3 / 16_384) as usize] += 1);
            let (least, most) = (on_master.iter().min().unwrap(), on_master.iter().max().unwrap());
            assert!(most - least <= 1, "{count}: {on_master:?}");
        }
    }

    #[test]
    fn a_shard_is_found_by_its_tag() {
        let keys = Keys::new("ringback", 8);
        for n in 0..8 {
            let base = keys.base(KeySpace::Shard(Shard(n))).to_owned();
            let tag = base.trim_start_matches("ringback:{").trim_end_matches('}');
            assert_eq!(keys.by_tag(tag), Some(Shard(n)));
        }
        assert_eq!(keys.by_tag("meta"), None);
    }
}
