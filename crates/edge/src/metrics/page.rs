//! A page of figures in the text format of `OpenMetrics`, which Prometheus reads.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Unit;

/// Labels with their values. No value comes from a request.
pub(super) type Labels<'a> = &'a [(&'static str, &'a str)];

/// The page while it is written. Names get the prefix `edge_`, counters the suffix `_total`.
pub(super) struct Page<'a>(pub(super) DescriptorEncoder<'a>);

impl Page<'_> {
    /// A number that only grows, with each set of labels.
    pub(super) fn counter(&mut self, name: &str, help: &str, values: &[(Labels<'_>, u64)]) -> fmt::Result {
        let write =
            |mut at: MetricEncoder<'_>, value: &u64| at.encode_counter::<NoLabelSet, _, u64>(value, None);
        self.family((name, help, None, MetricType::Counter), values, write)
    }

    /// The same in bytes.
    pub(super) fn bytes(&mut self, name: &str, help: &str, values: &[(Labels<'_>, u64)]) -> fmt::Result {
        let write =
            |mut at: MetricEncoder<'_>, value: &u64| at.encode_counter::<NoLabelSet, _, u64>(value, None);
        self.family((name, help, Some(&Unit::Bytes), MetricType::Counter), values, write)
    }

    /// The same in seconds.
    pub(super) fn seconds(&mut self, name: &str, help: &str, values: &[(Labels<'_>, f64)]) -> fmt::Result {
        let write =
            |mut at: MetricEncoder<'_>, value: &f64| at.encode_counter::<NoLabelSet, _, u64>(value, None);
        self.family((name, help, Some(&Unit::Seconds), MetricType::Counter), values, write)
    }

    /// A number as it is now.
    pub(super) fn gauge(&mut self, name: &str, help: &str, values: &[(Labels<'_>, f64)]) -> fmt::Result {
        let write = |mut at: MetricEncoder<'_>, value: &f64| at.encode_gauge(value);
        self.family((name, help, None, MetricType::Gauge), values, write)
    }

    /// A time since 1970, in seconds.
    pub(super) fn time(&mut self, name: &str, help: &str, values: &[(Labels<'_>, f64)]) -> fmt::Result {
        let write = |mut at: MetricEncoder<'_>, value: &f64| at.encode_gauge(value);
        self.family((name, help, Some(&Unit::Seconds), MetricType::Gauge), values, write)
    }

    /// How often a figure was in which range.
    pub(super) fn histogram(
        &mut self,
        (name, help, unit): (&str, &str, Option<&Unit>),
        values: &[(Labels<'_>, &Histogram)],
    ) -> fmt::Result {
        let write = |at: MetricEncoder<'_>, value: &&Histogram| value.encode(at);
        self.family((name, help, unit, MetricType::Histogram), values, write)
    }

    fn family<T>(
        &mut self,
        (name, help, unit, kind): (&str, &str, Option<&Unit>, MetricType),
        values: &[(Labels<'_>, T)],
        write: impl Fn(MetricEncoder<'_>, &T) -> fmt::Result,
    ) -> fmt::Result {
        if values.is_empty() {
            return Ok(());
        }
        let mut family = self.0.encode_descriptor(name, help, unit, kind)?;
        if let [(labels, value)] = values
            && labels.is_empty()
        {
            return write(family, value);
        }
        for (labels, value) in values {
            write(family.encode_family(labels)?, value)?;
        }
        Ok(())
    }
}
