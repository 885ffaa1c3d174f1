//! Times in the dashboard are shown in the browser's time zone, and those of a schedule in its own.

use super::dashboard::{Dashboard, id, in_row};
use crate::prelude::*;

#[tokio::test]
async fn times_are_local_and_those_of_a_schedule_in_its_own_zone() {
    let stack = StackOptions::embedded().start().await;
    let Some(ui) = Dashboard::start(&stack).await else { return };
    ui.browser.set_time_zone("Asia/Tokyo").await;
    let url = "http://127.0.0.1:9/";
    let last = json!({"at": "2026-01-31T20:30:00.000Z", "status": 503, "duration_ms": 7});
    let dead = json!({"topic": TOPIC, "id": "one", "url": url, "state": "dead", "reason": "exhausted", "attempts": 4, "failures": 3, "last": last});
    stack.import(&[dead]).await;
    let daily =
        json!({"cron": "0 9 * * *", "time_zone": "America/New_York", "job": {"topic": "report", "url": url}});
    stack.put("/v1/schedules/daily", &daily).await.expect(201);
    let hourly = json!({"cron": "30 7 * * *", "job": {"topic": "report", "url": url}});
    stack.put("/v1/schedules/hourly", &hourly).await.expect(201);

    ui.open(&format!("#/job?topic={TOPIC}&id=one"), "page-job").await;
    ui.browser.wait_text(&id("panel-job"), "2026-02-01 05:30:00 Asia/Tokyo").await;
    ui.open("#/jobs", "page-jobs").await;
    let title = "return document.querySelector('[data-testid=row] time').title.slice(-11)";
    assert_eq!(ui.browser.run(title, &[]).await, " Asia/Tokyo");

    ui.open("#/schedules", "page-schedules").await;
    for (schedule, next) in [("daily", " 09:00:00 America/New_York"), ("hourly", " 07:30:00 UTC")] {
        ui.browser.wait_text(&format!("[data-key='{schedule}']"), next).await;
    }
    assert_eq!(ui.browser.count(&in_row("daily", "action-run")).await, 1);
    ui.open("#/schedule?id=daily", "page-schedule").await;
    ui.browser.wait_text(&id("panel-schedule"), " 09:00:00 America/New_York").await;
    let next = ui.browser.wait_text(&id("table-next"), " 09:00:00 America/New_York").await;
    assert_eq!(next.matches(" 09:00:00 America/New_York").count(), 20, "{next}");

    // A time without an offset is one where the browser is.
    ui.open("#/jobs?topic=e2e", "page-jobs").await;
    ui.browser.write(&id("filter-created_after"), "2020-02-01 02:01").await;
    ui.browser.click(&id("filter-apply")).await;
    ui.browser.wait_text(&id("table-jobs"), "created after 2020-02-01 02:01:00 Asia/Tokyo").await;
    ui.has_no_complaints().await;
}
