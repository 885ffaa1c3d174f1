//! `ringback-feed check`: runs the queries of each feed, and prints ten jobs of each with what is wrong, without
//! submitting them.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ringback_admission::{Admission, Principal};
use ringback_core::clock::{Clock, SystemClock, Timestamp};
use ringback_core::job::JobId;
use ringback_service::random;
use ringback_store::{SharedConfig, Store};
use tokio::time::timeout;

use crate::config::{Config, Feed, Outbox, Rows, Window};
use crate::load::{Loader, in_one_line};
use crate::pass::{Pages, first_change, first_due};
use crate::row::{Columns, shown};
use crate::source::{Page, PageRequest, Postgres, Source};

/// How many rows are shown of each query.
const SHOWN: usize = 10;
/// Shown in place of rows.
const NONE: &str = "  none";
/// How long the store is waited for.
const STORE: Duration = Duration::from_secs(5);

/// Checks all feeds and prints the results. The status is 1 if a query or a row is wrong, or a database cannot be read.
/// A store that does not answer within 5 s is only noted.
///
/// # Errors
/// If the settings of the store cannot be used.
#[expect(clippy::print_stdout, reason = "it is the output of the command")]
pub(crate) async fn run(config: Config) -> anyhow::Result<ExitCode> {
    let store = Store::open(config.store.clone())?;
    let (shared, clock) = (SharedConfig::default(), Arc::new(SystemClock));
    let reading = tokio::task::JoinSet::from_iter([{
        let (shared, of) = (shared.clone(), store.clone());
        async move {
            of.prepare().await.ok();
            shared.keep(of, random::generator(), || {}).await;
        }
    }]);
    if timeout(STORE, shared.known()).await.is_err() {
        println!(
            "The store does not answer: policies and positions are not known. Rows that need the URL of a policy are refused."
        );
    }
    let admission = Admission::new(
        &store,
        shared,
        config.guard.clone(),
        Arc::clone(&clock) as Arc<dyn Clock>,
        random::generator(),
    );
    let mut is_right = true;
    for feed in &config.feeds {
        let report =
            Check { feed, config: &config, store: &store, admission: &admission }.run(clock.now()).await;
        println!("{}", report.lines.join("\n"));
        is_right &= report.is_right;
    }
    drop(reading);
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The findings of a feed.
struct Report {
    lines: Vec<String>,
    is_right: bool,
}

impl Report {
    fn wrong(&mut self, why: impl std::fmt::Display) {
        self.lines.push(format!("  wrong: {why}"));
        self.is_right = false;
    }
}

/// The check of one feed.
struct Check<'a> {
    feed: &'a Feed,
    config: &'a Config,
    store: &'a Store,
    admission: &'a Admission,
}

impl Check<'_> {
    async fn run(&self, now: Timestamp) -> Report {
        let Feed { name, topic, rows, .. } = self.feed;
        let first = format!("feed {name}: {}, topic {topic}", rows.kind());
        let mut report = Report { lines: vec![first], is_right: true };
        match rows {
            Rows::Window(window) => self.window(window, now, &mut report).await,
            Rows::Outbox(outbox) => {
                if let Err(why) = self.outbox(outbox, &mut report).await {
                    report.wrong(why);
                }
            }
        }
        report
    }

    async fn window(&self, window: &Window, now: Timestamp, report: &mut Report) {
        let stored = timeout(STORE, self.store.feed(&self.feed.name)).await;
        let position = stored.ok().and_then(Result::ok).and_then(|stored| stored.position);
        let from = first_due(position, now);
        let to = now.plus(window.ahead);
        report.lines.push(format!("  rows due from {from} to {to}:"));
        let mut source = match Source::new(&window.source, self.config.authorities.as_deref()) {
            Ok(source) => source,
            Err(error) => return report.wrong(format!("{error:#}")),
        };
        let ask = PageRequest { from, to, after: None, limit: SHOWN };
        match source.page(&window.query, &ask).await {
            Ok(page) => match Columns::of_jobs(&page) {
                Ok(columns) => {
                    self.jobs(&columns, &page, report);
                    let mut pages = Pages { query: &window.query, ask: ask.clone() };
                    // Whether the query goes on behind the rows that are shown.
                    let second = match pages.turn(&columns, &page) {
                        Ok(()) => pages.next(&mut source).await.map(drop),
                        Err(error) => Err(error),
                    };
                    if let Err(error) = second {
                        report.wrong(error);
                    }
                }
                Err(why) => report.wrong(why),
            },
            Err(error) => report.wrong(error),
        }
        let ask = PageRequest { from: first_change(position, now), ..ask };
        let Some(gone) = &window.gone else { return };
        report.lines.push("  rows that went:".to_owned());
        match source.page(gone, &ask).await {
            Ok(page) => match Columns::of_ids(&page) {
                Ok(columns) => {
                    if page.rows.is_empty() {
                        report.lines.push(NONE.to_owned());
                    }
                    for id in page.rows.iter().map(|row| columns.id_text(row)) {
                        match id {
                            Ok(id) => match id.parse::<JobId>() {
                                Ok(_) => report.lines.push(format!("  {id}")),
                                Err(allowed) => report.wrong(format!("row {id}: id must be {allowed}")),
                            },
                            Err(bad) => report.wrong(bad.why),
                        }
                    }
                }
                Err(why) => report.wrong(why),
            },
            Err(error) => report.wrong(error),
        }
    }

    async fn outbox(&self, outbox: &Outbox, report: &mut Report) -> anyhow::Result<()> {
        let mut database = Postgres::new(&outbox.url, self.config.authorities.as_deref())?;
        let page = outbox.first(&mut database, SHOWN as i64).await?;
        report.lines.push("  rows that wait:".to_owned());
        let columns = Columns::of_outbox(&page).map_err(anyhow::Error::msg)?;
        self.jobs(&columns, &page, report);
        Ok(())
    }

    fn jobs(&self, columns: &Columns, page: &Page, report: &mut Report) {
        let caller = Principal::of_tenant(self.feed.tenant.clone());
        let (topic, changed) = (self.feed.topic.clone(), self.feed.changed);
        let is_calling = &AtomicBool::new(false);
        let (store, admission) = (self.store, self.admission);
        let loader = Loader { store, admission, caller, topic, changed, is_calling };
        if page.rows.is_empty() {
            report.lines.push(NONE.to_owned());
        }
        for row in &page.rows {
            match columns.candidate(&self.feed.topic, row) {
                Ok(candidate) => match loader.parse(&candidate) {
                    Ok(_) => report.lines.push(format!("  {}", shown(&candidate.json))),
                    Err(problem) => report.wrong(format!("row {}: {}", candidate.id, in_one_line(&problem))),
                },
                Err(bad) => report.wrong(format!("row {}: {}", bad.id, bad.why)),
            }
        }
    }
}
