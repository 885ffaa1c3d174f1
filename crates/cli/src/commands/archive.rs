//! `ringback archive`: shows the ended jobs that wait for the archive, and detaches it.

use clap::{Args, Subcommand};
use http::Method;
use ringback_wire::{ArchiveDetachedResponse, ArchiveResponse};

use super::session::Session;
use crate::client::{Call, SHORT};
use crate::failure::CommandOutcome;
use crate::output::{Cell, Colour, Table};

pub(crate) const EXAMPLES: &str = "\
Examples:
  ringback archive status
  ringback archive detach
  ringback archive detach --drop                  # also drop the ended jobs that wait for it

An archive is attached by its archivers: `ringback-archiver`, or `ringback up` with RINGBACK_ARCHIVE.";

const STATUS_EXAMPLES: &str = "\
Examples:
  ringback archive status
  ringback archive status --json";

const DETACH_EXAMPLES: &str = "\
Examples:
  ringback archive detach
  ringback archive detach --drop

Stop the archivers first: each attaches the archive again.";

/// The commands on the archive.
#[derive(Debug, Subcommand)]
pub(crate) enum ArchiveCommand {
    /// Show how many ended jobs wait for the archive
    #[command(after_help = STATUS_EXAMPLES)]
    Status,
    /// Keep no more ended jobs for an archive
    #[command(after_help = DETACH_EXAMPLES)]
    Detach(DetachArgs),
}

/// How to detach the archive.
#[derive(Debug, Args)]
pub(crate) struct DetachArgs {
    /// Drop the ended jobs that wait for it; without this it is refused if there are any
    #[arg(long)]
    pub(crate) drop: bool,
}

pub(crate) async fn run(session: &mut Session, command: ArchiveCommand) -> anyhow::Result<CommandOutcome> {
    let route = &["v1", "archive"];
    match command {
        ArchiveCommand::Status => {
            let answer = session.client.ask(Call::new(Method::GET, route), SHORT).await;
            let body = answer.map_err(|error| error.for_route("archive"))?.body;
            session.print(&body, |archive: &ArchiveResponse, view| table(archive, view.colour))
        }
        ArchiveCommand::Detach(DetachArgs { drop }) => {
            let mut call = Call::new(Method::DELETE, route);
            if drop {
                call.query.push(("drop", "true".to_owned()));
            }
            let body =
                session.client.ask(call, SHORT).await.map_err(|error| error.for_route("archive"))?.body;
            session.print(&body, |detached: &ArchiveDetachedResponse, view| {
                Table::new([">DROPPED"], view.colour).page(&[[Cell::from(detached.dropped)]])
            })
        }
    }
}

fn table(archive: &ArchiveResponse, colour: Colour) -> String {
    let bodies = if archive.bodies { "with bodies" } else { "without bodies" };
    let attached = if archive.attached {
        format!("{} ({bodies})", archive.states.join(" "))
    } else {
        "not attached".to_owned()
    };
    let bytes = format!("{} of {} bytes", archive.pending_bytes, archive.bound_bytes);
    let full = format!("{}; {} shards are full", archive.when_full, archive.full_shards);
    let oldest = archive.oldest_at.clone().unwrap_or_else(|| "-".to_owned());
    let rows = [
        [Cell::from("states"), Cell::from(attached)],
        [Cell::from("waiting"), Cell::from(archive.pending)],
        [Cell::from("in the store"), Cell::from(bytes)],
        [Cell::from("first ended"), Cell::from(oldest)],
        [Cell::from("when full"), Cell::from(full)],
        [Cell::from("dropped"), Cell::from(archive.dropped)],
    ];
    Table::new([""; 2], colour).page(&rows)
}
