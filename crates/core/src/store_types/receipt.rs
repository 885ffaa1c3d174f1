//! Identities of leases: [`LeaseId`] is unique in a shard, and [`Receipt`] adds the job. A receipt is also a text, for
//! consumers to store and pass on.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::shard::Shard;
use crate::job::Locator;

/// Bytes of a receipt.
const RECEIPT: usize = 30;
/// Characters of a receipt as text.
const WRITTEN: usize = 40;

/// Identifies one lease: a number that grows with every reserve of the shard, and random bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseId {
    /// The number: the store's time in µs when the lease began, unless an earlier lease has that number.
    pub number: u64,
    /// The random bits.
    pub bits: [u8; 8],
}

/// A lease and the job that it is for: all that it takes to renew and to settle it. Consumers get it as a text of
/// 40 characters of URL-safe base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The job's shard.
    pub shard: Shard,
    /// The job's place in the shard.
    pub locator: Locator,
    pub lease: LeaseId,
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut raw = Vec::with_capacity(RECEIPT);
        raw.extend_from_slice(&self.shard.0.to_be_bytes());
        raw.extend_from_slice(&self.locator.0);
        raw.extend_from_slice(&self.lease.number.to_be_bytes());
        raw.extend_from_slice(&self.lease.bits);
        f.write_str(&URL_SAFE_NO_PAD.encode(raw))
    }
}

/// A text that is not a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no receipt that a reserve has given")]
pub struct InvalidReceipt;

impl FromStr for Receipt {
    type Err = InvalidReceipt;

    fn from_str(text: &str) -> Result<Self, InvalidReceipt> {
        if text.len() != WRITTEN {
            return Err(InvalidReceipt);
        }
        let raw = URL_SAFE_NO_PAD.decode(text).map_err(|_| InvalidReceipt)?;
        let raw: [u8; RECEIPT] = raw.try_into().map_err(|_| InvalidReceipt)?;
        let part = |from: usize| raw[from..from + 8].try_into().map_err(|_| InvalidReceipt);
        let lease = LeaseId { number: u64::from_be_bytes(part(14)?), bits: part(22)? };
        // Zero means no lease.
        if lease.number == 0 {
            return Err(InvalidReceipt);
        }
        let locator = Locator(raw[2..14].try_into().map_err(|_| InvalidReceipt)?);
        Ok(Self { shard: Shard(u16::from_be_bytes([raw[0], raw[1]])), locator, lease })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt() -> Receipt {
        let lease = LeaseId { number: 1_763_600_000_000_000, bits: [0xfe; 8] };
        Receipt { shard: Shard(3), locator: Locator([7; 12]), lease }
    }

    #[test]
    fn a_receipt_is_read_as_it_is_written() {
        let text = receipt().to_string();
        assert_eq!(text.len(), WRITTEN);
        assert!(text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'), "{text}");
        assert_eq!(text.parse(), Ok(receipt()));
    }

    #[test]
    fn other_texts_are_not_receipts() {
        let text = receipt().to_string();
        let wrong = [&text[1..], &format!("{text}A"), "", "finish", &format!("{}=", &text[1..])];
        for text in wrong.into_iter().chain([format!("+{}", &text[1..]).as_str()]) {
            assert_eq!(text.parse::<Receipt>(), Err(InvalidReceipt), "{text}");
        }
        assert_eq!("ä".repeat(20).parse::<Receipt>(), Err(InvalidReceipt));
        assert_eq!("A".repeat(WRITTEN).parse::<Receipt>(), Err(InvalidReceipt));
    }

    #[test]
    fn random_texts_are_no_receipts_or_are_written_as_they_were_read() {
        ringback_fuzz::run_texts(&[&receipt().to_string(), &"A".repeat(WRITTEN), "+/=", "finish"], |text| {
            if let Ok(receipt) = text.parse::<Receipt>() {
                assert_eq!(receipt.to_string(), text);
            }
        });
    }
}
