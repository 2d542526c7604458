//! All metrics.

use super::Better::{Higher, Lower, Neither};
use super::Unit::{BitsPerSecond, Bytes, Count, Index, Milliseconds, Seconds, Share, Times};
use super::{Better, Context, Metric, Reading, Unit, read};

const fn metric(
    (name, label): (&'static str, &'static str),
    unit: Unit,
    better: Better,
    read: fn(&Context<'_>) -> Reading,
    doc: &'static str,
) -> Metric {
    Metric { name, label, unit, better, doc, read }
}

/// Every metric there is, those of time first. "Of a run" means of its first flow unless the doc says another.
/// Packets and bytes are IP packets, counted by the world alike for every stack; what is still under way when the
/// run ends counts as lost.
pub const CATALOGUE: &[Metric] = &[
    metric(
        ("completion", "completion time"),
        Seconds,
        Lower,
        read::completion,
        "From the first packet of the handshake to the last byte read by the application.",
    ),
    metric(
        ("connect", "handshake"),
        Seconds,
        Lower,
        read::connect,
        "From the first packet to the end of the client's handshake.",
    ),
    metric(
        ("first-byte", "first byte"),
        Seconds,
        Lower,
        read::first_byte,
        "From the first packet of the handshake to the first byte of the first response.",
    ),
    metric(
        ("to-limit", "time / limit"),
        Times,
        Lower,
        read::to_limit,
        "Completion time over the physical limit of the cell.",
    ),
    metric(
        ("saving", "saving"),
        Share,
        Higher,
        read::saving,
        "1 - completion time / completion time of the baseline stack, seed by seed. Where the baseline misses its \
         deadline, the deadline stands in for its time: the saving is at least that.",
    ),
    metric(
        ("gain", "gain"),
        Share,
        Higher,
        read::gain,
        "Goodput over that of the baseline stack, less 1, seed by seed.",
    ),
    metric(
        ("goodput", "goodput"),
        BitsPerSecond,
        Higher,
        read::goodput,
        "Body bits read a second, from the start to completion or to the run's end.",
    ),
    metric(
        ("throughput", "throughput"),
        BitsPerSecond,
        Higher,
        read::throughput,
        "Bits of IP packets that arrived at the client a second, headers and repetitions included.",
    ),
    metric(
        ("delay", "one-way delay"),
        Milliseconds,
        Lower,
        read::delay,
        "Mean one-way delay of packets from server to client, queues included.",
    ),
    metric(
        ("delay-p95", "one-way delay, p95"),
        Milliseconds,
        Lower,
        read::delay_p95,
        "95th percentile of the one-way delay of a run's packets from server to client.",
    ),
    metric(
        ("queueing", "queueing delay"),
        Milliseconds,
        Lower,
        read::queueing,
        "Mean one-way delay from server to client above the least one seen: queues and jitter.",
    ),
    metric(
        ("loss", "loss"),
        Share,
        Lower,
        read::loss,
        "Packets from server to client that did not arrive, as a share of those sent (duplicates hide losses).",
    ),
    metric(("loss-up", "loss up"), Share, Lower, read::loss_up, "The same from client to server."),
    metric(
        ("retransmission", "resent"),
        Share,
        Lower,
        read::retransmission,
        "Stream bytes that the server sent again, as a share of all bytes that it sent, headers included.",
    ),
    metric(
        ("rtr", "RTR"),
        Index,
        Neither,
        read::rtr,
        "Packets received over packets transmitted, counted at the client.",
    ),
    metric(
        ("blocked", "blocked"),
        Seconds,
        Lower,
        read::blocked,
        "Time during which flow control alone kept the server's data back.",
    ),
    metric(("acks-sent", "acks"), Count, Lower, read::acks_sent, "ACK frames that the client sent."),
    metric(
        ("pure-acks", "pure acks"),
        Count,
        Lower,
        read::pure_acks,
        "Packets of the client with an acknowledgement and nothing that must be acknowledged.",
    ),
    metric(
        ("ack-ratio", "acks / packets"),
        Index,
        Lower,
        read::ack_ratio,
        "ACK frames that the client sent over packets that the server sent.",
    ),
    metric(
        ("ack-eliciting-up", "ack-eliciting up"),
        Count,
        Neither,
        read::ack_eliciting_up,
        "Packets of the client that must be acknowledged.",
    ),
    metric(
        ("ack-eliciting-down", "ack-eliciting down"),
        Count,
        Neither,
        read::ack_eliciting_down,
        "Packets of the server that must be acknowledged.",
    ),
    metric(
        ("packets-down", "packets down"),
        Count,
        Lower,
        read::packets_down,
        "Packets that the server sent.",
    ),
    metric(("packets-up", "packets up"), Count, Lower, read::packets_up, "Packets that the client sent."),
    metric(
        ("bytes-down", "bytes down"),
        Bytes,
        Lower,
        read::bytes_down,
        "Bytes on the wire from the server.",
    ),
    metric(("bytes-up", "bytes up"), Bytes, Lower, read::bytes_up, "Bytes on the wire from the client."),
    metric(
        ("declared-lost", "declared lost"),
        Count,
        Lower,
        read::declared_lost,
        "Packets that the server's stack declared lost.",
    ),
    metric(
        ("spurious-losses", "spurious losses"),
        Count,
        Lower,
        read::spurious_losses,
        "Packets declared lost that had arrived after all.",
    ),
    metric(
        ("probe-timeouts", "probe timeouts"),
        Count,
        Lower,
        read::probe_timeouts,
        "Probe timeouts of the server (TCP: retransmission timeouts).",
    ),
    metric(
        ("congestion-events", "window cuts"),
        Count,
        Neither,
        read::congestion_events,
        "Reductions of the server's congestion window.",
    ),
    metric(
        ("slow-start-packets", "packets in slow start"),
        Count,
        Neither,
        read::slow_start_packets,
        "Packets that the server had sent when its slow start first ended.",
    ),
    metric(
        ("slow-start-window", "window at the end of slow start"),
        Bytes,
        Neither,
        read::slow_start_window,
        "The server's congestion window when its slow start first ended.",
    ),
    metric(
        ("jain", "Jain's index"),
        Index,
        Higher,
        read::jain,
        "Jain's fairness index over the goodput of the flows that the run waits for: 1 is even, 1/n is one for all.",
    ),
    metric(
        ("max-min-share", "smallest share"),
        Index,
        Higher,
        read::max_min_share,
        "Least goodput of those flows over their mean: 1 is even, 0 starves one.",
    ),
    metric(
        ("harm", "harm to goodput"),
        Share,
        Lower,
        read::harm,
        "What the background flows lose of their goodput beside this stack, against the cell whose first flow is of \
         their own kind, seed by seed; negative if they fare better.",
    ),
    metric(
        ("harm-loss", "harm by loss"),
        Share,
        Lower,
        read::harm_loss,
        "The background flows' loss beside this stack, less that beside one more of their own kind.",
    ),
    metric(("stalled", "stalled"), Seconds, Lower, read::stalled, "Time that video playback stood still."),
];
