//! Reads a backup line by line and checks it: the header, the kinds and their order, and at its end the counts and
//! the checksum. At most one line is in memory.

use std::borrow::Cow;
use std::io::{self, BufRead, Read as _};

use ringback_core::encoding::{OtherEncoding, without_mark};
use ringback_core::job::Tenant;
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::format::{Counts, END, End, FORMAT, HEADER, Header, Kind, MAX_LINE, no_counts};

/// Why a file is not a backup, or not a whole one.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Damage {
    #[error("it cannot be read")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Encoding(#[from] OtherEncoding),
    #[error("it is not a backup: its first line is not the header of one")]
    NoHeader,
    #[error("it has format {0}, and this version reads format {FORMAT}")]
    OtherFormat(u32),
    #[error("it is cut off after line {0}")]
    CutOff(u64),
    #[error("line {0} is not a line of a backup")]
    NoLine(u64),
    #[error("line {0} is longer than {MAX_LINE} bytes")]
    TooLong(u64),
    #[error("line {0} has a kind that this version does not know")]
    UnknownKind(u64),
    #[error("line {0} is not where lines of its kind belong")]
    WrongPlace(u64),
    #[error("its lines are not those that were written: the counts in its last line are others")]
    WrongCounts,
    #[error("its lines are not those that were written: the checksum in its last line is another")]
    WrongChecksum,
}

/// A line as it is written.
#[derive(Deserialize)]
struct RawLine<'a> {
    kind: &'a str,
    #[serde(borrow)]
    value: &'a RawValue,
}

/// The field of a header that every format has.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

/// The field of a value that says whose it is.
#[derive(Deserialize)]
struct Owned<'a> {
    #[serde(borrow)]
    tenant: Option<Cow<'a, str>>,
}

/// A line between the first and the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    pub(crate) kind: Kind,
    pub(crate) tenant: Option<Tenant>,
    /// Its number in the file, from 1.
    pub(crate) number: u64,
    pub(crate) json: &'a str,
}

/// The lines of a backup after its header.
pub(crate) struct Lines<R> {
    source: R,
    line: Vec<u8>,
    number: u64,
    bytes: u64,
    kind: Kind,
    digest: Sha256,
    counts: Counts,
    has_ended: bool,
}

impl<R: BufRead> Lines<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// When the file cannot be read, does not begin with the header of a backup, or has another format.
    pub(crate) fn open(mut source: R) -> Result<(Header, Self), Damage> {
        let start = source.fill_buf()?;
        let mark = start.len() - without_mark(start)?.len();
        source.consume(mark);
        let mut lines = Self {
            source,
            line: Vec::new(),
            number: 0,
            bytes: 0,
            kind: Kind::Credential,
            digest: Sha256::new(),
            counts: no_counts(),
            has_ended: false,
        };
        lines.read().map_err(|damage| match damage {
            Damage::CutOff(_) | Damage::TooLong(_) if !lines.line.starts_with(b"{\"kind\":\"backup\"") => {
                Damage::NoHeader
            }
            damage => damage,
        })?;
        let written = serde_json::from_slice::<RawLine<'_>>(&lines.line).ok();
        let value = written.filter(|line| line.kind == HEADER).ok_or(Damage::NoHeader)?.value;
        let Format { format } = serde_json::from_str(value.get()).map_err(|_| Damage::NoHeader)?;
        if format != FORMAT {
            return Err(Damage::OtherFormat(format));
        }
        let header = serde_json::from_str(value.get()).map_err(|_| Damage::NoHeader)?;
        Ok((header, lines))
    }

    /// The number of bytes that were read.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The next line; `None` after the last, if the counts and the checksum are right.
    ///
    /// # Errors
    /// When the file cannot be read, is cut off or was changed, or a line is not valid or not in its place.
    pub(crate) fn next(&mut self) -> Result<Option<Line<'_>>, Damage> {
        if self.has_ended {
            return Ok(None);
        }
        let before = self.digest.clone();
        self.read()?;
        let number = self.number;
        let RawLine { kind, value } =
            serde_json::from_slice(&self.line).map_err(|_| Damage::NoLine(number))?;
        if kind == END {
            let end = serde_json::from_str(value.get()).map_err(|_| Damage::NoLine(number))?;
            if !self.source.fill_buf()?.is_empty() {
                return Err(Damage::WrongPlace(number));
            }
            check(&end, before, &self.counts)?;
            self.has_ended = true;
            return Ok(None);
        }
        let kind: Kind = kind.parse().map_err(|_| Damage::UnknownKind(number))?;
        if kind < self.kind {
            return Err(Damage::WrongPlace(number));
        }
        self.kind = kind;
        *self.counts.entry(kind).or_default() += 1;
        let tenant = tenant(value.get()).ok_or(Damage::NoLine(number))?;
        Ok(Some(Line { kind, tenant, number, json: value.get() }))
    }

    /// Reads a line with its line break, and adds it to the checksum. Fails if it is longer than [`MAX_LINE`] or cut
    /// off.
    fn read(&mut self) -> Result<(), Damage> {
        self.line.clear();
        self.number += 1;
        let read = (&mut self.source).take(MAX_LINE as u64).read_until(b'\n', &mut self.line)?;
        if !self.line.ends_with(b"\n") {
            return Err(if read == MAX_LINE {
                Damage::TooLong(self.number)
            } else {
                Damage::CutOff(self.number - 1)
            });
        }
        self.bytes += read as u64;
        self.digest.update(&self.line);
        Ok(())
    }
}

