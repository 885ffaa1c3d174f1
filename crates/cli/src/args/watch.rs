//! What is watched.

use clap::Args;
use ringback_core::contract::EventName;
use ringback_core::job::JobKey;

use super::values;

const EXAMPLES: &str = "\
Examples:
  ringback watch
  ringback watch pay.notify --kind attempt,dead
  ringback watch pay.notify/order-1 && echo it was handed over
  ringback watch pay.notify --output json | jq -r 'select(.event == \"dead\") | .id'

Live only: what happened before is not shown. It connects again by itself, and says when something may be \
missing. Of one job it shows the state and then what happens, until it has ended. Exit codes of that: 0 the \
job is done; 1 it is dead or cancelled, or not known. Otherwise it goes on until it is interrupted.";

/// What to watch: everything, a topic, or one job.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WatchArgs {
    /// A topic, or a job by its topic and id, as one word with a slash or as two; without it everything
    #[arg(num_args = 0..=2, value_name = "TOPIC[/ID]")]
    name: Vec<String>,
    /// Show only these kinds of events, with commas between
    #[arg(long = "kind", value_name = "KIND", value_delimiter = ',', value_parser = EventName::ALL.map(EventName::name))]
    pub(crate) kinds: Vec<String>,
}

/// What is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    Everything,
    Topic(String),
    Job(JobKey),
}

impl WatchArgs {
    /// What is watched.
    ///
    /// # Errors
    /// A usage error where it cannot be a name.
    pub(crate) fn watched(&self) -> Result<Watched, clap::Error> {
        match self.name.as_slice() {
            [] => Ok(Watched::Everything),
            [topic] if !topic.contains('/') => {
                values::topic(topic).map(Watched::Topic).map_err(values::wrong)
            }
            words => values::job_key(words).map(Watched::Job),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(words: &[&str]) -> Result<Watched, clap::Error> {
        let name = words.iter().map(|word| (*word).to_owned()).collect();
        WatchArgs { name, kinds: Vec::new() }.watched()
    }

    #[test]
    fn a_topic_or_a_job_or_nothing_is_named() {
        let job = Watched::Job(JobKey { topic: "a".parse().unwrap(), id: "b".parse().unwrap() });
        assert_eq!(watched(&[]).unwrap(), Watched::Everything);
        assert_eq!(watched(&["a"]).unwrap(), Watched::Topic("a".to_owned()));
        assert_eq!(watched(&["a/b"]).unwrap(), job);
        assert_eq!(watched(&["a", "b"]).unwrap(), job);
        for wrong in [&[".."][..], &["a/"], &["a", "b/c"], &["a b"]] {
            assert!(watched(wrong).is_err(), "{wrong:?}");
        }
    }
}
