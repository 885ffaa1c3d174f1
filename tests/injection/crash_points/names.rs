//! The names of all crash points, read from the source, and the fault plan that arms them.

use std::fs;

use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use ringback_testkit::StackOptions;
use tempfile::TempDir;

use crate::sources::{root, sources};

/// Calls that a sound installation never makes: they repair damage, or accept a loss. `repairs` sweeps them.
const REPAIRS: [&str; 8] = [
    "check_confirm",
    "check_repair",
    "check_count",
    "check_index",
    "check_due",
    "check_slot",
    "lose",
    "accept_loss",
];

/// A call that is made for tenants with quotas. `quotas` sweeps it.
const OF_QUOTAS: &str = "grant_quota";

/// Calls that are made if a server refuses to rewrite its append-only file, and if a schedule cannot be read.
const UNREACHED: [&str; 20] = [
    "drop_server",
    // Calls after a loss, which the tests of lost data reach.
    "take_back",
    "note_forgotten",
    "forget_schedule_times",
    // The tests of the archive reach these calls of archivers.
    "archive_status",
    "attach_archive",
    "take_ended",
    "remove_ended",
    // The tests of feeds reach these calls of feed processes.
    "hold_feed",
    "change_feed",
    // The tests of flow control reach these calls about limits and the order of keys.
    "put_limit",
    "mark_limit",
    "unmark_limit",
    "order_topic",
    "unorder_topic",
    "topic_order",
    "unblock",
    "limits",
    "limit_names",
    "admit",
];

/// The points of commands, which `commands` sweeps.
const COMMANDS: [&str; 5] = ["backup.", "restore.", "import.", "compact.", "create."];
/// Crash points of archivers and of feeds, which are in the tests of these.
const ARCHIVER: &str = "archiver.";
const FEED: &str = "feed.";

/// Calls that are armed but need not be reached: the first is made once per start of a server, the second once dead
/// jobs are old, the third after a server was away.
const SELDOM: [&str; 3] = ["store.note_servers.", "store.evict.", "store.accepted."];

/// The latest pass at which something is done.
const LATEST: u32 = 4;

/// What is done at some points, one after the other at each.
pub(crate) struct Plan {
    pub(crate) seed: u64,
    dir: TempDir,
    wanted: Vec<String>,
}

impl Plan {
    /// Arms all points. A process is killed at each; at a third, or at all if `is_whole`, it is also stopped and, at
    /// calls of the store, cut off. Points of the third are armed at one of the first [`LATEST`] passes, others at the
    /// first.
    pub(crate) fn new(points: &[String], seed: u64, is_whole: bool) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut wanted = Vec::new();
        let mut plan = String::new();
        for (point, place) in points.iter().zip(0..) {
            let is_all = is_whole || seed.wrapping_add(place) % 3 == 0;
            let is_call = point.starts_with("store.") && !point.ends_with("_load");
            let mut actions = if is_call { vec!["kill", "stop", "cut"] } else { vec!["kill", "stop"] };
            actions.retain(|action| is_all || *action == "kill");
            actions.shuffle(&mut rng);
            for action in actions {
                let pass = rng.random_range(1..=if is_all { LATEST } else { 1 });
                plan.push_str(&format!("{point} {action} {pass}\n"));
                if !SELDOM.iter().any(|name| point.starts_with(name)) {
                    wanted.push(format!("{point} {action}"));
                }
            }
        }
        let dir = tempfile::Builder::new().prefix("ringback-plan-").tempdir().expect("a temp directory");
        fs::write(dir.path().join("plan"), plan).expect("the plan can be written");
        Self { seed, dir, wanted }
    }

    /// Arms all points at their first pass, because some are passed once in the life of a process. Counts for
    /// processes that start from now on.
    pub(crate) fn arm_first_passes(&self) {
        let file = self.dir.path().join("plan");
        let plan = fs::read_to_string(&file).expect("the plan can be read");
        let first = plan.lines().filter_map(|line| Some(format!("{} 1\n", line.rsplit_once(' ')?.0)));
        // Replaces the file in one step, because a process may read it.
        let new = self.dir.path().join("new");
        fs::write(&new, first.collect::<String>()).and_then(|()| fs::rename(&new, &file)).expect("a plan");
    }

    /// A plan without a point, which never counts as carried out.
    pub(crate) fn never() -> Self {
        let plan = Self::new(&[], 0, true);
        Self { wanted: vec!["nothing".to_owned()], ..plan }
    }

    pub(crate) fn give(&self, options: StackOptions) -> StackOptions {
        let file = |name: &str| self.dir.path().join(name).display().to_string();
        options.env("FAULT_PLAN", &file("plan")).env("FAULT_LOG", &file("log"))
    }

    /// Whether the plan arms more than one point that has to be reached.
    pub(crate) fn is_armed(&self) -> bool {
        self.wanted.len() > 1
    }

    /// The actions that have to be done and were not yet.
    pub(crate) fn left(&self) -> Vec<&str> {
        let log = fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
        let done: std::collections::HashSet<&str> = log.lines().collect();
        self.wanted.iter().map(String::as_str).filter(|wanted| !done.contains(wanted)).collect()
    }
}