/// The tenant that a value names, if it names one. The outer `None` means that this cannot be read.
fn tenant(json: &str) -> Option<Option<Tenant>> {
    let Owned { tenant } = serde_json::from_str(json).ok()?;
    tenant.map(|tenant| tenant.parse()).transpose().ok()
}

/// Checks the checksum and the counts of the last line against the lines before it.
fn check(end: &End, digest: Sha256, counts: &Counts) -> Result<(), Damage> {
    let sha256: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    if end.sha256 != sha256 {
        return Err(Damage::WrongChecksum);
    }
    if end.counts == *counts { Ok(()) } else { Err(Damage::WrongCounts) }
}

#[cfg(test)]
mod tests {
    use super::super::write::Writer;
    use super::*;

    fn header() -> Header {
        Header::new("redis".to_owned(), 7, "2026-11-22T17:00:00.000Z".to_owned(), None)
    }

    /// A whole backup with a topic and two jobs.
    fn backup() -> String {
        let mut written = Vec::new();
        let write = |bytes: &[u8]| {
            written.extend_from_slice(bytes);
            Ok(())
        };
        let mut writer = Writer::begin(write, &header()).unwrap();
        writer.line(Kind::Topic, br#"{"topic":"t","paused":true,"policy":null}"#).unwrap();
        writer.line(Kind::Job, br#"{"id":"a"}"#).unwrap();
        writer.line(Kind::Job, br#"{"id":"b"}"#).unwrap();
        let summary = writer.end().unwrap();
        assert_eq!([Kind::Topic, Kind::Job].map(|kind| summary.count(kind)), [1, 2]);
        assert_eq!(summary.bytes, written.len() as u64);
        String::from_utf8(written).unwrap()
    }

    fn read(text: &str) -> Result<Vec<(Kind, u64, String)>, Damage> {
        let (_, mut lines) = Lines::open(io::BufReader::with_capacity(16, text.as_bytes()))?;
        let mut all = Vec::new();
        while let Some(line) = lines.next()? {
            all.push((line.kind, line.number, line.json.to_owned()));
        }
        assert_eq!(lines.bytes(), text.len() as u64);
        assert!(lines.next()?.is_none());
        Ok(all)
    }

    #[test]
    fn a_backup_is_read_as_it_was_written() {
        assert_eq!(Lines::open(backup().as_bytes()).unwrap().0, header());
        let topic = r#"{"topic":"t","paused":true,"policy":null}"#;
        let expected =
            [(Kind::Topic, 2, topic), (Kind::Job, 3, r#"{"id":"a"}"#), (Kind::Job, 4, r#"{"id":"b"}"#)];
        assert_eq!(read(&backup()).unwrap(), expected.map(|(kind, n, json)| (kind, n, json.to_owned())));
    }

    #[test]
    fn a_backup_that_was_cut_off_anywhere_is_refused() {
        let whole = backup();
        for length in 0..whole.len() {
            let damage = read(&whole[..length]).unwrap_err();
            assert!(matches!(damage, Damage::CutOff(_) | Damage::NoHeader), "{length}: {damage:?}");
        }
    }

    #[test]
    fn a_backup_of_which_a_character_was_changed_is_refused() {
        let whole = backup();
        for at in 0..whole.len() {
            for other in ["0", "x", "\n", "\""] {
                let changed = format!("{}{other}{}", &whole[..at], &whole[at + 1..]);
                assert!(changed == whole || read(&changed).is_err(), "{at} {other:?}");
            }
        }
    }

    #[test]
    fn lines_that_are_missing_added_or_moved_are_noticed() {
        let whole = backup();
        let lines: Vec<_> = whole.split_inclusive('\n').collect();
        let with = |order: &[usize]| order.iter().map(|n| lines[*n]).collect::<String>();
        assert!(read(&with(&[0, 1, 2, 3, 4])).is_ok());
        for wrong in
            [&[0, 1, 2, 4][..], &[0, 1, 3, 2, 4], &[0, 1, 2, 3, 3, 4], &[0, 2, 1, 3, 4], &[0, 1, 2, 3, 4, 4]]
        {
            assert!(read(&with(wrong)).is_err(), "{wrong:?}");
        }
        assert!(matches!(read(&with(&[0, 2, 1, 3, 4])), Err(Damage::WrongPlace(3))));
        assert!(matches!(read(&with(&[0, 1, 2, 3, 4, 1])), Err(Damage::WrongPlace(5))));
    }

    #[test]
    fn other_formats_and_kinds_are_named() {
        let whole = backup();
        let other = whole.replace("\"format\":1", "\"format\":2");
        assert!(matches!(read(&other), Err(Damage::OtherFormat(2))));
        let other = whole.replace("\"kind\":\"topic\"", "\"kind\":\"other\"");
        assert!(matches!(read(&other), Err(Damage::UnknownKind(2))));
        for other in ["", "\n", "{\"topic\":\"t\",\"url\":\"http://h/\"}\n", "no JSON"] {
            assert!(matches!(read(other), Err(Damage::NoHeader)), "{other:?}");
        }
    }

    #[test]
    fn what_belongs_to_a_tenant_names_it() {
        let lines = [
            (Kind::Topic, r#"{"topic":"t"}"#),
            (Kind::Topic, r#"{"tenant":"a","topic":"t"}"#),
            (Kind::Job, r#"{"id":"a"}"#),
            (Kind::Job, r#"{"tenant":"\u0061","id":"a"}"#),
        ];
        let written = |lines: &[(Kind, &str)]| {
            let mut written = Vec::new();
            let write = |bytes: &[u8]| {
                written.extend_from_slice(bytes);
                Ok(())
            };
            let mut writer = Writer::begin(write, &header()).unwrap();
            for (kind, json) in lines {
                writer.line(*kind, json.as_bytes())?;
            }
            writer.end()?;
            anyhow::Ok(String::from_utf8(written).unwrap())
        };
        let text = written(&lines).unwrap();
        let (_, mut read_lines) = Lines::open(text.as_bytes()).unwrap();
        let mut tenants = Vec::new();
        while let Some(line) = read_lines.next().unwrap() {
            tenants.push(line.tenant.map(|tenant| tenant.to_string()));
        }
        assert_eq!(tenants, [None, Some("a".to_owned()), None, Some("a".to_owned())]);
        assert!(written(&[lines[2], lines[0]]).is_err(), "the job comes first");
        let text = written(&[(Kind::Job, r#"{"tenant":"a/b"}"#)]).unwrap();
        assert!(matches!(read(&text), Err(Damage::NoLine(2))));
    }

    #[test]
    fn a_line_that_never_ends_takes_no_memory() {
        let long = format!("{}{}", backup(), "x".repeat(2 * MAX_LINE));
        assert!(read(&long).is_err());
        let (_, mut lines) = Lines::open(long.as_bytes()).unwrap();
        while let Ok(Some(_)) = lines.next() {}
        assert!(lines.line.capacity() <= 2 * MAX_LINE);
    }
}
