//! `ringback completions`: prints a completion script, made from the definitions that parse the arguments.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::failure::Verdict;
use crate::output::Output;

pub(crate) fn run(mut out: Output, shell: Shell) -> anyhow::Result<Verdict> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "ringback", &mut script);
    out.bytes(&script)?;
    out.flush()?;
    Ok(Verdict::Done)
}
