//! Windows in these tests are in datagrams; the curve is computed here once more, from the RFC's text.

use std::fmt::Write as _;

use posthaste_policy::{Adjustment, Congestion, PathLimits, Phase};
use posthaste_units::ByteCount;

use super::*;
use crate::slow_start::classic::Classic;
use crate::testing::{DATAGRAM, Path, datagrams, milliseconds};

fn controller(initial: u64) -> Cubic {
    with(Parameters::default(), initial)
}

fn with(parameters: Parameters, initial: u64) -> Cubic {
    let limits = PathLimits { max_datagram_size: DATAGRAM, initial_window: DATAGRAM * initial, seed: 1 };
    LossBased::new(CubicIncrease::new(parameters), Box::new(Classic), limits)
}

/// Puts the controller into avoidance where it stands, as an exit of slow start without a loss does.
fn leave_slow_start(controller: &mut Cubic) {
    let threshold = Some(controller.window());
    controller.adjust(&Adjustment { slow_start_threshold: threshold, ..Adjustment::default() });
}

/// RFC 9438 figure 1, with K from its figure 2.
fn rfc_curve(peak: f64, epoch_window: f64, t: f64) -> f64 {
    let k = libm::cbrt((peak - epoch_window) / 0.4);
    0.4 * (t - k) * (t - k) * (t - k) + peak
}

