//! What a trace shows of a handshake that is measured.

use super::*;

#[test]
fn a_handshake_that_is_measured_has_packets_at_the_ends_of_its_datagrams() {
    let traces = Traces::default();
    let text = "[start.measured]\n[congestion.bbr3]\n[repair.tail]\n";
    let profile = posthaste_schemes::from_toml("measured", text).expect("a profile");
    let server = TransportConfig { profile, ..config(Some(Arc::new(traces.clone()))) };
    Pair::new(1, crate::support::defaults(), server).establish();
    let (_, events) = parse(&traces.of(Side::Server));
    let sent = |number| {
        let is_it = |header: &PacketHeader| name(header) == ("OneRtt".to_owned(), number);
        events.iter().find_map(|event| match &event.data {
            EventData::QuicPacketSent(packet) if is_it(&packet.header) => packet.frames.clone(),
            _ => None,
        })
    };
    for number in [0, 2] {
        let frames = sent(number).expect("it ends a datagram");
        let is_empty =
            |frame: &QuicFrame| matches!(frame, QuicFrame::Ping { .. } | QuicFrame::Padding { .. });
        assert!(frames.iter().all(is_empty), "{number}: {frames:?}");
    }
    assert!(sent(1).is_none(), "left out, so that the second is acknowledged at once");
}
