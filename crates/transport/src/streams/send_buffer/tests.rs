use proptest::prelude::*;

use super::*;

fn pattern(start: u64, length: usize) -> Vec<u8> {
    (start..start + length as u64).map(|offset| (offset ^ (offset >> 8)) as u8).collect()
}

fn sent_bytes(buffer: &SendBuffer, start: u64, end: u64) -> Vec<u8> {
    let mut out = Vec::new();
    buffer.copy_to(&mut out, start, end);
    out
}

#[test]
fn large_writes_are_kept_as_they_are_and_small_ones_share_a_chunk() {
    let mut buffer = SendBuffer::default();
    let large = Bytes::from(pattern(0, 5000));
    buffer.push(large.clone());
    for index in 0..100 {
        buffer.push(pattern(5000 + index * 10, 10).into());
    }
    assert_eq!(buffer.chunks.len(), 1, "the small writes wait in the tail");
    assert_eq!(buffer.chunks[0].1.as_ptr(), large.as_ptr());
    buffer.push(pattern(6000, 2000).into());
    assert_eq!(buffer.chunks.len(), 3);
    assert_eq!(sent_bytes(&buffer, 4990, 6010), pattern(4990, 1020));
}

#[test]
fn copies_are_gathered_as_other_writes_are() {
    let lengths = [3, 1500, 20, 1023, 1024, 4000, 0, 5, 900, 900];
    let (mut copied, mut given) = (SendBuffer::default(), SendBuffer::default());
    for length in lengths {
        let data = pattern(copied.end(), length);
        copied.push_copy(&data);
        given.push(data.into());
    }
    assert_eq!(copied.end(), lengths.iter().sum::<usize>() as u64);
    assert_eq!(format!("{copied:?}"), format!("{given:?}"));
    assert_eq!(sent_bytes(&copied, 0, copied.end()), pattern(0, copied.end() as usize));
    copied.empty();
    assert_eq!(format!("{copied:?}"), format!("{:?}", SendBuffer::default()));
}

#[test]
fn memory_of_an_acknowledged_prefix_is_released() {
    let mut buffer = SendBuffer::default();
    for index in 0..10 {
        buffer.push(pattern(index * 2000, 2000).into());
    }
    buffer.sent(0, 20_000);
    assert_eq!(buffer.acked(4000, 8000), 0, "a gap before it: still held");
    assert_eq!(buffer.chunks.len(), 10);
    assert_eq!(buffer.acked(0, 4000), 8000);
    assert_eq!(buffer.chunks.len(), 6);
    assert_eq!(buffer.acked(8000, 20_000), 12_000);
    assert_eq!((buffer.chunks.len(), buffer.held()), (0, 0));
}

#[test]
fn an_ack_after_all_takes_back_a_loss_and_a_loss_spares_what_was_acknowledged() {
    let mut buffer = SendBuffer::default();
    buffer.push(pattern(0, 10_000).into());
    buffer.sent(0, 10_000);
    buffer.acked(3000, 4000);
    buffer.lost(2000, 5000);
    assert_eq!(buffer.first_lost(), Some((2000, 3000)));
    buffer.acked(2000, 3000);
    assert_eq!(buffer.first_lost(), Some((4000, 5000)), "the spurious loss is taken back");
    buffer.acked(0, 6000);
    assert!(!buffer.has_lost());
    assert_eq!(buffer.held(), 4000);
}

/// All that is sent again, in order, in packets of 1,000 bytes at most.
fn resend(buffer: &mut SendBuffer) -> Vec<(u64, u64)> {
    let mut sent = Vec::new();
    while let Some((start, end)) = buffer.first_lost() {
        let end = end.min(start + 1000);
        buffer.sent(start, end);
        sent.push((start, end));
    }
    sent
}

#[test]
fn what_is_lost_for_the_second_time_leaves_twice_and_so_with_each_further_loss() {
    let mut buffer = SendBuffer::default();
    buffer.push(pattern(0, 100_000).into());
    buffer.sent(0, 100_000);
    let share = (1, 2);
    buffer.lost_maybe_again(3000, 5000, share);
    assert_eq!(resend(&mut buffer), [(3000, 4000), (4000, 5000)], "the first loss");
    buffer.acked(4000, 4500);
    buffer.lost_maybe_again(3500, 5500, share);
    // 5000..5500 is lost for the first time, 4000..4500 has arrived; copies come behind all that was lost.
    let again = [(3500, 4000), (4500, 5500), (3500, 4000), (4500, 5000)];
    assert_eq!(resend(&mut buffer), again);
    buffer.lost_maybe_again(3500, 4000, share);
    assert_eq!(resend(&mut buffer), [(3500, 4000); 2], "the third loss");
    buffer.lost_maybe_again(3500, 4000, share);
    buffer.sent(3500, 4000);
    buffer.acked(3500, 4000);
    assert!(!buffer.has_lost(), "no copy of what has arrived");
    buffer.lost(4500, 5000);
    assert_eq!(resend(&mut buffer), [(4500, 5000)], "once where nothing leaves twice");
}

