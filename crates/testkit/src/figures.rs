//! The figures of the fault suite: how often a run of the tests made each fault, and how much went wrong. Each test
//! writes its figures below `target/figures`; the program `figures` adds them up.

mod table;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::table::table;

/// Declares the figures, in the order of the table: how much a run of the tests has to reach; what is counted, and what
/// is wrong.
macro_rules! figures {
    ($($name:ident: $wanted:literal, $meaning:literal;)*) => {
        /// What is counted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[derive(strum::Display, strum::VariantArray)]
        #[serde(rename_all = "kebab-case")]
        #[strum(serialize_all = "kebab-case")]
        pub enum Figure {
            $(#[doc = $meaning] $name,)*
        }

        impl Figure {
            /// A phrase for what the figure counts and what counts as wrong.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$name => $meaning,)*
                }
            }

            /// The count that a run of the tests has to reach.
            pub const fn wanted(self) -> u64 {
                match self {
                    $(Self::$name => $wanted,)*
                }
            }
        }
    };
}

figures! {
    Kills: 200, "processes of Ringback killed; jobs lost, early or invented";
    Pauses: 50, "holders of locks paused beyond the TTL; effects of stale holders";
    RedisKills: 30, "kills and restarts of Redis with appendfsync always; accepted jobs lost";
    MasterKills: 5, "masters of a cluster killed with `replicated`; accepted jobs lost";
    UnknownOutcomes: 1_000, "submits whose reply was destroyed; jobs doubled or counted wrongly";
    FullMemory: 3, "cycles of full memory, drained without help; submits that stayed refused";
    CancelRaces: 10_000, "cancels under way within 5 ms of the due time; jobs delivered that were cancelled";
    RandomOperations: 100_000, "random operations compared with a model or a second store; differences";
    PlantedBugs: 1, "planted bugs run, and those not caught";
    ProcessRecovery: 1, "starts of killed processes; ms until there was an effect again";
    StoreRecovery: 30, "starts of a killed Redis; ms until a submit was accepted again";
    LockRecovery: 1, "holders of locks that stayed away; ms until another held all of them";
    LeaseRecovery: 1, "leases of killed notifiers; ms until a job was delivered again";
}

/// What one test has reached.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reached {
    pub figure: Figure,
    /// The name of the test, or a part of it.
    pub by: String,
    pub count: u64,
    /// How many the test has chosen for this run, where that is not the same in each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
    /// How much went wrong.
    #[serde(default)]
    pub wrong: u64,
    /// For a recovery, the longest and the longest that is allowed, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest: Option<(u64, u64)>,
}

impl Reached {
    /// A figure of the test `by`, with nothing wrong.
    pub fn new(figure: Figure, by: &str, count: u64) -> Self {
        Self { figure, by: by.to_owned(), count, of: None, wrong: 0, longest: None }
    }

    /// Sets how much went wrong.
    #[must_use]
    pub fn wrong(self, wrong: u64) -> Self {
        Self { wrong, ..self }
    }

    /// Sets the count to reach in this run, in place of [`Figure::wanted`].
    #[must_use]
    pub fn of(self, chosen: u64) -> Self {
        Self { of: Some(chosen), ..self }
    }

    /// Sets the longest recovery and the longest that is allowed.
    #[must_use]
    pub fn took(self, longest: Duration, allowed: Duration) -> Self {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self { longest: Some((millis(longest), millis(allowed))), ..self }
    }

    /// Writes the figure to `target/figures`, in place of the one that the same test wrote before. Does nothing if the
    /// program is not below a target directory of cargo.
    pub fn write(&self) {
        let Some(directory) = directory() else { return };
        fs::create_dir_all(&directory).expect("target/figures can be made");
        let file = directory.join(format!("{}-{}.json", self.figure, self.by.replace(['/', ' '], "-")));
        let text = serde_json::to_string(self).expect("it is JSON");
        fs::write(file, text).expect("a figure can be written");
    }
}

/// All written figures, sorted by figure and test; empty if none were written.
///
/// # Errors
/// When a file cannot be read or parsed.
pub fn read() -> anyhow::Result<Vec<Reached>> {
    let Some(Ok(files)) = directory().map(fs::read_dir) else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for file in files {
        all.push(serde_json::from_str(&fs::read_to_string(file?.path())?)?);
    }
    all.sort_by(|one: &Reached, other: &Reached| (one.figure, &one.by).cmp(&(other.figure, &other.by)));
    Ok(all)
}

/// `target/figures`: the directory `figures` in the nearest ancestor of this program that has a directory `debug`.
/// `None` if no ancestor has one.
fn directory() -> Option<PathBuf> {
    let exe = std::env::current_exe().expect("this program knows its own path");
    let target = exe.ancestors().find(|directory| directory.join("debug").is_dir());
    target.map(|target| target.join("figures"))
}
