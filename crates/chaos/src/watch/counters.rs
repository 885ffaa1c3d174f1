//! Writes the counters of each process at the end. Those of a process that was killed are lost.

use std::collections::BTreeMap;

use ringback_testkit::history::{Entry, Metric};
use ringback_testkit::http_client;

use crate::installation::Installation;
use crate::planted_secret::scan;

/// The counters that the checker compares with the history, and the label that matters.
const COUNTERS: [(&str, &str); 3] = [
    ("ringback_api_submitted_jobs_total", "result"),
    ("ringback_notifier_attempts_total", "result"),
    ("ringback_notifier_lateness_seconds_count", ""),
];

/// Writes the counters of all processes, and searches their pages `/metrics` and `/readyz` for secrets.
pub(super) async fn write(installation: &Installation) {
    let (history, http) = (&installation.history, http_client());
    for member in &installation.members {
        let pid = member.running.lock().await.process.pid();
        for page in ["metrics", "readyz"] {
            let answer = http.get(format!("http://{}/{page}", member.admin)).send().await;
            let Ok(answer) = answer else { continue };
            let text = answer.text().await.unwrap_or_default();
            scan(&text, history);
            for ((name, label), value) in counters(&text) {
                history.write(&Entry::Metric(Metric { t: history.t(), pid, name, label, value }));
            }
        }
    }
}

/// Parses a page of metrics. Returns the wanted counters by name and label, summed over all other labels.
fn counters(page: &str) -> BTreeMap<(&str, &str), u64> {
    let mut sums = BTreeMap::new();
    for line in page.lines() {
        let Some((series, value)) = line.rsplit_once(' ') else { continue };
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let Some((_, wanted)) = COUNTERS.iter().find(|(counter, _)| *counter == name) else { continue };
        let label = labels.trim_end_matches('}').split(',').find_map(|label| {
            let (key, value) = label.split_once('=')?;
            (key == *wanted).then(|| value.trim_matches('"'))
        });
        let value: f64 = value.parse().unwrap_or_default();
        *sums.entry((name, label.unwrap_or_default())).or_default() += value as u64;
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_added_up_by_the_label_that_matters() {
        let page = "# TYPE x counter\n\
            ringback_api_submitted_jobs_total{topic=\"a\",result=\"created\"} 2\n\
            ringback_api_submitted_jobs_total{topic=\"b\",result=\"created\"} 3\n\
            ringback_notifier_lateness_seconds_count 7\nother 9\n";
        let (created, late) = (
            ("ringback_api_submitted_jobs_total", "created"),
            ("ringback_notifier_lateness_seconds_count", ""),
        );
        assert_eq!(counters(page), BTreeMap::from([(created, 5), (late, 7)]));
    }
}
