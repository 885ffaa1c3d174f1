//! What figures are compared with, measured in the same run: each does as little as can be done of the same work.

pub(super) mod bullmq;
pub(super) mod noop;
pub(super) mod redis_benchmark;
pub(super) mod reqwest_loop;

use std::path::PathBuf;

/// A program on `PATH`.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
}
