//! Changes what a program sees while it runs: its clock is set, host names stop resolving, and its connections lead
//! through proxies. A small library in C is compiled once and loaded into the program by `LD_PRELOAD`.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use tempfile::TempDir;

const SOURCE: &str = include_str!("preload.c");

/// The first address of a program: each has one of its own, which is that of this machine too.
const ADDRESSES: u32 = u32::from_be_bytes([127, 1, 0, 0]);
/// How many ports can lead elsewhere.
const PAIRS: usize = 64;

/// The compiled library.
#[derive(Clone, Debug)]
pub struct Preload {
    dir: Arc<TempDir>,
    led: Arc<AtomicUsize>,
}

/// The clock, names and address of one program.
#[derive(Clone)]
pub struct Seen {
    file: Arc<File>,
    address: u32,
    env: [(&'static str, String); 3],
    // Dropped after the last program that reads a file in the directory.
    _dir: Arc<TempDir>,
}

/// The outcome of a look-up.
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
    /// Compiles the library with `cc`. Returns `None` if that fails, as without a C compiler.
    #[must_use]
    pub fn compile() -> Option<Self> {
        let dir = tempfile::Builder::new().prefix("ringback-preload-").tempdir().expect("a temp directory");
        let source = dir.path().join("preload.c");
        std::fs::write(&source, SOURCE).expect("the temp directory is writable");
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-O1", "-o"]).arg(library(dir.path())).arg(source).arg("-ldl");
        let compiled = cc.stderr(Stdio::null()).status();
        std::fs::write(ports(dir.path()), [0; PAIRS * 16]).expect("the temp directory is writable");
        let led = Arc::default();
        compiled.is_ok_and(|status| status.success()).then(|| Self { dir: Arc::new(dir), led })
    }

    /// Leads connections of all programs to a port of 127.0.0.1 to the port `to` from now on.
    ///
    /// # Panics
    /// After 64 ports.
    pub fn lead(&self, port: u16, to: u16) {
        let pair = self.led.fetch_add(1, Ordering::SeqCst);
        assert!(pair < PAIRS, "too many ports lead elsewhere");
        let file = File::options().write(true).open(ports(self.dir.path())).expect("it is there");
        // A pair counts once it has its first number.
        for (place, number) in [(pair * 2 + 1, to), (pair * 2, port)] {
            write(&file, place as u64, number.into());
        }
    }

    /// Settings for one more program: it has an address of its own, and at first this machine's clock and working names.
    #[must_use]
    pub fn seen(&self) -> Seen {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = self.dir.path().join(number.to_string());
        std::fs::write(&path, [0; 24]).expect("the temp directory is writable");
        let file = File::options().write(true).open(&path).expect("it has just been written");
        let address = ADDRESSES + number;
        write(&file, 2, address.into());
        let text = |path: &Path| path.to_str().expect("a temp directory has a plain name").to_owned();
        let env = [
            ("LD_PRELOAD", text(&library(self.dir.path()))),
            ("PRELOAD_FILE", text(&path)),
            ("PRELOAD_PORTS", text(&ports(self.dir.path()))),
        ];
        Seen { file: Arc::new(file), address, env, _dir: Arc::clone(&self.dir) }
    }
}

impl Seen {
    /// The environment variables to start the program with.
    #[must_use]
    pub fn env(&self) -> &[(&'static str, String)] {
        &self.env
    }

    /// The address that the program's connections to redirected ports come from.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        Ipv4Addr::from_bits(self.address).into()
    }

    /// Sets how many microseconds the program's clock is ahead of the machine's.
    pub fn set_ahead(&self, micros: i64) {
        write(&self.file, 0, micros);
    }

    /// Sets how look-ups of names that end in `.store.test` end from now on.
    pub fn set_names(&self, look_up: LookUp) {
        let number = match look_up {
            LookUp::Found => 0,
            LookUp::Unknown => 1,
            LookUp::Silent => 2,
            LookUp::Slow(time) => i64::try_from(time.as_micros()).expect("it is short").max(3),
        };
        write(&self.file, 1, number);
    }
}

fn write(file: &File, place: u64, number: i64) {
    file.write_all_at(&number.to_ne_bytes(), place * 8).expect("the file can be written");
}

fn ports(dir: &Path) -> PathBuf {
    dir.join("ports")
}

fn library(dir: &Path) -> PathBuf {
    dir.join("preload.so")
}
