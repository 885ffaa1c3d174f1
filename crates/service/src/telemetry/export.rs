//! The export of traces over OTLP. The OpenTelemetry crates read endpoint, headers, timeout and sampler
//! from the standard `OTEL_` variables.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use opentelemetry_otlp::{Protocol, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::runtime::Tokio;
use opentelemetry_sdk::trace::span_processor_with_async_runtime::BatchSpanProcessor;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use ringback_core::connection_url::shown_in_text;

/// Creates a provider that exports in batches on the current runtime.
pub(super) fn provider(resource: Resource) -> anyhow::Result<SdkTracerProvider> {
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .build()
        .context("cannot set up the export of traces")?;
    let batches = BatchSpanProcessor::builder(Watched::new(exporter), Tokio).build();
    Ok(SdkTracerProvider::builder().with_resource(resource).with_span_processor(batches).build())
}

/// An exporter that logs once when exports begin to fail and once when they succeed again.
#[derive(Debug)]
struct Watched<E> {
    exporter: E,
    failing: AtomicBool,
}

impl<E> Watched<E> {
    fn new(exporter: E) -> Self {
        Self { exporter, failing: AtomicBool::new(false) }
    }

    /// Returns true if `result` differs from the one before.
    fn has_changed(&self, result: &OTelSdkResult) -> bool {
        self.failing.swap(result.is_err(), Ordering::Relaxed) != result.is_err()
    }
}

impl<E: SpanExporter> SpanExporter for Watched<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let result = self.exporter.export(batch).await;
        if self.has_changed(&result) {
            match &result {
                Ok(()) => tracing::info!("trace export succeeds again"),
                Err(error) => {
                    // It has the URL of the collector.
                    let error = shown_in_text(&error.to_string());
                    tracing::warn!(error, "cannot export traces; dropping them until an export succeeds");
                }
            }
        }
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_sdk::error::OTelSdkError;

    use super::*;

    #[test]
    fn only_a_change_between_failure_and_success_is_reported() {
        let watched = Watched::new(());
        let failure = || Err(OTelSdkError::InternalFailure("refused".to_owned()));
        let results = [Ok(()), failure(), failure(), Ok(()), Ok(())];
        assert_eq!(results.map(|result| watched.has_changed(&result)), [false, true, false, true, false]);
    }
}
