//! Counts the instructions that a server executes, with valgrind.

use std::path::PathBuf;
use std::process::Command;

use super::RedisServer;

/// The beginning of the names of the files that valgrind writes, one for each count, in the directory of the server.
const FILE: &str = "instructions";

/// The instructions that a server executes. It runs about fifty times slower than others.
pub struct InstructionCount {
    pid: u32,
    directory: PathBuf,
}

impl InstructionCount {
    /// Whether valgrind is installed.
    #[must_use]
    pub fn is_possible() -> bool {
        Command::new("valgrind").arg("--version").output().is_ok()
    }

    /// The count of a server that was started with [`RedisOptions::count_instructions`](super::RedisOptions).
    #[must_use]
    pub fn of(server: &RedisServer) -> Self {
        Self { pid: server.pid(), directory: server.directory().to_owned() }
    }

    /// The command that runs a program under valgrind.
    pub(super) fn command(program: PathBuf) -> Command {
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", &format!("--callgrind-out-file={FILE}")]).arg(program);
        command
    }

    /// The instructions since the start, or since the last time that this was called.
    ///
    /// # Panics
    /// If the server does not run under valgrind.
    pub fn take(&self) -> u64 {
        let pid = format!("--pid={}", self.pid);
        let output = Command::new("vgdb").args([&pid, "dump"]).output().expect("vgdb comes with valgrind");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut sum = 0;
        for file in std::fs::read_dir(&self.directory).expect("the directory of the server") {
            let file = file.expect("a file").path();
            let is_count =
                file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("instructions."));
            if !is_count {
                continue;
            }
            let text = std::fs::read_to_string(&file).expect("a text");
            let total =
                text.lines().rev().find_map(|line| line.strip_prefix("totals: ")?.trim().parse::<u64>().ok());
            sum += total.expect("a file of valgrind has a total");
            std::fs::remove_file(&file).expect("nobody else needs it");
        }
        sum
    }
}
