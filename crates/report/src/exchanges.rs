//! What a flow's exchanges say of requests and of a video.

use crate::result::{ExchangeResult, FlowResult};
use crate::statistics::quantile;

impl ExchangeResult {
    /// Seconds from the moment that the application wanted it to its last byte.
    pub fn latency(&self) -> f64 {
        self.finished - self.requested
    }
}

impl FlowResult {
    /// A quantile (0 to 1) of the latencies of the exchanges that have ended, in seconds; `None` before the first.
    pub fn latency(&self, share: f64) -> Option<f64> {
        let latencies: Vec<f64> = self.exchanges.iter().map(ExchangeResult::latency).collect();
        quantile(&latencies, share)
    }

    /// True if it is a video.
    pub fn is_video(&self) -> bool {
        self.stalled_seconds.is_some()
    }

    /// Seconds from the first packet of the handshake to the start of playback, which is the end of the first chunk;
    /// `None` before it, and for what is not a video.
    pub fn startup(&self) -> Option<f64> {
        let first = self.exchanges.iter().find(|exchange| exchange.object == 0)?;
        self.is_video().then_some(first.finished)
    }

    /// Share of the time from the start of playback to the last byte during which playback stood still; `None` before
    /// the last byte, and for what is not a video.
    pub fn stalled_share(&self) -> Option<f64> {
        let watched = self.completion? - self.startup()?;
        // One chunk is all there, and never missed.
        self.stalled_seconds.map(|stalled| if watched > 0.0 { (stalled / watched).min(1.0) } else { 0.0 })
    }

    /// Body bits a second while a chunk was under way, pauses aside; `None` before the first chunk, and for what is not
    /// a video.
    pub fn chunk_rate(&self) -> Option<f64> {
        let bits: f64 = self.exchanges.iter().map(|exchange| exchange.bytes as f64 * 8.0).sum();
        let seconds: f64 = self.exchanges.iter().map(ExchangeResult::latency).sum();
        (self.is_video() && seconds > 0.0).then(|| bits / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(object: usize, requested: f64, finished: f64) -> ExchangeResult {
        ExchangeResult { object, requested, first_byte: requested, finished, bytes: 1_000 }
    }

    #[test]
    fn a_video_starts_with_its_first_chunk_and_stands_still_for_a_share_of_the_rest() {
        let exchanges = vec![exchange(0, 0.1, 0.5), exchange(1, 0.5, 3.0), exchange(2, 3.0, 4.5)];
        let flow = FlowResult {
            completion: Some(4.5),
            stalled_seconds: Some(1.0),
            exchanges: exchanges.clone(),
            ..FlowResult::default()
        };
        assert_eq!(flow.startup(), Some(0.5));
        assert_eq!(flow.stalled_share(), Some(0.25));
        assert_eq!(flow.chunk_rate(), Some(24_000.0 / 4.4));
        let unfinished = FlowResult { completion: None, ..flow.clone() };
        assert_eq!((unfinished.startup(), unfinished.stalled_share()), (Some(0.5), None));
        let one = FlowResult {
            completion: Some(0.5),
            stalled_seconds: Some(0.0),
            exchanges: exchanges[..1].to_vec(),
            ..flow
        };
        assert_eq!(one.stalled_share(), Some(0.0));
        let requests = FlowResult { completion: Some(4.5), exchanges, ..FlowResult::default() };
        assert_eq!((requests.startup(), requests.stalled_share(), requests.chunk_rate()), (None, None, None));
    }

    #[test]
    fn latencies_count_from_the_wish() {
        let exchanges = (0..20).map(|index| exchange(index, 1.0, 2.0 + index as f64)).collect();
        let flow = FlowResult { exchanges, ..FlowResult::default() };
        assert_eq!((flow.latency(0.5), flow.latency(0.95)), (Some(10.5), Some(19.5)));
        assert_eq!(FlowResult::default().latency(0.5), None);
    }
}
