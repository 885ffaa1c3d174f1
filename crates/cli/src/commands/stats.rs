//! `ringback stats`: prints the number of jobs per state, the lateness, what waits for the archive, and the store.

use http::Method;
use ringback_core::store_types::StateCounts;
use ringback_wire::StatsResponse;

use super::session::Session;
use crate::client::{Call, SHORT};
use crate::failure::CommandOutcome;
use crate::output::{Cell, Colour, Table, state};

pub(crate) async fn run(session: &mut Session) -> anyhow::Result<CommandOutcome> {
    let call = Call::new(Method::GET, &["v1", "stats"]);
    let answer = session.client.ask(call, SHORT).await;
    let body = answer.map_err(|error| error.for_route("stats"))?.body;
    session.print(&body, |stats: &StatsResponse, view| tables(stats, view.colour))
}

fn tables(stats: &StatsResponse, colour: Colour) -> String {
    let StateCounts { delayed, ready, reserved, done, dead, cancelled, purged, missing } =
        stats.states.clone();
    let named = [
        ("delayed", delayed),
        ("ready", ready),
        ("reserved", reserved),
        ("done", done),
        ("dead", dead),
        ("cancelled", cancelled),
        ("purged", purged),
        ("missing", missing),
    ];
    let shown = named.into_iter().filter(|(name, count)| *name != "missing" || *count > 0);
    let rows: Vec<_> = shown.map(|(name, count)| [state(name), Cell::from(count)]).collect();
    let states = Table::new(["STATE", ">JOBS"], colour).page(&rows);
    let ms = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1} ms"));
    let late = &stats.lateness_ms;
    let late = format!("p50 {}, p99 {}, max {}", ms(late.p50), ms(late.p99), ms(late.max));
    let rows = [
        [Cell::from("topics"), Cell::from(stats.topics)],
        [Cell::from("lateness, last 5 min"), Cell::from(late)],
        [Cell::from("evicted early"), Cell::from(stats.tombstones.tombstones_evicted_early)],
        [Cell::from("pending dead-letter notices"), Cell::from(stats.outbox.deaths)],
        [Cell::from("store"), Cell::from(format!("{}, {}", stats.store.kind, stats.store.profile))],
    ];
    let archive = stats.archive.as_ref().map(|archive| {
        let dropped =
            if archive.dropped > 0 { format!(", {} dropped", archive.dropped) } else { String::new() };
        [
            Cell::from("ended jobs that wait for the archive"),
            Cell::from(format!("{}{dropped}", archive.pending)),
        ]
    });
    let rows: Vec<_> = rows.into_iter().chain(archive).collect();
    states + "\n" + &Table::new([""; 2], colour).page(&rows)
}