/// The points that roles on Redis reach: those in their code, and both sides of each call of the store.
pub(crate) fn redis_points() -> Vec<String> {
    let is_reached = |call: &str| !REPAIRS.contains(&call) && !UNREACHED.contains(&call) && call != OF_QUOTAS;
    let calls = store_calls();
    let is_call = |name: &&str| calls.iter().any(|call| call == name);
    assert!(REPAIRS.iter().chain(&UNREACHED).chain([&OF_QUOTAS]).all(is_call), "each is a call");
    let calls = calls.iter().filter(|call| is_reached(call)).flat_map(|call| sides(call));
    let is_of_roles = |point: &String| {
        ![ARCHIVER, FEED, "embedded."].iter().any(|start| point.starts_with(start))
            && !COMMANDS.iter().any(|command| point.starts_with(command))
    };
    calls.chain(points().into_iter().filter(is_of_roles)).collect()
}

/// Both sides of the call that draws from quotas.
pub(crate) fn quota_points() -> Vec<String> {
    sides(OF_QUOTAS).into()
}

/// Both sides of each call that repairs damage.
pub(crate) fn repair_points() -> Vec<String> {
    REPAIRS.into_iter().flat_map(sides).collect()
}

/// A third of some points, chosen by the seed; all of them if `is_whole`.
pub(crate) fn share(points: Vec<String>, seed: u64, is_whole: bool) -> Vec<String> {
    let is_chosen = |place: u64| is_whole || seed.wrapping_add(place).is_multiple_of(3);
    points.into_iter().zip(0..).filter(|(_, place)| is_chosen(*place)).map(|(point, _)| point).collect()
}

fn sides(call: &str) -> [String; 2] {
    ["before", "after"].map(|side| format!("store.{call}.{side}"))
}

pub(crate) fn command_points() -> Vec<String> {
    let is_of_command = |point: &String| COMMANDS.iter().any(|command| point.starts_with(command));
    points().into_iter().filter(is_of_command).collect()
}

/// The points in the code of the embedded store.
pub(crate) fn embedded_points() -> Vec<String> {
    points().into_iter().filter(|point| point.starts_with("embedded.")).collect()
}

/// The literals in `crash_point!` in the source of all crates, sorted. Asserts that each is there once.
fn points() -> Vec<String> {
    let mut names = Vec::new();
    for file in sources() {
        let text = fs::read_to_string(&file).expect("a source file");
        let calls = text.split("crash_point!(\"").skip(1);
        names.extend(calls.filter_map(|rest| rest.split('"').next()).map(str::to_owned));
    }
    names.sort();
    assert!(names.len() > 30, "{names:?}");
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "each name stands once: {names:?}");
    names
}

/// The names of the scripts, which are those of the store's calls.
pub(crate) fn store_calls() -> Vec<String> {
    let file = root().join("crates/store-redis/src/script.rs");
    let text = fs::read_to_string(file).expect("the list of scripts");
    let list = text.split("\nscripts! {").nth(1).and_then(|rest| rest.split("\n}").next()).expect("the list");
    let names = list.lines().filter_map(|line| Some(line.split('"').nth(1)?.to_owned()));
    names.collect()
}
