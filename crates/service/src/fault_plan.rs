//! What this process does at its crash points, and the bug that is planted in it, by the environment. Only in builds
//! with debug assertions.
//!
//! `FAULT_PLAN` is a file with a line for each action: the name of a point, `kill`, `stop` or `cut`, and at which pass.
//! The lines of a point are carried out one after the other. `FAULT_LOG` is a file to which each action is appended
//! before it is carried out; what is in there already is not done again, whichever process did it. `FAULT_PLANTED` is
//! the name of a bug.

use std::collections::{HashMap, VecDeque};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use nix::sys::signal::{Signal, raise};
use ringback_core::fault::{self, Hook, Reached};

/// What is done at a point.
#[derive(Clone, Copy)]
enum Action {
    /// The process ends as by `kill -9`.
    Kill,
    /// The process stops until somebody continues it.
    Stop,
    /// The connection to the store breaks.
    Cut,
}

impl Action {
    fn parse(name: &str) -> Option<Self> {
        match name {
            "kill" => Some(Self::Kill),
            "stop" => Some(Self::Stop),
            "cut" => Some(Self::Cut),
            _ => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Stop => "stop",
            Self::Cut => "cut",
        }
    }
}

/// An action that is to be done at a point, after so many passes.
struct Planned {
    action: Action,
    passes: u32,
}

/// Installs what the environment asks for.
pub fn install() {
    let text = |name: &str| std::env::var_os(name).and_then(|value| value.into_string().ok());
    let hook = text("FAULT_PLAN").zip(text("FAULT_LOG")).map(|(plan, log)| hook(&plan, log.into()));
    fault::install(hook, text("FAULT_PLANTED"));
}

fn hook(plan: &str, log: PathBuf) -> Hook {
    let plan = fs::read_to_string(plan).unwrap_or_else(|error| panic!("FAULT_PLAN {plan}: {error}"));
    let is_done = done(&log);
    let mut points: HashMap<String, VecDeque<Planned>> = HashMap::new();
    for line in plan.lines() {
        let mut words = line.split(' ');
        let planned = (|| {
            let (point, action) = (words.next()?, Action::parse(words.next()?)?);
            Some((point, Planned { action, passes: words.next()?.parse().ok()? }))
        })();
        let (point, planned) = planned.unwrap_or_else(|| panic!("no line of a plan: {line}"));
        if !is_done(point, planned.action) {
            points.entry(point.to_owned()).or_default().push_back(planned);
        }
    }
    let points = Mutex::new(points);
    Box::new(move |point| {
        let action = passed(&mut points.lock().unwrap_or_else(PoisonError::into_inner), point);
        action.map_or(Reached::GoesOn, |action| act(point, action, &log))
    })
}

/// Counts a pass. Returns the action whose turn it is.
fn passed(points: &mut HashMap<String, VecDeque<Planned>>, point: &str) -> Option<Action> {
    let planned = points.get_mut(point)?;
    let next = planned.front_mut()?;
    next.passes = next.passes.saturating_sub(1);
    (next.passes == 0).then(|| planned.pop_front().map(|planned| planned.action)).flatten()
}

fn act(point: &str, action: Action, log: &Path) -> Reached {
    if done(log)(point, action) {
        return Reached::GoesOn;
    }
    let file = OpenOptions::new().append(true).create(true).open(log);
    let line = format!("{point} {}\n", action.name());
    file.and_then(|mut file| file.write_all(line.as_bytes())).expect("FAULT_LOG can be written");
    let signal = match action {
        Action::Kill => Signal::SIGKILL,
        Action::Stop => Signal::SIGSTOP,
        Action::Cut => return Reached::IsCut,
    };
    raise(signal).expect("a process may signal itself");
    Reached::GoesOn
}

/// What was done, by this or another process.
fn done(log: &Path) -> impl Fn(&str, Action) -> bool + use<> {
    let done = fs::read_to_string(log).unwrap_or_default();
    move |point, action| done.lines().any(|line| line.split_once(' ') == Some((point, action.name())))
}
