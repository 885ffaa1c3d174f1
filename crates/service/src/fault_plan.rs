//! What this process does at its crash points, by the environment. Only in builds with debug assertions.
//!
//! `FAULT_PLAN` is a file with a line for each action: the name of a point, the action, and at which pass. `kill` ends
//! the process as `kill -9` does, `stop` stops it until somebody continues it, and `cut` breaks the connection to the
//! store. The lines of a point are carried out one after the other. `FAULT_LOG` is a file to which each action is
//! appended before it is carried out; what is in there already is not done again, whichever process did it.

use std::collections::{HashMap, VecDeque};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use nix::sys::signal::{Signal, raise};
use ringback_core::fault::{self, Hook, Reached};

/// What is done to the process, or to its connection to the store.
#[derive(Clone, Copy, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
enum Action {
    Kill,
    Stop,
    Cut,
}

/// An action that is to be done at a point, after so many passes.
struct Planned {
    action: Action,
    passes: u32,
}

/// Installs the hook for `FAULT_PLAN` and `FAULT_LOG`, if both are set. Panics if the plan cannot be read.
pub fn install() {
    let text = |name: &str| std::env::var_os(name).and_then(|value| value.into_string().ok());
    if let Some((plan, log)) = text("FAULT_PLAN").zip(text("FAULT_LOG")) {
        fault::install(hook(&plan, log.into()));
    }
}

fn hook(plan: &str, log: PathBuf) -> Hook {
    let plan = fs::read_to_string(plan).unwrap_or_else(|error| panic!("FAULT_PLAN {plan}: {error}"));
    let mut points: HashMap<String, VecDeque<Planned>> = HashMap::new();
    for line in plan.lines() {
        let wrong = || panic!("this is not a line of a plan: {line}");
        let [point, action, passes] = line.split(' ').collect::<Vec<_>>()[..] else { wrong() };
        let action = action.parse().unwrap_or_else(|_| wrong());
        if !is_done(&log, point, action) {
            let passes = passes.parse().unwrap_or_else(|_| panic!("this is not a number of passes: {line}"));
            let planned = Planned { action, passes };
            points.entry(point.to_owned()).or_default().push_back(planned);
        }
    }
    let points = Mutex::new(points);
    Box::new(move |point| {
        let action = passed(&mut points.lock().unwrap_or_else(PoisonError::into_inner), point);
        action.map_or(Reached::GoesOn, |action| act(point, action, &log))
    })
}

/// Counts a pass of a point. Returns the action that is to be done at it, if any, and removes that from the plan.
fn passed(points: &mut HashMap<String, VecDeque<Planned>>, point: &str) -> Option<Action> {
    let planned = points.get_mut(point)?;
    let next = planned.front_mut()?;
    next.passes = next.passes.saturating_sub(1);
    (next.passes == 0).then(|| planned.pop_front().map(|planned| planned.action)).flatten()
}

fn act(point: &str, action: Action, log: &Path) -> Reached {
    if is_done(log, point, action) {
        return Reached::GoesOn;
    }
    let file = OpenOptions::new().append(true).create(true).open(log);
    let line = format!("{point} {}\n", <&str>::from(action));
    file.and_then(|mut file| file.write_all(line.as_bytes())).expect("FAULT_LOG can be written");
    let signal = match action {
        Action::Kill => Signal::SIGKILL,
        Action::Stop => Signal::SIGSTOP,
        Action::Cut => return Reached::IsCut,
    };
    raise(signal).expect("a process may signal itself");
    Reached::GoesOn
}

/// Whether the log has an action at a point, of this or another process.
fn is_done(log: &Path, point: &str, action: Action) -> bool {
    let done = fs::read_to_string(log).unwrap_or_default();
    done.lines().any(|line| line.split_once(' ') == Some((point, action.into())))
}
