//! Content hashes and traces ([`Trace`]) as text: their parsers and printers, for headers and exports.

use std::fmt;
use std::str::FromStr;

use super::{ContentHash, Trace};
use crate::hex::{self, Hex};

/// The length of a `traceparent` of version 00.
const TRACEPARENT: usize = 55;

/// A text that is not a content hash or not a `traceparent`. The message says what is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TextError(pub &'static str);

/// 16 hexadecimal digits.
impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex(&self.0).fmt(f)
    }
}

impl FromStr for ContentHash {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        hex::read(text).map(Self).ok_or(TextError("a content hash is 16 hexadecimal digits in lower case"))
    }
}

impl Trace {
    /// Whether the trace is recorded.
    pub const fn is_sampled(&self) -> bool {
        self.flags & 1 == 1
    }

    /// Reads the header `traceparent` of a request. Versions after 00 may append fields. Of the flags only `sampled` is
    /// kept. `None` if the header is not valid; the specification asks to ignore such a header.
    pub fn from_header(text: &str) -> Option<Self> {
        let (head, more) = text.split_at_checked(TRACEPARENT)?;
        let (version, trace) = read(head)?;
        let is_whole = more.is_empty() || version > 0 && more.starts_with('-');
        (is_whole && version < 0xff).then_some(Self { flags: trace.flags & 1, ..trace })
    }
}

/// A `traceparent` of W3C Trace Context, version 00.
impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", Hex(&self.trace_id), Hex(&self.parent_id), self.flags)
    }
}

impl FromStr for Trace {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        match read(text) {
            Some((0, trace)) => Ok(trace),
            _ => Err(TextError("a traceparent is 00-<32 digits>-<16 digits>-<2 digits>, no id all zeros")),
        }
    }
}

/// Reads the version and the trace of a `traceparent` without appended fields. `None` if a field is missing, has
/// another length or is not hexadecimal in lower case, or if an id is all zeros.
fn read(text: &str) -> Option<(u8, Trace)> {
    let mut parts = text.split('-');
    let [version] = hex::read(parts.next()?)?;
    let (trace_id, parent_id) = (hex::read(parts.next()?)?, hex::read(parts.next()?)?);
    let [flags] = hex::read(parts.next()?)?;
    let is_trace = parts.next().is_none() && trace_id != [0; 16] && parent_id != [0; 8];
    is_trace.then_some((version, Trace { trace_id, parent_id, flags }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_content_hash_is_read_as_it_is_written() {
        let hash = ContentHash([0, 1, 2, 0xff, 0x10, 0xab, 9, 8]);
        assert_eq!(hash.to_string(), "000102ff10ab0908");
        assert_eq!("000102ff10ab0908".parse(), Ok(hash));
        for bad in ["", "000102ff10ab090", "000102ff10ab09080", "000102FF10ab0908", "000102ff10ab09 8"] {
            assert!(bad.parse::<ContentHash>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_trace_is_read_as_it_is_written() {
        let trace: Trace = EXAMPLE.parse().unwrap();
        assert_eq!((trace.to_string().as_str(), Trace::from_header(EXAMPLE)), (EXAMPLE, Some(trace)));
        assert_eq!(trace.parent_id, [0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31]);
    }

    #[test]
    fn other_texts_are_no_traces() {
        for bad in [
            "",
            "00",
            &EXAMPLE[..54],
            &format!("{EXAMPLE}-00"),
            &format!("{EXAMPLE} "),
            &format!(" {EXAMPLE}"),
            &EXAMPLE.replace("af", "AF"),
            &EXAMPLE.replace("af", "xy"),
            &EXAMPLE.replace("af", "é"),
            &EXAMPLE.replacen("00", "ff", 1),
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        ] {
            assert!(bad.parse::<Trace>().is_err() && Trace::from_header(bad).is_none(), "{bad:?}");
        }
    }

    #[test]
    fn a_header_of_a_later_version_may_have_more_fields_and_only_its_sampled_flag_is_kept() {
        let later = EXAMPLE.replacen("00", "cc", 1);
        for header in [&later, &format!("{later}-what-the-future")] {
            assert_eq!(Trace::from_header(header).unwrap().to_string(), EXAMPLE);
        }
        assert_eq!(Trace::from_header(&format!("{later}.what")), None);
        assert!(later.parse::<Trace>().is_err());
        assert_eq!(Trace::from_header(&EXAMPLE.replace("-01", "-fe")).unwrap().flags, 0);
    }
}
