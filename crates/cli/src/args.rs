//! The arguments that several commands share: the server and the format of the output, one or many jobs, a topic, the
//! filter of dead jobs, and the size of lists. `filter` has the filter of all jobs.

mod filter;
pub(crate) mod help;
pub(crate) mod values;

use clap::{Args, ValueEnum};
use reqwest::Url;
use ringback_core::access::{TENANT_HEADER_ALL, TENANT_HEADER_NONE};
use ringback_core::job::{JobKey, Tenant};
use serde_json::{Map, Value};

pub(crate) use self::filter::Filter;
use self::values::ChosenTenant;

/// The server, and how output is printed.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Server and output")]
pub(crate) struct Remote {
    /// URL of the API; `RINGBACK_KEY` has the key for it, and on https `RINGBACK_SERVER_CA_FILE` and
    /// `RINGBACK_CLIENT_CERT` name files (PEM)
    #[arg(long, global = true, env = "RINGBACK_URL", hide_env_values = true, value_name = "URL",
        default_value = "http://127.0.0.1:7411", value_parser = values::server)]
    pub(crate) server: Url,
    /// Tenant whose topics and jobs the command is about; ~none for those of no tenant, and ~all for lists of all; only
    /// the root key can choose
    #[arg(long, global = true, env = "RINGBACK_TENANT", value_name = "NAME", value_parser = values::tenant)]
    tenant: Option<ChosenTenant>,
    /// Output format: table for people, json for scripts (the API's JSON, unchanged)
    #[arg(long, global = true, value_name = "FORMAT", default_value = "table")]
    output: Format,
    /// Short for --output json
    #[arg(long, global = true)]
    json: bool,
    /// Print times in UTC [default: on a terminal the local zone (TZ), else UTC]
    #[arg(long, global = true)]
    pub(crate) utc: bool,
}

impl Remote {
    pub(crate) fn format(&self) -> Format {
        if self.json { Format::Json } else { self.output }
    }

    pub(crate) fn tenant(&self) -> Option<&Tenant> {
        match self.tenant.as_ref()? {
            ChosenTenant::Tenant(tenant) => Some(tenant),
            ChosenTenant::Nothing | ChosenTenant::OfNone | ChosenTenant::OfAll => None,
        }
    }

    /// The value of the header that chooses a tenant; `None` if none was chosen.
    pub(crate) fn tenant_header(&self) -> Option<&str> {
        match self.tenant.as_ref()? {
            ChosenTenant::Nothing => None,
            ChosenTenant::Tenant(tenant) => Some(tenant.as_str()),
            ChosenTenant::OfNone => Some(TENANT_HEADER_NONE),
            ChosenTenant::OfAll => Some(TENANT_HEADER_ALL),
        }
    }
}

/// The format of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    // The flag describes them: descriptions here make every help text longer.
    Table,
    Json,
}

/// One job, by topic and id.
#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    /// The job, as TOPIC/ID or TOPIC ID
    #[arg(required = true, num_args = 1..=2, value_name = "TOPIC/ID")]
    name: Vec<String>,
}

impl JobArgs {
    /// The topic and the id.
    ///
    /// # Errors
    /// A usage error when they are not valid.
    pub(crate) fn key(&self) -> Result<JobKey, clap::Error> {
        values::job_key(&self.name)
    }
}

/// One job by topic and id, or none.
#[derive(Debug, Args)]
pub(crate) struct MaybeJobArgs {
    /// Job as TOPIC/ID or TOPIC ID
    #[arg(num_args = 1..=2, value_name = "TOPIC/ID")]
    name: Vec<String>,
}

impl MaybeJobArgs {
    /// Whether none is named.
    pub(crate) const fn is_empty(&self) -> bool {
        self.name.is_empty()
    }

    /// The topic and the id.
    ///
    /// # Errors
    /// A usage error when they are not valid.
    pub(crate) fn key(&self) -> Result<JobKey, clap::Error> {
        values::job_key(&self.name)
    }
}

/// One job or many, by topic and id.
#[derive(Debug, Args)]
pub(crate) struct JobsArgs {
    /// Jobs, each as TOPIC/ID; a single one also as TOPIC ID; - reads them from standard input, one per line
    #[arg(required = true, num_args = 1.., value_name = "TOPIC/ID")]
    names: Vec<String>,
}

/// One job or many, by topic and id, or none.
#[derive(Debug, Args)]
pub(crate) struct MaybeJobsArgs {
    /// Jobs, each as TOPIC/ID; a single one also as TOPIC ID; - reads them from standard input, one per line
    #[arg(num_args = 1.., value_name = "TOPIC/ID")]
    names: Vec<String>,
}

impl MaybeJobsArgs {
    /// Whether none is named.
    pub(crate) const fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub(crate) fn named(&self) -> JobsArgs {
        JobsArgs { names: self.names.clone() }
    }
}

/// The jobs that are named.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Jobs {
    One(JobKey),
    Many(Vec<JobKey>),
    /// One per line of standard input.
    Stdin,
}

impl JobsArgs {
    /// The jobs that the arguments name; two arguments without a `/` are the topic and the id of one job.
    ///
    /// # Errors
    /// A usage error when none is named, or one of them is not valid.
    pub(crate) fn jobs(&self) -> Result<Jobs, clap::Error> {
        match self.names.as_slice() {
            [] => Err(values::wrong("no job is named; write TOPIC/ID".to_owned())),
            [name] if name == "-" => Ok(Jobs::Stdin),
            [_] => values::job_key(&self.names).map(Jobs::One),
            [topic, id] if !topic.contains('/') && !id.contains('/') => {
                values::job_key(&self.names).map(Jobs::One)
            }
            names => {
                names.iter().map(|name| values::job_key(&[name])).collect::<Result<_, _>>().map(Jobs::Many)
            }
        }
    }
}

/// One topic.
#[derive(Debug, Args)]
pub(crate) struct TopicArgs {
    /// Name of the topic
    #[arg(value_name = "TOPIC", value_parser = values::topic)]
    pub(crate) topic: String,
}

/// The size of a list.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Page {
    /// Maximum number of items
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// List all items, without a limit
    #[arg(long, conflicts_with = "limit")]
    all: bool,
}

impl Page {
    /// The maximum number of items.
    pub(crate) fn limit(self) -> u64 {
        if self.all { u64::MAX } else { self.limit }
    }
}

/// A filter of dead jobs.
#[derive(Clone, Debug, Args)]
pub(crate) struct DeadFilter {
    /// Only jobs that are dead for this reason: exhausted, gone, lost, or one that a consumer gave
    #[arg(long, value_name = "WORD")]
    pub(crate) reason: Option<String>,
    /// Only jobs that died at this time or later (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub(crate) died_after: Option<String>,
    /// Only jobs that died before this time (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub(crate) died_before: Option<String>,
}

impl DeadFilter {
    fn fields(&self) -> impl Iterator<Item = (&'static str, String)> + use<> {
        let fields = [
            ("reason", self.reason.clone()),
            ("died_after", self.died_after.clone()),
            ("died_before", self.died_before.clone()),
        ];
        fields.into_iter().filter_map(|(name, value)| value.map(|value| (name, value)))
    }

    pub(crate) fn query(&self) -> Vec<(&'static str, String)> {
        self.fields().collect()
    }

    /// The fields of the request body.
    pub(crate) fn json(&self) -> Map<String, Value> {
        self.fields().map(|(name, value)| (name.to_owned(), value.into())).collect()
    }
}
