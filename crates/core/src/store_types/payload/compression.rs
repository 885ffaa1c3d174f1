//! The compression of bodies: DEFLATE (RFC 1951), and then the size of the body as sent (4 bytes). Each body is
//! compressed by itself. Nothing else knows the format; the scripts of Redis read the size.

use std::cell::RefCell;

use bytes::Bytes;
use libdeflater::{CompressionLvl, Compressor, Decompressor};

use crate::job::MAX_BODY;

/// Smaller bodies are stored as sent: they have little that repeats.
const MIN: usize = 512;
/// Higher levels save 1 % more of bodies of 0.5 to 4 KB, and take half as long again or longer.
const LEVEL: i32 = 1;
/// The bytes of the size behind the compressed bytes.
const SIZE: usize = 4;

thread_local! {
    /// For each thread, since they take 200 KiB and longer to make than to use.
    static CODEC: RefCell<(Compressor, Decompressor)> = RefCell::new({
        let level = CompressionLvl::new(LEVEL).expect("libdeflate has levels 0 to 12");
        (Compressor::new(level), Decompressor::new())
    });
}

/// Compresses a body of 512 B or more; `None` if that saves less than a quarter, size included.
pub(super) fn compress(body: &[u8]) -> Option<Vec<u8>> {
    if !(MIN..=MAX_BODY).contains(&body.len()) {
        return None;
    }
    let mut compressed = vec![0; body.len() / 4 * 3];
    let room = compressed.len() - SIZE;
    // It fails if there is too little room.
    let length =
        CODEC.with_borrow_mut(|codec| codec.0.deflate_compress(body, &mut compressed[..room])).ok()?;
    compressed.truncate(length);
    compressed.extend_from_slice(&u32::try_from(body.len()).ok()?.to_be_bytes());
    Some(compressed)
}

/// Decompresses the result of [`compress`]; `None` if it is damaged. What is empty stays empty.
pub(super) fn decompress(compressed: &[u8]) -> Option<Bytes> {
    if compressed.is_empty() {
        return Some(Bytes::new());
    }
    let size = size(compressed).filter(|size| *size <= MAX_BODY)?;
    let (deflate, _) = compressed.split_last_chunk::<SIZE>()?;
    let mut body = vec![0; size];
    let length = CODEC.with_borrow_mut(|codec| codec.1.deflate_decompress(deflate, &mut body)).ok()?;
    (length == size).then(|| body.into())
}

/// Returns the size of the body at the end of the result of [`compress`]; `None` if that is too short.
pub(super) fn size(compressed: &[u8]) -> Option<usize> {
    usize::try_from(u32::from_be_bytes(*compressed.last_chunk()?)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_compressed_from_512_bytes_on_where_that_saves_a_quarter() {
        let text = br#"{"order":"1001","status":"PAID"},"#.repeat(40);
        assert_eq!(compress(&text[..MIN - 1]), None);
        for body in [&text[..MIN], &text, &vec![0; MAX_BODY]] {
            let compressed = compress(body).expect("it repeats itself");
            assert!(compressed.len() * 4 <= body.len() * 3);
            assert_eq!(
                (size(&compressed), decompress(&compressed).as_deref()),
                (Some(body.len()), Some(body))
            );
        }
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        let noise: Vec<u8> = (0..2000).map(|_| next()).collect();
        assert_eq!((compress(&noise), compress(&vec![0; MAX_BODY + 1])), (None, None));
    }

    #[test]
    fn damaged_bytes_are_unreadable_and_take_no_more_than_the_largest_body() {
        let body = br#"{"order":"1001","status":"PAID"},"#.repeat(40);
        let compressed = compress(&body).expect("it repeats itself");
        let (deflate, _) = compressed.split_last_chunk::<SIZE>().expect("it has a size");
        for size in [0, body.len() - 1, body.len() + 1, MAX_BODY + 1, u32::MAX as usize] {
            let size = u32::try_from(size).expect("it is a u32");
            assert_eq!(decompress(&[deflate, &size.to_be_bytes()].concat()), None, "{size} bytes");
        }
        ringback_fuzz::run(&[compressed], |raw| {
            assert!(decompress(raw).is_none_or(|body| body.len() <= MAX_BODY));
        });
    }
}
