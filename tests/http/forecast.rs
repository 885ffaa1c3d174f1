//! Forecasts over HTTP: delayed jobs and schedules by topic, limits, and tenants.

use crate::prelude::*;

fn sum(answer: &Value, field: &str) -> u64 {
    let slots = answer["slots"].as_array().expect("slots");
    slots.iter().map(|slot| slot[field].as_u64().expect("a number")).sum()
}

#[tokio::test]
async fn a_forecast_has_delayed_jobs_and_schedules_by_topic() {
    for options in [Stack::options(), StackOptions::embedded()] {
        let stack = options.start().await;
        for (topic, delay) in [("a", "5m"), ("a", "3h"), ("b", "3h"), ("b", "40h")] {
            stack.accept(&json!({"topic": topic, "delay": delay, "url": "http://127.0.0.1:9/"})).await;
        }
        let all = stack.get("/v1/forecast").await.expect(200);
        assert_eq!((sum(&all, "jobs"), sum(&all, "retries"), sum(&all, "schedules")), (3, 0, 0), "{all}");
        assert_eq!(
            (&all["exact"], &all["error"], &all["slot_ms"]),
            (&json!(true), &Value::Null, &json!(600_000))
        );
        assert!(all["recent"]["per_minute_max"].is_u64(), "{all}");
        let of_b = stack.get("/v1/forecast?topic=b&by=1h&until=2d").await.expect(200);
        assert_eq!(sum(&of_b, "jobs"), 2, "{of_b}");
        assert!(of_b["recent"]["per_minute_max"].is_null(), "{of_b}");
        for query in ["by=59s", "by=2d", "until=32d", "by=1m&until=2d", "by=x", "every=1m"] {
            let problem = stack.get(&format!("/v1/forecast?{query}")).await.expect(422);
            assert!(problem["errors"].is_array(), "{query}: {problem}");
        }
    }
}
