//! The files of the dashboard, which lie in `crates/api/ui`.

/// Embeds files by their paths below the folder.
macro_rules! assets {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/ui/", $name)))),*]
    };
}

/// Each file: its path below `/ui/`, and its content.
pub(super) const ASSETS: &[(&str, &[u8])] = assets![
    "app.css",
    "core/api.js",
    "core/base.js",
    "core/batch.js",
    "core/connection.js",
    "core/events.js",
    "core/key-sharing.js",
    "core/lateness.js",
    "core/pages.js",
    "core/rates.js",
    "core/raw-json.js",
    "core/redraw.js",
    "core/resource.js",
    "core/route.js",
    "core/session.js",
    "core/sse.js",
    "core/stats.js",
    "icon.svg",
    "index.html",
    "main.js",
    "pages/audit-log.js",
    "pages/bulk.js",
    "pages/curl.js",
    "pages/dead-sample.js",
    "pages/dead.js",
    "pages/destinations.js",
    "pages/filter.js",
    "pages/job-actions.js",
    "pages/job.js",
    "pages/jobs.js",
    "pages/overview.js",
    "pages/request.js",
    "pages/schedule.js",
    "pages/schedules.js",
    "pages/timeline.js",
    "pages/topic.js",
    "pages/topics.js",
    "pages/wrong.js",
    "vendor/lit-html.LICENSE",
    "vendor/lit-html.js",
    "view/announce.js",
    "view/bulk-dialog.js",
    "view/charts.js",
    "view/confirm.js",
    "view/dialog.js",
    "view/due.js",
    "view/format.js",
    "view/key-form.js",
    "view/panel.js",
    "view/shell.js",
    "view/state.js",
    "view/table.js",
];
