//! Sorts the lines of an export by topic and id, and keeps of each job only the line that was read last, since an
//! export can have a job twice while jobs move. Lines beyond 64 MiB are sorted in runs, which are written to nameless
//! files and merged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;

/// The bytes of a run in memory.
const RUN: usize = 64 * 1024 * 1024;
/// The most runs of a level. Then they are merged into one of the next level, so that few files are open.
const FAN: usize = 32;
const BUFFER: usize = 64 * 1024;
/// The bytes that a line takes beside its own.
const OVERHEAD: usize = 64;

/// A job of a run: what it is sorted by, and its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The stored text of the topic, which has its tenant, and the id.
    pub(super) key: (Box<str>, Box<str>),
    pub(super) line: Bytes,
}

impl Entry {
    fn size(&self) -> usize {
        self.key.0.len() + self.key.1.len() + self.line.len() + OVERHEAD
    }
}

/// The lines that were read so far.
pub(super) struct Sorter {
    directory: PathBuf,
    max_run: usize,
    fan: usize,
    run: Vec<Entry>,
    bytes: usize,
    /// The runs on disk, by level. Those of a higher level were read earlier.
    levels: Vec<Vec<File>>,
}

impl Sorter {
    /// A sorter that writes its runs into a directory.
    pub(super) fn new(directory: &Path) -> Self {
        Self::with_limits(directory, RUN, FAN)
    }

    fn with_limits(directory: &Path, max_run: usize, fan: usize) -> Self {
        let directory = directory.to_owned();
        Self { directory, max_run, fan, run: Vec::new(), bytes: 0, levels: Vec::new() }
    }

    /// Adds a line. Once there are 64 MiB of them, writes them to a file as a sorted run, and merges runs if there are
    /// many.
    ///
    /// # Errors
    /// When a run cannot be written or read.
    pub(super) fn add(&mut self, entry: Entry) -> io::Result<()> {
        self.bytes += entry.size();
        self.run.push(entry);
        if self.bytes < self.max_run {
            return Ok(());
        }
        let run = sorted(std::mem::take(&mut self.run));
        self.bytes = 0;
        let mut file = self.write(run.into_iter().map(Ok))?;
        for level in 0.. {
            if level == self.levels.len() {
                self.levels.push(Vec::new());
            }
            self.levels[level].push(file);
            if self.levels[level].len() < self.fan {
                break;
            }
            let runs = std::mem::take(&mut self.levels[level]);
            file = self.write(Merged::new(runs.into_iter().map(Run::File))?)?;
        }
        Ok(())
    }

    /// All jobs in order, each once.
    ///
    /// # Errors
    /// When a run cannot be read.
    pub(super) fn finish(self) -> io::Result<Merged> {
        let files = self.levels.into_iter().rev().flatten().map(Run::File);
        Merged::new(files.chain([Run::Memory(sorted(self.run).into_iter())]))
    }

    fn write(&self, run: impl Iterator<Item = io::Result<Entry>>) -> io::Result<File> {
        let mut file = BufWriter::with_capacity(BUFFER, tempfile::tempfile_in(&self.directory)?);
        for entry in run {
            let Entry { key: (topic, id), line } = entry?;
            writeln!(file, "{topic} {id} {}", line.len())?;
            file.write_all(&line)?;
        }
        let mut file = file.into_inner()?;
        file.rewind()?;
        Ok(file)
    }
}

/// Sorts a run, and keeps only the last line of each job.
fn sorted(mut run: Vec<Entry>) -> Vec<Entry> {
    // The last one comes first, and stays.
    run.reverse();
    run.sort_by(|a, b| a.key.cmp(&b.key));
    run.dedup_by(|later, first| later.key == first.key);
    run
}

/// A sorted run.
enum Run {
    File(File),
    Memory(std::vec::IntoIter<Entry>),
}

/// A run that is being read.
enum Source {
    File(BufReader<File>),
    Memory(std::vec::IntoIter<Entry>),
}

impl Source {
    fn next(&mut self) -> io::Result<Option<Entry>> {
        match self {
            Self::Memory(run) => Ok(run.next()),
            Self::File(file) => read(file),
        }
    }
}

