//! The yardsticks that figures are compared with: each does as little as possible of the same work, in the same run.

pub(crate) mod bullmq;
pub(crate) mod noop;
pub(crate) mod redis_benchmark;
pub(crate) mod reqwest_loop;

use std::path::PathBuf;

fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
}
