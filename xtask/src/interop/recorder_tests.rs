//! What the recorder does to datagrams, without sockets.

use super::*;

fn state(plan: &Plan) -> State {
    let mut rng = Rng::from_test_seed(1);
    let (up, down) = (Draws::new(plan, &mut rng), Draws::new(plan, &mut rng));
    State { seen: Seen::default(), up, down, began: None, answered: None }
}

/// A Retry of version 1: no length field, so that everything is one packet.
fn retry() -> Vec<u8> {
    let mut bytes = vec![0xf0, 0, 0, 0, 1, 0, 0];
    bytes.extend([7; 40]);
    bytes
}

#[test]
fn harm_knows_handshake_from_transfer() {
    let plan = Plan { handshake: Harm { loss: Share(1, 1), corruption: Share(0, 0) }, ..Plan::default() };
    let mut state = state(&plan);
    let now = Instant::now();
    assert!(!state.judge(&plan, Way::Down, &mut retry(), now));
    assert!(state.judge(&plan, Way::Down, &mut [0x40; 50], now));
    assert_eq!((state.seen.down.handshake_lost, state.seen.down.transfer_lost), (1, 0));
}

#[test]
fn corruption_flips_one_bit() {
    let plan = Plan { transfer: Harm { loss: Share(0, 0), corruption: Share(1, 1) }, ..Plan::default() };
    let mut datagram = [0x40; 50];
    assert!(state(&plan).judge(&plan, Way::Up, &mut datagram, Instant::now()));
    assert_eq!(datagram.iter().map(|byte| (byte ^ 0x40).count_ones()).sum::<u32>(), 1);
}

#[test]
fn silence_comes_and_goes() {
    let span = Duration::from_secs(1);
    let plan = Plan { silence: Some((span * 5, span * 2)), ..Plan::default() };
    let mut state = state(&plan);
    let start = Instant::now();
    let passes: Vec<bool> =
        (0..9).map(|second| state.judge(&plan, Way::Up, &mut [0x40; 9], start + span * second)).collect();
    assert_eq!(passes, [true, true, true, true, true, false, false, true, true]);
    assert_eq!(state.seen.up.silenced, 2);
}

#[test]
fn a_client_is_muted_until_a_while_after_the_answer() {
    let span = Duration::from_secs(1);
    let plan = Plan { mute_client: Some(span), ..Plan::default() };
    let start = Instant::now();
    let passes = |answer: Option<u32>| -> Vec<bool> {
        let mut state = state(&plan);
        (0..7_u32)
            .map(|half| {
                let now = start + span / 2 * half;
                if answer == Some(half) {
                    state.judge(&plan, Way::Down, &mut [0x40; 9], now);
                }
                state.judge(&plan, Way::Up, &mut [0x40; 9], now)
            })
            .collect()
    };
    assert_eq!(passes(Some(1)), [true, false, false, true, true, true, true]);
    // A server that is late for its answer has to wait as well.
    assert_eq!(passes(Some(3)), [true, false, false, false, false, true, true]);
    assert_eq!(passes(None), [true, false, false, false, true, true, true]);
}

#[test]
fn packets_and_amplification_are_counted() {
    let plan = Plan::default();
    let mut state = state(&plan);
    let now = Instant::now();
    assert!(state.judge(&plan, Way::Up, &mut [0x40; 10], now));
    assert!(state.judge(&plan, Way::Down, &mut retry(), now));
    assert_eq!(state.seen.of_server(PacketType::Retry), 1);
    assert_eq!(state.seen.of_client(PacketType::Retry), 0);
    assert!((state.seen.amplification - 4.7).abs() < 1e-9);
}