/// Reads the next entry of a run; `None` at its end.
fn read(file: &mut BufReader<File>) -> io::Result<Option<Entry>> {
    let mut head = String::new();
    if file.read_line(&mut head)? == 0 {
        return Ok(None);
    }
    let mut words = head.trim_end().splitn(3, ' ');
    let (Some(topic), Some(id), Some(length)) = (words.next(), words.next(), words.next()) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    let key = (topic.into(), id.into());
    let length = length.parse().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    let mut line = vec![0; length];
    file.read_exact(&mut line)?;
    Ok(Some(Entry { key, line: line.into() }))
}

/// Runs merged into one, which has each job once. Of the same job the one of the last run counts.
pub(super) struct Merged {
    sources: Vec<Source>,
    /// The next entry of each run, that of the last run first where the job is the same.
    heads: BinaryHeap<Reverse<Head>>,
}

/// The next entry of a run, by its number.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Head {
    key: (Box<str>, Box<str>),
    run: Reverse<usize>,
    line: Bytes,
}

impl Merged {
    fn new(runs: impl Iterator<Item = Run>) -> io::Result<Self> {
        let source = |run| match run {
            Run::File(file) => Source::File(BufReader::with_capacity(BUFFER, file)),
            Run::Memory(run) => Source::Memory(run),
        };
        let mut merged = Self { sources: runs.map(source).collect(), heads: BinaryHeap::new() };
        for run in 0..merged.sources.len() {
            merged.advance(run)?;
        }
        Ok(merged)
    }

    /// Moves the next entry of a run into `heads`, if there is one.
    fn advance(&mut self, run: usize) -> io::Result<()> {
        if let Some(Entry { key, line }) = self.sources[run].next()? {
            self.heads.push(Reverse(Head { key, run: Reverse(run), line }));
        }
        Ok(())
    }

    fn pop(&mut self) -> io::Result<Option<Entry>> {
        let Some(Reverse(Head { key, run, line })) = self.heads.pop() else { return Ok(None) };
        self.advance(run.0)?;
        while self.heads.peek().is_some_and(|Reverse(head)| head.key == key) {
            if let Some(Reverse(earlier)) = self.heads.pop() {
                self.advance(earlier.run.0)?;
            }
        }
        Ok(Some(Entry { key, line }))
    }
}

impl Iterator for Merged {
    type Item = io::Result<Entry>;

    fn next(&mut self) -> Option<io::Result<Entry>> {
        self.pop().transpose()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn entry(topic: &str, id: u64, line: u64) -> Entry {
        let key = (topic.into(), id.to_string().into());
        Entry { key, line: format!("{{\"line\": \"{line}\n\"}}").into() }
    }

    /// `count` lines of at most 291 keys, so that keys repeat, in an order that looks random.
    fn lines(count: u64) -> Vec<Entry> {
        let number = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        (0..count).map(|n| entry(["a", "b", "a.b"][(number(n) % 3) as usize], number(n) % 97, n)).collect()
    }

    fn expected(lines: &[Entry]) -> Vec<Entry> {
        let last: BTreeMap<_, _> = lines.iter().map(|entry| (&entry.key, &entry.line)).collect();
        last.into_iter().map(|(key, line)| Entry { key: key.clone(), line: line.clone() }).collect()
    }

    #[test]
    fn of_each_job_the_last_line_is_kept_however_many_runs_and_levels_there_are() {
        let lines = lines(2_000);
        for (max_run, fan) in [(usize::MAX, 2), (10_000, 32), (1_000, 4), (100, 2), (1, 3)] {
            let mut sorter = Sorter::with_limits(&std::env::temp_dir(), max_run, fan);
            for entry in &lines {
                sorter.add(entry.clone()).unwrap();
            }
            assert!(sorter.levels.iter().all(|level| level.len() < fan));
            let sorted: Vec<_> = sorter.finish().unwrap().collect::<io::Result<_>>().unwrap();
            assert_eq!(sorted, expected(&lines), "{max_run} {fan}");
        }
    }

    #[test]
    fn no_lines_make_no_lines() {
        assert_eq!(Sorter::new(&std::env::temp_dir()).finish().unwrap().count(), 0);
    }
}