#[test]
fn copies_of_what_is_lost_again_keep_to_their_share_of_what_was_sent() {
    let mut buffer = SendBuffer::default();
    buffer.push(pattern(0, 100_000).into());
    buffer.sent(0, 64_000);
    for round in 0..20 {
        buffer.lost_maybe_again(0, 500, (1, 64));
        // A sixty-fourth are two copies.
        let copies = usize::from((1..=2).contains(&round));
        assert_eq!(resend(&mut buffer).len(), 1 + copies, "round {round}");
    }
}

#[test]
fn acks_and_losses_of_what_was_never_sent_change_nothing() {
    let mut buffer = SendBuffer::default();
    buffer.push(pattern(0, 100).into());
    buffer.sent(0, 50);
    assert_eq!(buffer.acked(60, 90), 0);
    buffer.lost(60, 90);
    assert_eq!((buffer.held(), buffer.has_lost()), (100, false));
    assert_eq!(buffer.acked(0, u64::MAX), 50);
}

/// What becomes of one byte.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fate {
    Unsent,
    InFlight,
    Lost,
    Acked,
}

#[derive(Debug, Clone)]
enum Step {
    Write(usize),
    /// Sends new data, so much at most.
    Send(usize),
    /// Sends lost data, so much at most.
    Repair(usize),
    /// The n-th packet sent (modulo their number) arrives or is lost, maybe again.
    Ack(usize),
    Lose(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => prop_oneof![1usize..200, 900usize..3000].prop_map(Step::Write),
        4 => (1usize..1500).prop_map(Step::Send),
        3 => (1usize..1500).prop_map(Step::Repair),
        3 => any::<usize>().prop_map(Step::Ack),
        3 => any::<usize>().prop_map(Step::Lose),
    ]
}

proptest! {
    /// Random writes, sends, losses, acks (also of packets declared lost): byte for byte as the model has it.
    #[test]
    fn agrees_with_a_model_of_every_byte(steps in prop::collection::vec(step(), 1..200)) {
        let mut buffer = SendBuffer::default();
        let mut fates: Vec<Fate> = Vec::new();
        let mut packets: Vec<(u64, u64)> = Vec::new();
        let mut released = 0;
        for step in steps {
            match step {
                Step::Write(length) => {
                    buffer.push(pattern(fates.len() as u64, length).into());
                    fates.resize(fates.len() + length, Fate::Unsent);
                }
                Step::Send(most) => {
                    let (start, end) = (buffer.next(), buffer.end().min(buffer.next() + most as u64));
                    prop_assert_eq!(sent_bytes(&buffer, start, end), pattern(start, (end - start) as usize));
                    buffer.sent(start, end);
                    fates[start as usize..end as usize].fill(Fate::InFlight);
                    packets.push((start, end));
                }
                Step::Repair(most) => {
                    let expected = fates.iter().position(|fate| *fate == Fate::Lost).map(|start| {
                        let run = fates[start..].iter().take_while(|fate| **fate == Fate::Lost).count();
                        (start as u64, (start + run) as u64)
                    });
                    prop_assert_eq!(buffer.first_lost(), expected);
                    if let Some((start, end)) = expected {
                        let end = end.min(start + most as u64);
                        prop_assert_eq!(sent_bytes(&buffer, start, end), pattern(start, (end - start) as usize));
                        buffer.sent(start, end);
                        fates[start as usize..end as usize].fill(Fate::InFlight);
                        packets.push((start, end));
                    }
                }
                Step::Ack(index) if !packets.is_empty() => {
                    let (start, end) = packets[index % packets.len()];
                    released += buffer.acked(start, end);
                    fates[start as usize..end as usize].fill(Fate::Acked);
                }
                Step::Lose(index) if !packets.is_empty() => {
                    let (start, end) = packets[index % packets.len()];
                    buffer.lost(start, end);
                    for fate in &mut fates[start as usize..end as usize] {
                        if *fate != Fate::Acked {
                            *fate = Fate::Lost;
                        }
                    }
                }
                Step::Ack(_) | Step::Lose(_) => {}
            }
            let prefix = fates.iter().take_while(|fate| **fate == Fate::Acked).count() as u64;
            prop_assert_eq!(released, prefix);
            prop_assert_eq!(buffer.held(), fates.len() as u64 - prefix);
            prop_assert_eq!(buffer.has_lost(), fates.contains(&Fate::Lost));
            let chunk_start = buffer.chunks.front().map_or(buffer.end, |(offset, _)| *offset);
            prop_assert!(chunk_start >= prefix.saturating_sub(4096), "an acknowledged chunk is still held");
        }
    }
}

#[test]
fn a_few_bytes_do_not_keep_the_memory_that_they_were_cut_from() {
    let arena = Bytes::from(vec![1; 65_536]);
    let mut buffer = SendBuffer::default();
    buffer.push(arena.slice(..COALESCE_BELOW - 1));
    assert!(arena.is_unique());
    buffer.push(arena.slice(..1));
    assert!(arena.is_unique());
    buffer.push(arena.slice(..COALESCE_BELOW));
    assert!(!arena.is_unique(), "what is not small is not copied");
}
