//! A format of log lines that leaves out what exceeds the limit of its callsite. It sees only lines that the log filter
//! lets pass, and traces do not depend on it.

use std::fmt;

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::registry::LookupSpan;

use super::log_queue::LogQueue;

/// The most characters of a message that a report shows.
const MAX_MESSAGE: usize = 100;

/// The format `F`, limited.
pub(super) struct Limited<F> {
    pub(super) format: F,
    pub(super) queue: LogQueue,
}

impl<S, N, F> FormatEvent<S, N> for Limited<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        // Nothing is written for a line that is not formatted.
        if self.queue.admits(event.metadata(), || message(event)) {
            self.format.format_event(context, writer, event)
        } else {
            Ok(())
        }
    }
}

/// The first [`MAX_MESSAGE`] characters of a line's message.
fn message(event: &Event<'_>) -> String {
    let mut message = Message(String::new());
    event.record(&mut message);
    message.0.chars().take(MAX_MESSAGE).collect()
}

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}
