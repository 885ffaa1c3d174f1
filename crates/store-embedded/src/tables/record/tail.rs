//! The parts of a record that few jobs have, packed after it: two tokens, the time by which the check of
//! an expired lease is postponed, the beginning of a life that is not the first, whether a lease was lost,
//! the first due time, and the tags. Without them nothing is packed.
//!
//! There are two forms. If only the first token and the time are there, they follow each other, as earlier
//! versions wrote them. Otherwise a byte comes first, whose bits say which parts follow. The length says
//! which form it is, because no length is possible in both.

use ringback_core::job::Tags;

/// The length of a stored token.
pub(super) const TOKEN: usize = 8;
/// The length of a stored time.
const TIME: usize = 6;
/// The length of both.
const TOKEN_AND_TIME: usize = TOKEN + TIME;

/// The bits of the parts, in the order in which the parts follow.
const HAS_TOKEN: u8 = 1;
const HAS_PUT_OFF: u8 = 2;
const HAS_SUBMITTED: u8 = 4;
const HAS_LIFE: u8 = 8;
/// A part of no bytes.
const LEASE_LOST: u8 = 16;
/// Fields that the first versions kept without knowing them: their length (2), and they. Zeros at their end are none.
/// They are the first due time (6), or zeros, and others behind their kind (1) and their length (2).
const HAS_FIELDS: u8 = 32;
/// The kind of the tags among the fields.
const TAGS: u8 = 1;
/// The bytes of a field before its value.
const FIELD: usize = 3;

/// The beginning of a life of a job that had another one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    /// The last lease of the shard before. Leases up to it do not belong to this life.
    pub(crate) lease: u64,
    /// How many attempts there were before.
    pub(crate) attempts: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tail {
    /// The token of the last move.
    pub(super) token: Option<[u8; TOKEN]>,
    /// In ms; 0 for none.
    pub(super) put_off: u64,
    /// The token of the last submit.
    pub(super) submitted: Option<[u8; TOKEN]>,
    pub(super) life: Option<Life>,
    /// Whether a push lease expired without an outcome.
    pub(super) lease_lost: bool,
    /// In ms.
    pub(super) first_due: Option<u64>,
    pub(super) tags: Tags,
    /// Fields that this version does not know, and keeps.
    pub(super) fields: Box<[u8]>,
}

impl Tail {
    /// Whether there are parts for which the byte of flags is needed.
    const fn has_flags(&self) -> bool {
        self.submitted.is_some() || self.life.is_some() || self.lease_lost || self.has_fields()
    }

    const fn has_fields(&self) -> bool {
        self.first_due.is_some() || !self.tags.is_empty() || !self.fields.is_empty()
    }

    pub(super) fn pack(&self, packed: &mut Vec<u8>) {
        let Self { token, put_off, submitted, life, lease_lost, first_due, tags, fields } = self;
        let begin = packed.len();
        if self.has_flags() {
            let flag = |is_there: bool, flag: u8| if is_there { flag } else { 0 };
            packed.push(
                flag(token.is_some(), HAS_TOKEN)
                    | flag(*put_off > 0, HAS_PUT_OFF)
                    | flag(submitted.is_some(), HAS_SUBMITTED)
                    | flag(life.is_some(), HAS_LIFE)
                    | flag(*lease_lost, LEASE_LOST)
                    | flag(self.has_fields(), HAS_FIELDS),
            );
        }
        packed.extend(token.iter().flatten());
        if *put_off > 0 {
            packed.extend_from_slice(&six(*put_off));
        }
        packed.extend(submitted.iter().flatten());
        if let Some(Life { lease, attempts }) = life {
            packed.extend_from_slice(&lease.to_be_bytes());
            packed.extend_from_slice(&attempts.to_be_bytes());
        }
        if self.has_fields() {
            let tags = tags.as_str().as_bytes();
            let of_tags = if tags.is_empty() { 0 } else { FIELD + tags.len() };
            let fields_length = TIME + of_tags + fields.len();
            // No length may be one of the other form.
            let padding = usize::from(
                [TIME, TOKEN, TOKEN_AND_TIME].contains(&(packed.len() - begin + 2 + fields_length)),
            );
            let short = |length: usize| u16::try_from(length).expect("fields are short").to_be_bytes();
            packed.extend_from_slice(&short(fields_length + padding));
            packed.extend_from_slice(&six(first_due.unwrap_or(0)));
            if !tags.is_empty() {
                packed.push(TAGS);
                packed.extend_from_slice(&short(tags.len()));
                packed.extend_from_slice(tags);
            }
            packed.extend_from_slice(fields);
            packed.extend_from_slice(&[0][..padding]);
        }
    }