#[test]
fn after_a_loss_the_window_follows_the_rfcs_curve() {
    let mut cubic = controller(1000);
    let mut path = Path::new(milliseconds(100));
    path.lose(&mut cubic, 1);
    assert!((datagrams(cubic.window()) - 700.0).abs() < 0.01);

    let mut table = String::from("   t s  window   W(t)\n");
    for round in 0..180u32 {
        // The stage begins with the first ack of a packet sent after the loss: that is t = 0.
        path.round_trip(&mut cubic);
        let t = f64::from(round) * 0.1;
        let window = datagrams(cubic.window());
        let (now, ahead) = (rfc_curve(1000.0, 700.0, t), rfc_curve(1000.0, 700.0, t + 0.1));
        assert!((now - 0.1..=ahead + 0.1).contains(&window), "t = {t}: {window} outside {now}..{ahead}");
        if round % 10 == 0 {
            writeln!(table, "{t:6.1} {window:7.1} {now:6.1}").unwrap();
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn one_ack_moves_the_window_by_the_rfcs_step_exactly() {
    let mut increase =
        CubicIncrease { peak: Some(1000.0), prior: 1000.0, ..CubicIncrease::new(Parameters::default()) };
    let growth = |now, window| Growth {
        now: Time::from_nanos(now),
        acked: 2.0,
        window,
        smoothed_rtt: milliseconds(50),
        share: 1.0,
        datagram: 1.0,
    };
    // t = 0: the curve has not left the window yet, so Reno's estimate is ahead of it and counts.
    let first = increase.on_ack(&growth(0, 700.0));
    assert!((first - (700.0 + 0.9 / 1.7 * 2.0 / 700.0)).abs() < 1e-9, "{first}");
    // t = 0.5 s: K = cbrt(300 / 0.4) = 9.0856, so the curve is at 746.9 and in 50 ms at 751.3.
    let early = increase.on_ack(&growth(500_000_000, 720.0));
    let expected = 720.0 + (rfc_curve(1000.0, 700.0, 0.55) - 720.0) * 2.0 / 720.0;
    assert!((early - expected).abs() < 1e-9, "{early} {expected}");
    // t = 2 s, past some acks that this test leaves out.
    let second = increase.on_ack(&growth(2_000_000_000, 850.0));
    let expected = 850.0 + (rfc_curve(1000.0, 700.0, 2.05) - 850.0) * 2.0 / 850.0;
    assert!((second - expected).abs() < 1e-9, "{second} {expected}");
}

#[test]
fn the_window_grows_by_half_a_round_trip_at_most() {
    let mut cubic = controller(100);
    leave_slow_start(&mut cubic);
    let mut path = Path::new(milliseconds(100));
    path.round_trip(&mut cubic);
    // The path is silent for a minute, data in flight all the while: the curve is far above.
    let flight = path.send(&mut cubic, 10);
    path.now += Duration::from_secs(60);
    let before = datagrams(cubic.window());
    path.acknowledge(&mut cubic, &flight[..2], false);
    let gained = datagrams(cubic.window()) - before;
    // Two datagrams of the window's hundred earn two hundredths of the half.
    assert!((gained - 0.5 * before * 2.0 / before).abs() < 1e-2, "{gained}");
    let before = datagrams(cubic.window());
    path.round_trip(&mut cubic);
    assert!(datagrams(cubic.window()) <= before * 1.5);
}

#[test]
fn fast_convergence_lowers_the_peak_but_not_the_window() {
    let mut increase = CubicIncrease::new(Parameters::default());
    assert!((increase.reduce(1000.0) - 700.0).abs() < 1e-9);
    assert_eq!(increase.peak, Some(1000.0));
    // A loss below the last peak: 70 % of the window is kept, not 59.5 %; the peak to come is 85 %.
    assert!((increase.reduce(800.0) - 560.0).abs() < 1e-9);
    assert!((increase.peak.unwrap() - 680.0).abs() < 1e-9);
    // A loss above the last (lowered) peak: somebody has left.
    increase.reduce(700.0);
    assert_eq!(increase.peak, Some(700.0));

    let mut without = CubicIncrease::new(Parameters { fast_convergence: false, ..Parameters::default() });
    without.reduce(1000.0);
    without.reduce(800.0);
    assert_eq!(without.peak, Some(800.0));
}

#[test]
fn fast_convergence_shows_in_the_plateau() {
    let mut cubic = controller(1000);
    let mut path = Path::new(milliseconds(100));
    path.lose(&mut cubic, 1);
    path.round_trip(&mut cubic);
    let second = datagrams(cubic.window());
    path.lose(&mut cubic, 1);
    let epoch = datagrams(cubic.window());
    assert!((epoch - 0.7 * second).abs() < 0.01);
    let plateau = second * 0.85;
    for round in 0..70 {
        path.round_trip(&mut cubic);
        let (t, window) = (f64::from(round) * 0.1, datagrams(cubic.window()));
        let (now, ahead) = (rfc_curve(plateau, epoch, t), rfc_curve(plateau, epoch, t + 0.1));
        assert!((now - 0.1..=ahead + 0.1).contains(&window), "t = {t}: {window} outside {now}..{ahead}");
    }
}

#[test]
fn a_short_path_is_shared_as_reno_shares_it() {
    let mut cubic = controller(20);
    let mut path = Path::new(milliseconds(10));
    path.lose(&mut cubic, 1);
    // Section 4.3: 3 (1 - 0.7) / (1 + 0.7) datagrams a round trip until the 20 are regained, then one.
    let mut expected: f64 = 14.0;
    for round in 0..30 {
        expected += if expected < 20.0 { 0.9 / 1.7 } else { 1.0 };
        path.round_trip(&mut cubic);
        let window = datagrams(cubic.window());
        assert!((window - expected).abs() < 0.04 * expected, "round {round}: {window} {expected}");
    }
    assert!((Parameters::default().alpha(1) - 0.529).abs() < 5e-4);
}

#[test]
fn an_exit_without_a_loss_starts_on_the_plateau() {
    // Section 4.8: K = 0 and W_max is the window, so growth is slow first and cubic later.
    let mut cubic = controller(2000);
    leave_slow_start(&mut cubic);
    let mut path = Path::new(milliseconds(200));
    for round in 0..60 {
        path.round_trip(&mut cubic);
        let (t, window) = (f64::from(round) * 0.2, datagrams(cubic.window()));
        // Reno's datagram a round trip governs until the cube overtakes it.
        let reno = 2000.0 + f64::from(round) + 1.0;
        let curve = |t: f64| 2000.0 + 0.4 * t * t * t;
        assert!(window >= curve(t).max(2000.0) - 0.5, "t = {t}: {window}");
        assert!(window <= curve(t + 0.2).max(reno) + 0.5, "t = {t}: {window}");
    }
}

/// Two controllers in the same state, one of which then has `pause` done to it; both must go on alike.
fn goes_on_as_before(pause: impl FnOnce(&mut Path, &mut Cubic)) {
    let start = || {
        let (mut cubic, mut path) = (controller(1000), Path::new(milliseconds(100)));
        path.lose(&mut cubic, 1);
        (0..20).for_each(|_| path.round_trip(&mut cubic));
        (cubic, path)
    };
    let (mut busy, mut busy_path) = start();
    let (mut paused, mut paused_path) = start();
    let before = paused.window();
    pause(&mut paused_path, &mut paused);
    assert_eq!(paused.window(), before, "a window that is not used does not grow");
    for round in 0..100 {
        busy_path.round_trip(&mut busy);
        paused_path.round_trip(&mut paused);
        assert_eq!(busy.window(), paused.window(), "round {round} after the pause");
    }
}

#[test]
fn idle_time_does_not_count() {
    goes_on_as_before(|path, _| path.now += Duration::from_secs(300));
}

#[test]
fn application_limited_time_does_not_count() {
    goes_on_as_before(|path, cubic| {
        // Something is always in flight, so that only the acks tell.
        path.others_in_flight = DATAGRAM;
        (0..600).for_each(|_| path.limited_round_trip(cubic));
    });
}

#[test]
fn recovery_time_does_not_count() {
    let (mut cubic, mut path) = (controller(1000), Path::new(milliseconds(100)));
    let flight = path.send(&mut cubic, 100);
    path.lose(&mut cubic, 1);
    // The flight of before the loss is acknowledged late: no growth, and the stage has not begun.
    path.now += Duration::from_secs(20);
    path.acknowledge(&mut cubic, &flight, false);
    assert_eq!(cubic.state().phase, Phase::Recovery);
    path.round_trip(&mut cubic);
    // With 20 s on the clock the curve would be at 1,520 already.
    assert!((700.0..710.0).contains(&datagrams(cubic.window())), "{}", datagrams(cubic.window()));
}

#[test]
fn persistent_congestion_regrows_to_the_threshold_and_starts_on_the_plateau() {
    let (mut cubic, mut path) = (controller(1000), Path::new(milliseconds(100)));
    path.lose(&mut cubic, 1);
    cubic.on_persistent_congestion(path.now);
    assert_eq!(cubic.window(), DATAGRAM * 2);
    assert_eq!(cubic.state().slow_start_threshold, Some(DATAGRAM * 700));
    let mut windows = Vec::new();
    for _ in 0..12 {
        path.round_trip(&mut cubic);
        windows.push(cubic.window().get() / DATAGRAM.get());
    }
    // Doubling up to 700; from there 0.4 t^3 and Reno's half datagram, not the curve back to 1,000.
    assert_eq!(windows[..8], [4, 8, 16, 32, 64, 128, 256, 512]);
    assert!((700..=703).contains(&windows[11]), "{windows:?}");
}

#[test]
fn other_constants_reach_the_controller() {
    let parameters = Parameters { beta: 0.85, c: 0.8, ..Parameters::default() };
    let (mut cubic, mut path) = (with(parameters, 1000), Path::new(milliseconds(100)));
    path.lose(&mut cubic, 1);
    assert_eq!(cubic.window(), ByteCount::new(850 * 1200));
    // K = cbrt(150 / 0.8) = 5.72 s.
    (0..=57).for_each(|_| path.round_trip(&mut cubic));
    assert!((datagrams(cubic.window()) - 1000.0).abs() < 0.5, "{}", datagrams(cubic.window()));
}

#[test]
fn several_flows_have_the_published_constants() {
    let parameters = |flows, variant| Parameters { flows, variant, ..Parameters::default() };
    // Flows, factor on loss, Reno's increase, fast convergence: the table of the deployed emulation.
    let table = [(1, 0.70, 0.529, 0.85), (2, 0.85, 0.973, 0.925), (3, 0.90, 1.421, 0.95)];
    for (flows, beta, alpha, convergence) in table {
        let fixed = parameters(Flows::Fixed(flows), Variant::Safe);
        let live = parameters(Flows::Live, Variant::Safe);
        // Of live connections each stands for two at most.
        let live = if flows <= MOST_LIVE_FLOWS { (live, flows) } else { (fixed, flows) };
        for (parameters, connections) in [(fixed, 9), live] {
            assert!((parameters.beta(connections) - beta).abs() < 1e-9, "{flows}");
            assert!((parameters.alpha(connections) - alpha).abs() < 5e-4, "{flows}");
            assert!((parameters.convergence_factor(connections) - convergence).abs() < 1e-9, "{flows}");
        }
    }
    // ModQUIC: 1 - 0.3 / max(2, n), and 4.
    for (flows, beta) in [(1, 0.85), (2, 0.85), (3, 0.9), (64, 1.0 - 0.3 / 64.0)] {
        let paper = parameters(Flows::Fixed(flows), Variant::Paper);
        assert!((paper.beta(1) - beta).abs() < 1e-9, "{flows}");
        assert!((paper.alpha(1) - 4.0).abs() < 1e-9, "{flows}");
    }
}

#[test]
fn the_live_number_of_connections_is_followed() {
    let parameters = Parameters { flows: Flows::Live, ..Parameters::default() };
    // Eight connections of the safe form are sixteen flows, not 64.
    for (told, factor) in
        [(None, 0.7), (Some(0), 0.7), (Some(2), 0.85), (Some(8), 0.85), (Some(1_000_000), 0.85)]
    {
        let (mut cubic, mut path) = (with(parameters, 1000), Path::new(milliseconds(100)));
        if let Some(count) = told {
            cubic.on_connections(count);
        }
        path.lose(&mut cubic, 1);
        assert!((datagrams(cubic.window()) - 1000.0 * factor).abs() < 0.01, "{told:?}");
        // K comes from the same factor: cbrt(peak x (1 - factor) / 0.4).
        let k = libm::cbrt(1000.0 * (1.0 - factor) / 0.4);
        (0..=(k * 10.0) as u32).for_each(|_| path.round_trip(&mut cubic));
        assert!((datagrams(cubic.window()) - 1000.0).abs() < 3.0, "{told:?}: {}", datagrams(cubic.window()));
    }
}

#[test]
fn the_papers_form_follows_the_live_number_to_its_end() {
    let parameters = Parameters { flows: Flows::Live, variant: Variant::Paper, ..Parameters::default() };
    for (told, factor) in [(1, 0.85), (2, 0.85), (8, 1.0 - 0.3 / 8.0), (1_000_000, 1.0 - 0.3 / 64.0)] {
        assert!((parameters.beta(told) - factor).abs() < 1e-9, "{told}");
    }
}

#[test]
fn a_number_of_flows_is_read_and_checked() {
    let read = |text: &str| toml::from_str::<Parameters>(text);
    assert_eq!(read("flows = 64").unwrap().flows, Flows::Fixed(64));
    assert_eq!(read("flows = \"live\"").unwrap().flows, Flows::Live);
    for text in ["flows = 0", "flows = 65", "flows = -1", "flows = \"many\"", "flows = 1.5"] {
        let message = read(text).unwrap_err().to_string();
        assert!(message.contains("1 to 64"), "{text}: {message}");
    }
}
