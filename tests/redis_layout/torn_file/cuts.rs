//! Reads and writes a server's append-only files, and finds the places in transactions where the last can be cut.

use std::fs;
use std::path::Path;

/// The folder of the append-only files below a server's directory.
const DIRECTORY: &str = "appendonlydir";

/// All files of a server. The last one is that to which it appends.
pub(super) struct Files {
    whole: Vec<(String, Vec<u8>)>,
    name: String,
    pub(super) last: Vec<u8>,
}

impl Files {
    pub(super) fn read(directory: &Path) -> Self {
        let entries = fs::read_dir(directory.join(DIRECTORY)).expect("an append-only file");
        let mut whole: Vec<(String, Vec<u8>)> = entries
            .map(|entry| {
                let entry = entry.expect("an entry");
                let name = entry.file_name().into_string().expect("a name");
                (name, fs::read(entry.path()).expect("a file"))
            })
            .collect();
        let last =
            whole.iter().position(|(name, _)| name.ends_with(".incr.aof")).expect("it appends to a file");
        let (name, last) = whole.swap_remove(last);
        Self { whole, name, last }
    }

    /// The size of the file that a server appends to. Panics if there are several.
    pub(super) fn size(directory: &Path) -> u64 {
        let entries = fs::read_dir(directory.join(DIRECTORY)).expect("an append-only file");
        let names = entries.map(|entry| entry.expect("an entry").path());
        let mut files = names.filter(|path| path.to_string_lossy().ends_with(".incr.aof"));
        let file = files.next().expect("it appends to a file");
        assert!(files.next().is_none(), "it was not rewritten");
        fs::metadata(file).expect("a file").len()
    }

    /// Writes the files for a server that has stopped, the last one only up to `end`.
    pub(super) fn write(&self, directory: &Path, end: u64) {
        let directory = directory.join(DIRECTORY);
        fs::remove_dir_all(&directory).expect("the files of the server");
        fs::create_dir(&directory).expect("a directory");
        for (name, bytes) in &self.whole {
            fs::write(directory.join(name), bytes).expect("a file");
        }
        let end = usize::try_from(end).expect("it was read");
        fs::write(directory.join(&self.name), &self.last[..end]).expect("a file");
    }
}

/// A place in a file, one byte into a command of a transaction.
pub(super) struct Cut {
    pub(super) at: u64,
    pub(super) command: String,
}

/// The places at which a file can be cut inside a transaction, one byte into each command after MULTI.
pub(super) fn all(file: &[u8]) -> Vec<Cut> {
    let (mut cuts, mut at, mut is_open) = (Vec::new(), 0, false);
    while at < file.len() {
        let (command, end) = command(file, at);
        if is_open {
            cuts.push(Cut { at: at as u64 + 1, command: command.clone() });
        }
        is_open = match command.as_str() {
            "MULTI" => true,
            "EXEC" => false,
            _ => is_open,
        };
        at = end;
    }
    cuts
}

/// The name of the command at a place, and where the command ends.
fn command(file: &[u8], at: usize) -> (String, usize) {
    let (arguments, mut end) = number(file, at);
    let mut name = String::new();
    for argument in 0..arguments {
        let (length, from) = number(file, end);
        if argument == 0 {
            name = String::from_utf8_lossy(&file[from..from + length]).to_uppercase();
        }
        end = from + length + 2;
    }
    (name, end)
}

/// The number in a line such as `*3`, and where the next line begins.
fn number(file: &[u8], at: usize) -> (usize, usize) {
    let length = file[at..].windows(2).position(|bytes| bytes == b"\r\n").expect("the end of a line");
    let digits = std::str::from_utf8(&file[at + 1..at + length]).expect("digits");
    (digits.parse().expect("a number"), at + length + 2)
}
