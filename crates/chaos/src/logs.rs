//! Copies transitions, epochs, losses of the store, panics and ERROR lines from logs of processes into the history.

use ringback_testkit::history::{Alarm, Entry, History, JobState, LogLevel, LogLine, Transition};
use ringback_testkit::recorded::write_epoch;
use serde_json::Value;

use crate::planted_secret;

/// Messages of level ERROR that a fault of these runs explains, and the class of each.
const KNOWN: [(&str, &str); 5] = [
    ("the embedded store cannot write its files", "full-disk"),
    ("the store does not take entries of the audit log", "store-away"),
    ("an entry is missing in the audit log of the store", "store-away"),
    (LOSSES[0], "lost-data"),
    (LOSSES[1], "lost-data"),
];
/// The beginnings of messages about lost data, which the checker compares with the losses.
const LOSSES: [&str; 2] = ["the store has lost accepted jobs", "the store is not the one that it was"];

/// How far a log has been read, and who wrote it from when.
#[derive(Default)]
pub(crate) struct LogReader {
    offset: usize,
    starts: Vec<(u64, u32)>,
}

impl LogReader {
    /// Sets the process that writes the log from `t` on.
    pub(crate) fn started(&mut self, t: u64, pid: u32) {
        self.starts.push((t, pid));
    }

    /// Writes what is new in `log`, the whole log, and searches it for secrets. An incomplete last line waits for the
    /// next call.
    pub(crate) fn read(&mut self, log: &str, history: &History) {
        let rest = log.get(self.offset..).unwrap_or_default();
        let complete = rest.rfind('\n').map_or(0, |end| end + 1);
        self.offset += complete;
        planted_secret::scan(&rest[..complete], history);
        for text in rest[..complete].lines() {
            // A line that a killed process has left incomplete is not JSON.
            match serde_json::from_str::<Value>(text) {
                Ok(line) => self.line(text, &line, history),
                Err(_) if text.contains("panicked at") => {
                    self.write(history.t(), LogLevel::Panic, text, history);
                }
                Err(_) => {}
            }
        }
    }

    fn line(&self, text: &str, line: &Value, history: &History) {
        let time = line["timestamp"].as_str().and_then(|time| time.parse::<jiff::Timestamp>().ok());
        let t = time.map_or(0, |time| u64::try_from(time.as_microsecond()).unwrap_or_default());
        let t = t.saturating_sub(history.wall());
        let fields = line.get("fields").unwrap_or(line);
        if fields["message"] == "job changed" {
            write_transition(fields, t, history).expect("a line of the log of transitions");
        } else if write_epoch(fields, t, self.pid_at(t), history) {
            // The epoch is written.
        } else if line["level"] == "ERROR" {
            if LOSSES.iter().any(|message| fields["message"].as_str().is_some_and(|m| m.starts_with(message)))
            {
                history.write(&Entry::Alarm(Alarm { t, pid: self.pid_at(t) }));
            }
            let is_panic = text.contains("panicked");
            let level = if is_panic { LogLevel::Panic } else { LogLevel::Error };
            self.write(t, level, text, history);
        }
    }

    /// The id of the process that wrote the log at a time; 0 if none has started.
    fn pid_at(&self, t: u64) -> u32 {
        let writer = self.starts.iter().rfind(|(start, _)| *start <= t).or(self.starts.first());
        writer.map_or(0, |(_, pid)| *pid)
    }

    fn write(&self, t: u64, level: LogLevel, text: &str, history: &History) {
        let pid = self.pid_at(t);
        let known = KNOWN.iter().find(|(message, _)| text.contains(message));
        let class = known.map(|(_, class)| *class);
        history.write(&Entry::Log(LogLine { t, pid, level, class, text: text.into() }));
    }
}

fn write_transition(fields: &Value, t: u64, history: &History) -> Option<()> {
    let state = |name: &str| -> Option<JobState> {
        let name = if fields[name] == "gone" { "nothing" } else { fields[name].as_str()? };
        serde_json::from_value(name.into()).ok()
    };
    history.write(&Entry::Transition(Transition {
        t,
        job: &format!("{}/{}", fields["job.topic"].as_str()?, fields["job.id"].as_str()?),
        transition: fields["why"].as_str()?.parse().ok()?,
        from: state("from")?,
        to: state("to")?,
    }));
    Some(())
}
