use posthaste_units::{ByteCount, Duration, Rate};
use serde::Deserialize;

use super::*;
use crate::jitter::Distribution;
use crate::queue::{CoDel, DropTail};
use crate::rate::NormalRate;

fn read(text: &str) -> PathSpec {
    PathSpec::from_toml(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn refused(text: &str) -> String {
    PathSpec::from_toml(text).expect_err(text).to_string()
}

fn mbit(rate: u64) -> Rate {
    Rate::from_bits_per_second(rate * 1_000_000)
}

#[test]
fn every_named_path_is_valid_and_says_what_it_is() {
    for name in PathSpec::names() {
        let spec = PathSpec::named(name).expect("a name of the list");
        spec.validate().unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(PathSpec::describe(name).is_some_and(|text| text.contains("Mbit/s")), "{name}");
        assert_eq!(name.parse(), Ok(spec.clone()));
        assert_eq!(read(&format!("base = \"{name}\"")), spec);
    }
    let error = "moon".parse::<PathSpec>().expect_err("no such path").to_string();
    assert_eq!(
        error,
        "there is no path `moon`; there are good, average, bad, lte, wifi, lte-trace, wifi-trace, lte-tti, wifi-aggregated, \
         wifi-jitter, thin-uplink, 5g-trace, starlink"
    );
    assert_eq!(PathSpec::describe("moon"), None);
}

#[test]
fn named_paths_have_the_published_figures() {
    let average = PathSpec::named("average").expect("a name");
    let down = average.down();
    assert_eq!((down.delay, down.loss), (Duration::from_millis(25), 0.02));
    let bottleneck = down.bottleneck.expect("a rate");
    assert_eq!(bottleneck, Bottleneck::new(mbit(100), ByteCount::new(625_000)));

    let lte = PathSpec::named("lte").expect("a name");
    assert_eq!(lte.rtt, Duration::from_micros(46_200));
    assert_eq!(lte.down_rate(), Some(Rate::from_bits_per_second(65_900_000)));
    assert_eq!(lte.up_rate(), Some(mbit(10)));
    let two_links = 1.0 - (1.0 - 0.0009) * (1.0 - 0.0005);
    assert!((lte.down_loss() - two_links).abs() < 1e-12);
    // Two independent directions make the round trip's deviation.
    let one_way = lte.jitter.expect("jitter").deviation.as_secs_f64();
    assert!(((2.0 * one_way * one_way).sqrt() - 0.003_46).abs() < 1e-8, "{one_way}");
    let Some(RateModel::Normal(up)) = lte.up_rate else { panic!("the uplink varies too") };
    assert!((up.deviation.as_bits_per_second() as f64 / 1e7 - 5.1 / 65.9).abs() < 1e-5);

    let wifi = PathSpec::named("wifi").expect("a name");
    assert_eq!(wifi.rtt, Duration::from_micros(35_500));
    assert_eq!(wifi.up_rate(), Some(Rate::from_bits_per_second(190_200_000)));
}

#[test]
fn synthetic_traces_are_usual_ones() {
    let lte = PathSpec::named("lte-trace").expect("a name");
    for rate in [lte.down_rate(), lte.up_rate()] {
        let rate = rate.expect("a rate").as_bits_per_second();
        assert!((4_000_000..=8_000_000).contains(&rate), "{rate}");
    }
    assert_ne!(lte.rate, lte.up_rate, "both directions have a trace of their own");
    let wifi = PathSpec::named("wifi-trace").expect("a name");
    let rate = wifi.down_rate().expect("a rate").as_bits_per_second();
    assert!((190_000_000..190_400_000).contains(&rate), "{rate}");
    assert_eq!(wifi.up_rate(), wifi.down_rate());
}

#[test]
fn every_key_reaches_its_place() {
    let spec = read(
        r#"
        rtt = "40ms"
        rate = "20mbit"
        rate-std = "2mbit"
        rate-interval = "50ms"
        up-rate = "5mbit"
        loss = "2%"
        up-loss = 0.01
        burst = 4
        jitter = { distribution = "pareto", std = "2ms", interval = "30ms", reorders = true }
        reorder = { probability = "10%", correlation = "25%", delay = "5ms" }
        duplicate = 0.001
        corrupt = "0.2%"
        queue = "100ms"
        discipline = "codel"
        codel-target = "10ms"
        codel-interval = "200ms"
        ecn = true
        header = "28B"
        "#,
    );
    let (down, up) = (spec.down(), spec.up());
    assert_eq!(down.delay, Duration::from_millis(20));
    assert_eq!((down.loss, up.loss), (0.0, 0.0));
    assert_eq!(down.burst_loss, GilbertElliott::from_mean(0.02, 4.0).ok());
    assert_eq!(up.burst_loss, GilbertElliott::from_mean(0.01, 4.0).ok());
    assert!((down.mean_loss() - spec.down_loss()).abs() < 1e-12);
    let jitter = down.jitter.expect("jitter");
    assert_eq!((jitter.distribution, jitter.may_reorder), (Distribution::Pareto, true));
    assert_eq!(jitter.interval, Duration::from_millis(30));
    assert_eq!(jitter.deviation, Duration::from_nanos(1_414_214));
    let late = Reordering { probability: 0.1, correlation: 0.25, extra_delay: Duration::from_millis(5) };
    assert_eq!(down.reordering, late);
    assert_eq!((down.duplication, down.corruption), (0.001, 0.002));
    assert_eq!(down.header, ByteCount::new(28));
    let interval = Duration::from_millis(50);
    let codel = CoDel { target: Duration::from_millis(10), interval: Duration::from_millis(200), ecn: true };
    let normal = |mean, deviation| RateModel::Normal(NormalRate { mean, deviation, interval });
    let bottleneck = down.bottleneck.expect("a rate");
    assert_eq!(bottleneck.rate, normal(mbit(20), mbit(2)));
    assert_eq!(bottleneck.queue, ByteCount::new(250_000));
    assert_eq!(bottleneck.discipline, Discipline::CoDel(codel));
    let up_bottleneck = up.bottleneck.expect("a rate");
    assert_eq!(up_bottleneck.rate, normal(mbit(5), Rate::from_bits_per_second(500_000)));
    assert_eq!(up_bottleneck.queue, ByteCount::new(62_500));
}

#[test]
fn a_base_keeps_what_is_not_given() {
    let spec = read("base = \"lte\"\nloss = \"1%\"\nrate = \"35.4mbit\"");
    assert_eq!(spec.rtt, Duration::from_micros(46_200));
    assert!((spec.down_loss() - 0.01).abs() < 1e-12);
    let Some(RateModel::Normal(normal)) = spec.rate else { panic!("the deviation stays") };
    assert_eq!(normal.mean, Rate::from_bits_per_second(35_400_000));
    assert_eq!(normal.deviation, Rate::from_bits_per_second(5_100_000));
    assert_eq!(spec.up_rate, PathSpec::named("lte").and_then(|lte| lte.up_rate));
    assert_eq!(spec.jitter, PathSpec::named("lte").and_then(|lte| lte.jitter));
    let still = read("base = \"lte\"\nrate-std = \"0bit\"");
    assert_eq!(still.rate, Some(RateModel::Constant(Rate::from_bits_per_second(65_900_000))));
    assert_eq!(read(""), PathSpec::default());
}

#[test]
fn queues_are_sized_in_three_ways() {
    let queue = |text: &str| {
        let spec = read(&format!("rtt = \"20ms\"\nrate = \"10mbit\"\nqueue = \"{text}\""));
        spec.down().bottleneck.expect("a rate").queue.get()
    };
    assert_eq!(queue("1bdp"), 25_000);
    assert_eq!(queue("0.5 BDP"), 12_500);
    assert_eq!(queue("0.01bdp"), 1_500, "a full packet at least");
    assert_eq!(queue("64kB"), 64_000);
    assert_eq!(queue("100ms"), 125_000);
    assert!(refused("queue = \"much\"").contains("1bdp"));
    let marked = read("rate = \"1mbit\"\nmark-above = \"30kB\"\necn = true");
    let threshold = DropTail { mark_above: Some(ByteCount::new(30_000)) };
    assert_eq!(marked.discipline, Discipline::DropTail(threshold));
}

#[test]
fn mistakes_are_named_with_their_line_and_the_valid_choices() {
    let unknown = refused("rtt = \"1ms\"\nlos = 0.1");
    assert!(
        unknown.starts_with("line 2: ") && unknown.contains("`los`") && unknown.contains("`loss`"),
        "{unknown}"
    );
    let cases: [(&str, &str, &str); 25] = [
        ("\n\nbase = \"moon\"", "line 3", "good, average"),
        ("rtt = 20", "line 1", "38ms"),
        ("rtt = \"20 parsecs\"", "line 1", "ms"),
        ("\nloss = 2", "line 2", "\"2%\""),
        ("loss = \"two\"", "line 1", "0 to 1"),
        ("loss = 0.9\n\nburst = 2", "line 3", "longer bursts"),
        ("burst = 0.5", "line 1", "1 packet or more"),
        ("discipline = \"red\"", "line 1", "`drop-tail` or `codel`"),
        ("jitter = { std = \"1ms\", distribution = \"cauchy\" }", "line 1", "`normal`, `pareto`, `wifi`"),
        ("jitter = { mean = \"1ms\" }", "line 1", "`std`"),
        ("rate-std = \"1mbit\"", "line 1", "needs rate"),
        ("rate = \"1mbit\"\nrate-std = \"1mbit\"", "line 2", "half its mean"),
        ("rate = \"0mbit\"", "line 1", "above zero"),
        ("rate = \"1mbit\"\ntrace = \"1\"", "line 2", "instead of rate"),
        ("rtt = \"1ms\"\ntrace = \"\"\"1\nx\n\"\"\"", "line 2", "trace line 2"),
        ("trace-file = \"x\"", "line 1", "no files"),
        ("codel-target = \"1ms\"", "line 1", "discipline"),
        ("rate = \"1mbit\"\necn = true", "line 2", "mark-above"),
        ("burst = 2\nburst-time = \"1ms\"", "line 2", "instead of burst"),
        ("\naggregate = { packets = 0 }", "line 2", "a packet at least"),
        ("tti = \"0ms\"", "line 1", "above zero"),
        ("harq = { probability = \"10%\", delay = \"8ms\" }", "line 1", "needs tti"),
        ("pauses = { every = \"40ms\", mean = \"40ms\" }", "line 1", "below every"),
        ("handover = { interval = \"1s\", gap = \"2s\" }", "line 1", "above its gap"),
        ("trace-start = \"soon\"", "line 1", "`seed` or a time"),
    ];
    for (text, line, choice) in cases {
        let error = refused(text);
        assert!(error.starts_with(line) && error.contains(choice), "{text:?}: {error}");
    }
    assert!(refused("reorder = { probability = 0.1, delay = \"0ms\" }").contains("extra delay"));
    assert!(refused("rate = ").starts_with("line 1"));
}

#[test]
fn a_draw_of_jitter_holds_unless_packets_may_overtake_each_other() {
    let interval =
        |more: &str| read(&format!("jitter = {{ std = \"2ms\"{more} }}")).jitter.expect("jitter").interval;
    assert_eq!(interval(""), Duration::from_millis(100));
    assert_eq!(interval(", reorders = true"), Duration::ZERO);
    assert_eq!(interval(", interval = \"0ms\""), Duration::ZERO);
}

#[test]
fn it_can_be_part_of_any_tree_of_values() {
    #[derive(Deserialize)]
    struct Holder {
        path: PathSpec,
        other: PathSpec,
    }
    // Tagged enums buffer what they read.
    #[derive(Deserialize)]
    #[serde(tag = "kind", rename_all = "kebab-case")]
    enum Network {
        Simple { path: PathSpec },
    }
    let text = "path = \"bad\"\n[other]\nbase = \"bad\"\nloss = 0.5";
    let mut value: toml::Value = toml::from_str(text).expect("TOML");
    value["other"]["loss"] = "3%".into();
    let holder: Holder = value.try_into().expect("two paths");
    assert_eq!(holder.path, PathSpec::named("bad").expect("a name"));
    assert_eq!(holder.other, PathSpec { loss: 0.03, ..holder.path });
    let text =
        "kind = \"simple\"\npath = { base = \"bad\", burst = 3, loss = \"3%\", jitter = { std = \"1ms\" } }";
    let Network::Simple { path } = toml::from_str(text).expect("a network");
    assert_eq!((path.burst, path.rtt), (Some(3.0), Duration::from_millis(188)));
    let value: toml::Value = toml::from_str("path = \"moon\"\nother = \"bad\"").expect("TOML");
    assert!(value.try_into::<Holder>().err().is_some_and(|error| error.to_string().contains("average")));
}

#[test]
fn what_is_written_is_read_back() {
    let mut specs: Vec<PathSpec> =
        PathSpec::names().iter().filter_map(|name| PathSpec::named(name)).collect();
    specs.push(PathSpec::default());
    specs.push(read(
        "trace = \"0\\n3\\n3\\n\"\nup-trace = \"0,1000000\\n0.25,8000000\\n\"\ndiscipline = \"codel\"",
    ));
    specs
        .push(read("rate = \"9mbit\"\nup-rate = \"1mbit\"\nup-rate-std = \"0.1mbit\"\nmark-above = \"9kB\""));
    specs.push(read(RADIO));
    specs.push(read("trace-start = \"7s\"\ntrace = \"1\""));
    specs.push(read("base = \"lte\"\nreorder = { probability = 0.1, delay = \"1ms\" }\nburst = 3.5"));
    for spec in specs {
        let text = toml::to_string(&spec).expect("TOML");
        assert_eq!(read(&text), spec, "{text}");
    }
}

#[test]
fn traces_come_from_files_through_the_caller() {
    let text = "[[links]]\nrtt = \"1ms\"\ntrace-file = \"radio.trace\"\nup-trace-file = \"up.csv\"";
    let mut value: toml::Value = toml::from_str(text).expect("TOML");
    let mut read_file = |name: &str| match name {
        "radio.trace" => Ok("1\n2\n".to_owned()),
        "up.csv" => Ok("0,12000\n".to_owned()),
        _ => Err(SpecError { line: None, message: name.to_owned() }),
    };
    inline_traces(&mut value, &mut read_file).expect("both files are there");
    let link: PathSpec = value["links"][0].clone().try_into().expect("a path");
    assert_eq!(link.down_rate(), Some(mbit(12)));
    assert_eq!(link.up_rate(), Some(Rate::from_bits_per_second(12_000)));
    let mut value: toml::Value = toml::from_str("trace-file = \"none\"").expect("TOML");
    assert_eq!(inline_traces(&mut value, &mut read_file).expect_err("no such file").message, "none");
    let mut value: toml::Value = toml::from_str("trace-file = 3").expect("TOML");
    assert!(inline_traces(&mut value, &mut read_file).is_err());
}

#[test]
fn a_path_is_one_line_for_people() {
    let line = |name: &str| PathSpec::named(name).expect("a name").summary();
    assert_eq!(line("average"), "100 Mbit/s, RTT 50 ms, loss 2 %, queue 625 kB drop-tail");
    assert_eq!(
        line("lte"),
        "65.9 Mbit/s (std 5.1 Mbit/s) down, 10 Mbit/s (std 774 kbit/s) up, RTT 46.2 ms (std 3.46 ms, normal), \
         loss 0.14 %, queue 381 kB drop-tail"
    );
    assert_eq!(PathSpec::default().summary(), "unlimited rate, RTT 0 ms, loss 0 %");
    let rich = "trace = \"1\"\nloss = 0.1\nup-loss = 0\nburst = 2\nreorder = { probability = 0.1, delay = \"5ms\" }\n\
                duplicate = 0.01\ncorrupt = 0.02\ndiscipline = \"codel\"\necn = true\nqueue = \"64kB\"";
    assert_eq!(
        read(rich).summary(),
        "trace of 12 Mbit/s, RTT 0 ms, loss 10 % down, 0 % up in bursts of 2, 10 % reordered by 5 ms, \
         1 % duplicated, 2 % corrupted, queue 64 kB CoDel with ECN"
    );
}

/// Everything that radio links and their receivers do with time.
const RADIO: &str = r#"
    rate = "10mbit"
    loss = "1%"
    burst-time = "20ms"
    aggregate = { packets = 32 }
    tti = "1ms"
    harq = { probability = "10%", delay = "8ms" }
    handover = { interval = "15s", delay = "50ms", gap = "60ms" }
    batch = "2ms"
    pauses = { every = "200ms", mean = "40ms", packet = "30us" }
"#;

#[test]
fn what_radio_links_do_reaches_its_place() {
    let spec = read(RADIO);
    let (down, up) = (spec.down(), spec.up());
    let millis = Duration::from_millis;
    assert_eq!(down.loss_periods, Some(LossPeriods { share: 0.01, mean: millis(20) }));
    assert_eq!((down.loss, down.burst_loss), (0.0, None));
    assert!((down.mean_loss() - 0.01).abs() < 1e-12);
    assert_eq!(down.aggregation, Some(Aggregation { packets: 32, time: millis(4) }));
    assert_eq!(
        down.frames,
        Some(RadioFrames { interval: millis(1), failure: 0.1, repeat: millis(8) }),
        "each way"
    );
    let handover = Handover { interval: Duration::from_secs(15), delay: millis(25), gap: millis(60) };
    assert_eq!((down.handover, up.handover), (Some(handover), Some(handover)), "half of the delay each way");
    assert_eq!((down.batch, up.batch), (millis(2), Duration::ZERO), "only the client takes in batches");
    let pauses = Pauses { every: millis(200), mean: millis(40), packet: Duration::from_micros(30) };
    assert_eq!((down.pauses, up.pauses), (Some(pauses), None), "only the client pauses");
    assert_eq!((up.aggregation, up.frames), (down.aggregation, down.frames));
    assert_eq!(
        spec.summary(),
        "10 Mbit/s, RTT 0 ms, loss 1 % in bursts of 20 ms, up to 32 packets or 4 ms at once, blocks of 1 ms, 10 % of \
         them 8 ms late, another route each 15 s (up to 50 ms more, a gap of 60 ms), taken in each 2 ms, a client that \
         pauses for 40 ms each 200 ms and takes 0.03 ms for a packet, queue 1.5 kB \
         drop-tail"
    );
    // One kind of bursts takes the place of the other.
    let packets = read("base = \"starlink\"\nburst = 3");
    assert_eq!((packets.burst, packets.burst_time), (Some(3.0), None));
}

#[test]
fn recordings_begin_where_the_seed_says_or_where_the_path_does() {
    let trace = PathSpec::named("lte-trace").expect("a name");
    assert!(trace.begins_anywhere() && trace.start().is_zero());
    let (one, same, other) = (trace.started(1), trace.started(1), trace.started(2));
    assert_eq!(one, same);
    assert_ne!(one.start(), other.start());
    assert_eq!(one.down().start, one.up().start, "both directions were recorded together");
    assert!(!one.begins_anywhere());
    let fixed = read("base = \"lte-trace\"\ntrace-start = \"40s\"");
    assert!(!fixed.begins_anywhere());
    assert_eq!(fixed.started(1).start(), Duration::from_secs(40));
    assert!(!PathSpec::named("average").expect("a name").begins_anywhere());
}

#[test]
fn an_outage_is_read_shown_and_written_and_concerns_both_ways() {
    let path = read("base = \"average\"\noutage = { start = \"3s\", length = \"5s\" }");
    let outage = Outage { start: Duration::from_secs(3), length: Duration::from_secs(5) };
    assert_eq!((path.down().outage, path.up().outage), (Some(outage), Some(outage)));
    assert!(path.to_string().contains("nothing from 3 s on for 5 s"), "{path}");
    assert_eq!(read(&toml::to_string(&path).unwrap()), path);
    let error = PathSpec::from_toml("outage = { start = \"3s\" }").unwrap_err();
    assert!(error.to_string().contains("length"), "{error}");
}

#[test]
fn absurd_rates_work_or_are_refused_with_a_reason() {
    // A terabit a second, alone and with what is reckoned from a rate: queues, marks, deviations.
    let terabit = Rate::from_bits_per_second(1_000_000_000_000);
    for more in [
        "",
        "rtt = \"1s\"\nqueue = \"1bdp\"",
        "rtt = \"10s\"\nqueue = \"1000000bdp\"",
        "rate-std = \"1gbit\"",
    ] {
        let spec = read(&format!("rate = \"1000gbit\"\nup-rate = \"1000gbit\"\n{more}"));
        spec.validate().unwrap_or_else(|error| panic!("{more}: {error}"));
        assert_eq!((spec.down_rate(), spec.up_rate()), (Some(terabit), Some(terabit)), "{more}");
        assert!(
            spec.summary().contains("1000 Gbit/s") || spec.summary().contains("1 Tbit/s"),
            "{}",
            spec.summary()
        );
        assert_eq!(read(&toml::to_string(&spec).expect("it can be written")), spec, "{more}");
    }
    for (text, reason) in [
        ("rate = \"1tbit\"", "Gbit"),
        ("rate = \"0gbit\"", "above zero"),
        ("rate = \"0.1bit\"", "above zero"),
        ("rate = \"1000gbit\"\nup-rate = \"0bit\"", "above zero"),
        ("rate = \"-1mbit\"", "Mbit"),
        ("rate = \"inf\"", "Mbit"),
    ] {
        let message = refused(text);
        assert!(message.starts_with("line ") && message.contains(reason), "{text}: {message}");
    }
}