    /// `None` if it cannot be read.
    pub(super) fn unpack(raw: &[u8]) -> Option<Self> {
        let (flags, mut rest) = match raw.len() {
            0 => (0, raw),
            TIME => (HAS_PUT_OFF, raw),
            TOKEN => (HAS_TOKEN, raw),
            TOKEN_AND_TIME => (HAS_TOKEN | HAS_PUT_OFF, raw),
            _ => (*raw.first()?, &raw[1..]),
        };
        let mut tail = Self { lease_lost: flags & LEASE_LOST != 0, ..Self::default() };
        if flags & HAS_TOKEN != 0 {
            tail.token = Some(take(&mut rest)?);
        }
        if flags & HAS_PUT_OFF != 0 {
            tail.put_off = time(take(&mut rest)?);
        }
        if flags & HAS_SUBMITTED != 0 {
            tail.submitted = Some(take(&mut rest)?);
        }
        if flags & HAS_LIFE != 0 {
            let (lease, attempts) = (take(&mut rest)?, take(&mut rest)?);
            tail.life =
                Some(Life { lease: u64::from_be_bytes(lease), attempts: u32::from_be_bytes(attempts) });
        }
        if flags & HAS_FIELDS != 0 {
            let length = usize::from(u16::from_be_bytes(take(&mut rest)?));
            let (mut fields, others) = rest.split_at_checked(length)?;
            tail.first_due = Some(time(take(&mut fields)?)).filter(|due| *due > 0);
            (tail.tags, tail.fields) = split(fields);
            rest = others;
        }
        rest.is_empty().then_some(tail)
    }
}

/// The tags among fields, and the others. What this version does not know or cannot read stays as it is: without tags the job
/// is delivered all the same.
fn split(mut fields: &[u8]) -> (Tags, Box<[u8]>) {
    let (mut tags, mut others) = (Tags::default(), Vec::new());
    while let Some((field, value, rest)) = first(fields) {
        match std::str::from_utf8(value).ok().filter(|_| field[0] == TAGS).and_then(Tags::from_stored) {
            Some(found) => tags = found,
            None => others.extend_from_slice(field),
        }
        fields = rest;
    }
    // Zeros at the end are none.
    let end = fields.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    others.extend_from_slice(&fields[..end]);
    (tags, others.into())
}

/// The first field, its value, and the fields behind it; `None` if there is none that can be read.
fn first(fields: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (kind, rest) = fields.split_first()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (value, rest) = rest.split_at_checked(u16::from_be_bytes(*length).into())?;
    (*kind != 0).then(|| (&fields[..FIELD + value.len()], value, rest))
}

/// A time in six bytes.
fn six(time: u64) -> [u8; TIME] {
    let [_, _, six @ ..] = time.to_be_bytes();
    six
}

fn time(six: [u8; TIME]) -> u64 {
    six.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (part, others) = rest.split_first_chunk()?;
    *rest = others;
    Some(*part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Tail> {
        let mut all = Vec::new();
        for token in [None, Some([7; TOKEN])] {
            for put_off in [0, 1, 1 << 40] {
                for submitted in [None, Some([9; TOKEN])] {
                    for life in [None, Some(Life { lease: u64::MAX - 5, attempts: 3 })] {
                        for lease_lost in [false, true] {
                            for length in 0..20_u8 {
                                let unknown = [&[9, 0, length][..], &vec![3; length.into()]].concat();
                                let fields = if length == 0 { Vec::new() } else { unknown }.into();
                                let tags = "x".repeat((length / 2).into());
                                let tail =
                                    Tail { token, put_off, submitted, life, lease_lost, ..Tail::default() };
                                let tail = Tail { tags: Tags::from_stored(&tags).unwrap(), ..tail };
                                all.push(Tail { first_due: Some(5), ..tail.clone() });
                                all.push(Tail {
                                    first_due: (length % 2 > 0).then_some(1 << 41),
                                    fields,
                                    ..tail
                                });
                            }
                        }
                    }
                }
            }
        }
        all
    }

    fn packed(tail: &Tail) -> Vec<u8> {
        let mut packed = Vec::new();
        tail.pack(&mut packed);
        packed
    }

    #[test]
    fn each_set_of_parts_is_read_back() {
        for tail in all() {
            let packed = packed(&tail);
            assert_eq!(Tail::unpack(&packed), Some(tail), "{packed:?}");
        }
    }

    #[test]
    fn fields_that_cannot_be_read_stay_as_they_are() {
        for fields in [&[9][..], &[9, 0, 5, 1], &[TAGS, 0, 1, b' '], &[TAGS, 0, 1, 0xff, 9, 0, 1, 7]] {
            let tail = Tail { first_due: Some(5), fields: fields.into(), ..Tail::default() };
            let read = Tail::unpack(&packed(&tail)).unwrap();
            assert_eq!((&read.fields, read.tags.is_empty()), (&tail.fields, true));
            assert_eq!(packed(&read), packed(&tail));
        }
    }

    #[test]
    fn tails_of_earlier_versions_are_read() {
        let (token, late) = ([7; TOKEN], [0, 0, 0, 0, 1, 2]);
        let with = |token, put_off| Some(Tail { token, put_off, ..Tail::default() });
        assert_eq!(Tail::unpack(&[]), Some(Tail::default()));
        assert_eq!(Tail::unpack(&token), with(Some(token), 0));
        assert_eq!(Tail::unpack(&late), with(None, 258));
        assert_eq!(Tail::unpack(&[&token[..], &late].concat()), with(Some(token), 258));
    }

    #[test]
    fn a_tail_that_is_cut_off_is_not_read_as_another_one() {
        for tail in all().into_iter().filter(Tail::has_flags) {
            let packed = packed(&tail);
            for n in (1..packed.len()).filter(|n| ![TIME, TOKEN, TOKEN_AND_TIME].contains(n)) {
                assert_eq!(Tail::unpack(&packed[..n]), None, "{n} bytes of {tail:?}");
            }
            let longer = [&packed[..], &[0; 9]].concat();
            if longer.len() != TOKEN_AND_TIME {
                assert_eq!(Tail::unpack(&longer), None, "{tail:?}");
            }
        }
    }
}
