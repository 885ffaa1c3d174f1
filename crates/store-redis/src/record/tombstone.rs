//! Packs and reads tombstones, in the format of `prelude/tombs.lua`.

use bytes::{Buf, BufMut, Bytes};
use ringback_core::job::{Job, JobKey, Tags};
use ringback_core::store_types::{Lease, StoreError};
use ringback_core::token::Token;

use super::{UNREADABLE, need, six, state, time};

/// The bytes of a tombstone without a token.
pub(super) const TOMBSTONE: usize = 37;
/// Added to a tombstone's state if a delivery began and was never settled.
pub(super) const MAYBE_IN_FLIGHT: u8 = 128;
/// The code of the state of done jobs.
pub(super) const DONE: u8 = 4;

/// A packed tombstone, with a token or without.
pub(crate) struct Tombstone {
    packed: [u8; TOMBSTONE + 8],
    length: usize,
}

impl Tombstone {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.packed[..self.length]
    }
}

/// Returns the tombstone that a leased job gets if it is done.
pub(crate) fn tombstone(lease: &Lease) -> Tombstone {
    let mut packed = [0; TOMBSTONE + 8];
    let mut rest = packed.as_mut_slice();
    rest.put_u8(DONE);
    rest.put_u64(lease.grant.receipt.lease.number);
    rest.put_slice(&six(lease.due.as_millis()));
    rest.put_slice(&six(lease.created.as_millis()));
    rest.put_slice(&lease.grant.hint.content.0);
    rest.put_u32(lease.attempt);
    rest.put_u32(lease.failures);
    let Some(Token(token)) = lease.grant.hint.token else { return Tombstone { packed, length: TOMBSTONE } };
    rest.put_slice(&token);
    Tombstone { packed, length: TOMBSTONE + 8 }
}

/// Reads a tombstone as an ended job with this key. Fails if it is too short or has no known state.
pub(crate) fn parse_tombstone(mut raw: Bytes, key: JobKey) -> Result<Job, StoreError> {
    need(&raw, TOMBSTONE)?;
    let state = state(raw.get_u8() % MAYBE_IN_FLIGHT).ok_or(UNREADABLE)?;
    raw.advance(8);
    let (due, created) = (time(&mut raw), time(&mut raw));
    raw.advance(8);
    let (attempts, failures) = (raw.get_u32(), raw.get_u32());
    let (last, reason, tags) = (None, None, Tags::default());
    Ok(Job { key, state, due, created, attempts, failures, last, reason, tags })
}
