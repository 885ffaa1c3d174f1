//! How a Ringback process lives: configuration, telemetry, signals and shutdown, HTTP server, the admin port.
//!
//! A binary describes itself as a [`Service`] and passes in its work; this crate does not know what
//! that work is. In reading order: [`service`](Service), [`config`], [`settings`], [`flags`],
//! [`process`](process_name), [`context`](Context), [`shutdown`], [`signals`](Signals), [`tasks`], [`http_server`],
//! [`admin_port`], [`scrape`](Scrapes), [`dependency`], [`telemetry`], [`trace`], and the small parts that roles use:
//! [`open_files`], [`outage`], [`random`].

pub mod admin_port;
pub mod config;
mod context;
pub mod dependency;
#[cfg(debug_assertions)]
mod fault_plan;
pub mod flags;
pub mod http_server;
pub mod open_files;
pub mod outage;
mod process;
pub mod random;
mod scrape;
mod service;
pub mod settings;
pub mod shutdown;
mod signals;
pub mod tasks;
pub mod telemetry;
pub mod trace;

pub use crate::admin_port::Health;
pub use crate::config::{Lookup, Setting};
pub use crate::context::Context;
#[cfg(debug_assertions)]
pub use crate::fault_plan::install as install_fault_plan;
pub use crate::process::{USAGE, process_name};
pub use crate::scrape::{GaugeValues, Scrapes};
pub use crate::service::Service;
pub use crate::shutdown::Shutdown;
pub use crate::signals::{ReadAgain, Signals};
pub use crate::tasks::Tasks;
