//! What a program sees of the world, changed while it runs: its clock steps, and the names that it looks up stop to
//! resolve. A small library in C is compiled once and loaded into the program.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tempfile::TempDir;

const SOURCE: &str = include_str!("preload.c");

/// The compiled library.
#[derive(Clone)]
pub struct Preload {
    dir: Arc<TempDir>,
}

/// What one program sees.
#[derive(Clone)]
pub struct Seen {
    file: Arc<File>,
    env: [(&'static str, String); 2],
    // Goes after the last program that reads a file in it.
    _dir: Arc<TempDir>,
}

/// The names that a program looks up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamesOf {
    /// Those that end in `.receiver.test`.
    Receivers = 1,
    /// Those that end in `.store.test`.
    Stores = 2,
}

/// What a look-up comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookUp {
    /// 127.0.0.1.
    Found,
    /// There is no such name.
    Unknown,
    /// No answer until this changes.
    Silent,
    /// 127.0.0.1, after this time.
    Slow(Duration),
}

impl Preload {
    /// Compiles the library with `cc`. `None` where there is none.
    #[must_use]
    pub fn compile() -> Option<Self> {
        let dir = tempfile::Builder::new().prefix("ringback-preload-").tempdir().expect("a temp directory");
        let source = dir.path().join("preload.c");
        std::fs::write(&source, SOURCE).expect("the temp directory is writable");
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-O1", "-o"]).arg(library(dir.path())).arg(source).arg("-ldl");
        let compiled = cc.stderr(Stdio::null()).status();
        compiled.is_ok_and(|status| status.success()).then(|| Self { dir: Arc::new(dir) })
    }

    /// For one more program: the clock of this machine, and every name is found.
    #[must_use]
    pub fn seen(&self) -> Seen {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let path = self.dir.path().join(NEXT.fetch_add(1, Ordering::Relaxed).to_string());
        std::fs::write(&path, [0; 24]).expect("the temp directory is writable");
        let file = File::options().write(true).open(&path).expect("it has just been written");
        let text = |path: &Path| path.to_str().expect("a temp directory has a plain name").to_owned();
        let env = [("LD_PRELOAD", text(&library(self.dir.path()))), ("PRELOAD_FILE", text(&path))];
        Seen { file: Arc::new(file), env, _dir: Arc::clone(&self.dir) }
    }
}

impl Seen {
    /// The variables that the program is started with.
    #[must_use]
    pub fn env(&self) -> &[(&'static str, String)] {
        &self.env
    }

    /// Steps the clock: it is so many microseconds ahead.
    pub fn set_ahead(&self, micros: i64) {
        self.write(0, micros);
    }

    /// From now on look-ups come to this.
    pub fn set_names(&self, names: NamesOf, look_up: LookUp) {
        let number = match look_up {
            LookUp::Found => 0,
            LookUp::Unknown => 1,
            LookUp::Silent => 2,
            LookUp::Slow(time) => i64::try_from(time.as_micros()).expect("it is short").max(3),
        };
        self.write(names as u64, number);
    }

    fn write(&self, place: u64, number: i64) {
        self.file.write_all_at(&number.to_ne_bytes(), place * 8).expect("the file can be written");
    }
}

fn library(dir: &Path) -> PathBuf {
    dir.join("preload.so")
}
