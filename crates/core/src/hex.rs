//! Bytes as hexadecimal text in lower case, two digits each.

use std::fmt;

/// Displays bytes.
pub struct Hex<'a>(pub &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Reads exactly `N` bytes. `None` if the text has another length, or a character other than `0-9` and `a-f`.
pub fn read<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |b: u8| char::from(b).to_digit(16).filter(|_| !b.is_ascii_uppercase());
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        let [high, low] = pair else { return None };
        *byte = (digit(*high)? << 4 | digit(*low)?) as u8;
    }
    (text.len() == 2 * N).then_some(bytes)
}
