//! Content hashes and traces as text, for headers and exports.

use std::fmt;
use std::str::FromStr;

use super::{ContentHash, Trace};

/// A text that is not a content hash or not a `traceparent`. The message says what is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TextError(pub &'static str);

/// `N` bytes from two hexadecimal digits each, in lower case.
fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |b: u8| match b {
        b'0'..=b'9' => Some(b - b'0'),
        b'a'..=b'f' => Some(b - b'a' + 10),
        _ => None,
    };
    let text = text.as_bytes();
    if text.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

/// 16 hexadecimal digits.
impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl FromStr for ContentHash {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        hex(text).map(Self).ok_or(TextError("a content hash is 16 hexadecimal digits in lower case"))
    }
}

/// A `traceparent` of W3C Trace Context, version 00.
impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("00-")?;
        write_hex(f, &self.trace_id)?;
        f.write_str("-")?;
        write_hex(f, &self.parent_id)?;
        write!(f, "-{:02x}", self.flags)
    }
}

impl FromStr for Trace {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let parse = || {
            let mut parts = text.split('-');
            let (version, trace, parent, flags) =
                (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
            let (trace_id, parent_id, [flags]) = (hex::<16>(trace)?, hex::<8>(parent)?, hex::<1>(flags)?);
            let whole = version == "00" && parts.next().is_none();
            let named = trace_id != [0; 16] && parent_id != [0; 8];
            (whole && named).then_some(Self { trace_id, parent_id, flags })
        };
        parse().ok_or(TextError("a traceparent is 00-<32 digits>-<16 digits>-<2 digits>, no id all zeros"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let text = "00-74d44828298f0541ba271390f8a99532-9f6ea27029998044-01";
        assert_eq!(text.parse::<Trace>().unwrap().to_string(), text);
        for bad in [
            "",
            "00",
            "01-74d44828298f0541ba271390f8a99532-9f6ea27029998044-01",
            "00-74d44828298f0541ba271390f8a99532-9f6ea27029998044-01-x",
            "00-00000000000000000000000000000000-9f6ea27029998044-01",
            "00-74d44828298f0541ba271390f8a99532-0000000000000000-01",
            "00-74D44828298f0541ba271390f8a99532-9f6ea27029998044-01",
        ] {
            assert!(bad.parse::<Trace>().is_err(), "{bad:?}");
        }
    }
}
