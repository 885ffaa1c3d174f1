//! The `traceparent` header of W3C Trace Context level 1: parsing, formatting, and use as the parent of
//! a span.

use std::fmt;
use std::str::FromStr;

use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt as _, TraceFlags, TraceId, TraceState};
use tracing_opentelemetry::OpenTelemetrySpanExt as _;

use crate::telemetry::tracing_active;

/// `00-` + 32 digits + `-` + 16 digits + `-` + 2 digits.
const LENGTH: usize = 55;

/// A span of a trace. Neither id is all zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    /// The id of the trace.
    pub trace_id: [u8; 16],
    /// The id of the span in the trace.
    pub span_id: [u8; 8],
    /// True if the caller records this trace.
    pub sampled: bool,
}

/// Why a text is not a `traceparent`. The specification asks to ignore such a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceParentError {
    /// A field has the wrong length, or version 00 has a further field.
    #[error("a traceparent is 00-<32 digits>-<16 digits>-<2 digits>")]
    Shape,
    /// A digit is not one of `0123456789abcdef`.
    #[error("a traceparent consists of lower-case hexadecimal digits")]
    Digit,
    /// Version ff is forbidden.
    #[error("version ff of a traceparent is invalid")]
    Version,
    /// An id of zeros means that there is none.
    #[error("the ids of a traceparent cannot be all zeros")]
    Zero,
}

impl TraceParent {
    /// Converts to the context of a remote parent.
    #[must_use]
    pub fn context(&self) -> opentelemetry::Context {
        opentelemetry::Context::new().with_remote_span_context(self.span_context())
    }

    /// Converts to a remote span context without trace state.
    #[must_use]
    pub fn span_context(&self) -> SpanContext {
        let flags = TraceFlags::default().with_sampled(self.sampled);
        let (trace, span) = (TraceId::from_bytes(self.trace_id), SpanId::from_bytes(self.span_id));
        SpanContext::new(trace, span, flags, true, TraceState::default())
    }

    /// Makes `span` a child of this one. Call it before the span is entered or asked for its context.
    /// Does nothing unless traces are exported.
    pub fn adopt(&self, span: &tracing::Span) {
        if tracing_active() {
            // Fails only for spans that a filter dropped.
            span.set_parent(self.context()).ok();
        }
    }

    /// Returns the current span, if traces are exported. This fixes the parent of the span, so call
    /// [`adopt`](Self::adopt) first.
    #[must_use]
    pub fn current() -> Option<Self> {
        if !tracing_active() {
            return None;
        }
        let context = tracing::Span::current().context();
        let span = context.span();
        let found = span.span_context();
        found.is_valid().then(|| Self {
            trace_id: found.trace_id().to_bytes(),
            span_id: found.span_id().to_bytes(),
            sampled: found.is_sampled(),
        })
    }
}

impl FromStr for TraceParent {
    type Err = TraceParentError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bytes = text.as_bytes();
        let dashes = [2, 35, 52].iter().all(|at| bytes.get(*at) == Some(&b'-'));
        if bytes.len() < LENGTH || !dashes {
            return Err(TraceParentError::Shape);
        }
        let [version]: [u8; 1] = digits(&bytes[..2])?;
        // Later versions may append fields after a dash.
        let whole = bytes.len() == LENGTH || (version != 0 && bytes[LENGTH] == b'-');
        let [flags]: [u8; 1] = digits(&bytes[53..LENGTH])?;
        let (trace_id, span_id) = (digits(&bytes[3..35])?, digits(&bytes[36..52])?);
        if version == 0xff {
            return Err(TraceParentError::Version);
        }
        if !whole {
            return Err(TraceParentError::Shape);
        }
        if trace_id == [0; 16] || span_id == [0; 8] {
            return Err(TraceParentError::Zero);
        }
        Ok(Self { trace_id, span_id, sampled: flags & 1 == 1 })
    }
}

/// Always formats version 00; of the flags only `sampled` is kept.
impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (trace, span) = (u128::from_be_bytes(self.trace_id), u64::from_be_bytes(self.span_id));
        write!(f, "00-{trace:032x}-{span:016x}-{:02x}", u8::from(self.sampled))
    }
}

fn digits<const N: usize>(text: &[u8]) -> Result<[u8; N], TraceParentError> {
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Ok(bytes)
}

fn digit(text: u8) -> Result<u8, TraceParentError> {
    match text {
        b'0'..=b'9' => Ok(text - b'0'),
        b'a'..=b'f' => Ok(text - b'a' + 10),
        _ => Err(TraceParentError::Digit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn error(text: &str) -> TraceParentError {
        text.parse::<TraceParent>().unwrap_err()
    }

    #[test]
    fn the_example_of_the_specification_survives_both_ways() {
        let parent: TraceParent = EXAMPLE.parse().unwrap();
        assert!(parent.sampled);
        assert_eq!(parent.span_id, [0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31]);
        assert_eq!(parent.to_string(), EXAMPLE);
    }

    #[test]
    fn only_the_sampled_flag_is_read_and_passed_on() {
        let text = EXAMPLE.replace("-01", "-fe");
        let parent: TraceParent = text.parse().unwrap();
        assert!(!parent.sampled);
        assert!(parent.to_string().ends_with("-00"));
    }

    #[test]
    fn upper_case_and_other_characters_are_rejected() {
        assert_eq!(error(&EXAMPLE.replace("af", "AF")), TraceParentError::Digit);
        assert_eq!(error(&EXAMPLE.replace("af", "xy")), TraceParentError::Digit);
        assert_eq!(error(&EXAMPLE.replace("af", "é")), TraceParentError::Digit);
    }

    #[test]
    fn zero_ids_are_rejected() {
        assert_eq!(error("00-00000000000000000000000000000000-b7ad6b7169203331-01"), TraceParentError::Zero);
        assert_eq!(error("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"), TraceParentError::Zero);
    }

    #[test]
    fn wrong_lengths_are_rejected() {
        for text in [
            "",
            "00",
            &EXAMPLE[..54],
            &format!("{EXAMPLE}-00"),
            &format!("{EXAMPLE} "),
            &format!(" {EXAMPLE}"),
        ] {
            assert_eq!(error(text), TraceParentError::Shape, "{text}");
        }
    }

    #[test]
    fn later_versions_may_append_fields_and_version_ff_may_not_be() {
        let later = EXAMPLE.replacen("00", "cc", 1);
        assert_eq!(later.parse(), EXAMPLE.parse::<TraceParent>());
        assert_eq!(format!("{later}-what-the-future").parse(), EXAMPLE.parse::<TraceParent>());
        assert_eq!(error(&format!("{later}.what")), TraceParentError::Shape);
        assert_eq!(error(&EXAMPLE.replacen("00", "ff", 1)), TraceParentError::Version);
    }

    #[test]
    fn it_becomes_a_remote_context() {
        let parent: TraceParent = EXAMPLE.parse().unwrap();
        let context = parent.context();
        let span = context.span();
        assert!(span.span_context().is_remote() && span.span_context().is_sampled());
        assert_eq!(span.span_context().trace_id().to_string(), "0af7651916cd43dd8448eb211c80319c");
    }

    #[test]
    fn without_an_exporter_there_is_no_current_span() {
        assert_eq!(TraceParent::current(), None);
    }
}
