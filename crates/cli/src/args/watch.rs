//! The arguments of `ringback watch`.

use clap::Args;
use ringback_core::contract::EventName;
use ringback_core::job::JobKey;

use super::values;

const EXAMPLES: &str = "\
Examples:
  ringback watch
  ringback watch pay.notify --kind attempt,dead
  ringback watch pay.notify/order-1 && echo it was delivered
  ringback watch pay.notify --output json | jq -r 'select(.event == \"dead\") | .id'

Events are live: earlier ones are not shown. The command reconnects by itself and prints a note when events may be \
missing. For one job it shows the state and then the events until the job ends; the exit code is 0 when the job is \
done, and 1 when it is dead, cancelled or not known. For topics it runs until it is interrupted.";

/// The jobs to watch, and the kinds of events.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WatchArgs {
    /// A topic, or a job as TOPIC/ID or as two arguments [default: all topics]
    #[arg(num_args = 0..=2, value_name = "TOPIC[/ID]")]
    name: Vec<String>,
    /// Show only these kinds of events, separated by commas
    #[arg(long = "kind", value_name = "KIND", value_delimiter = ',', value_parser = EventName::ALL.map(EventName::name))]
    pub(crate) kinds: Vec<String>,
}

/// All jobs, those of a topic, or one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    Everything,
    Topic(String),
    Job(JobKey),
}

impl WatchArgs {
    /// The jobs to watch.
    ///
    /// # Errors
    /// A usage error when the name is not valid.
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
