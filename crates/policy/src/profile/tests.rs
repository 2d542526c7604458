use posthaste_units::ByteCount;

use super::*;
use crate::Seam;

const DATAGRAM: ByteCount = ByteCount::new(1200);

fn invalid(text: &str) -> (Option<usize>, String) {
    match Profile::from_toml("mine", text) {
        Err(ProfileError::Invalid { name, line, message }) => {
            assert_eq!(name, "mine");
            (line, message)
        }
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn every_built_in_profile_builds_all_its_policies() {
    for name in Profile::names() {
        let profile = Profile::named(name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(profile.name(), *name);
        assert!(!profile.description().is_empty(), "{name}");
        let window = profile.start().initial_window(DATAGRAM);
        let limits = PathLimits { max_datagram_size: DATAGRAM, initial_window: window, seed: 1 };
        assert_eq!(profile.congestion(limits).window(), window);
        assert!(!profile.silence().holds_back());
        let (stream, connection) = (profile.stream_credit(), profile.connection_credit());
        assert!(connection.initial_window() * 2 >= stream.initial_window() * 3, "{name}: 1.5 times at least");
        assert_eq!(profile.ack_policy(profile.max_ack_delay()).deadline(), None);
    }
}

#[test]
fn the_default_is_the_first_and_what_an_empty_file_gives() {
    assert_eq!(Profile::names()[0], Profile::default().name());
    let named = Profile::named(Profile::default().name()).unwrap();
    assert_eq!(named.describe(), Profile::default().describe());
    assert_eq!(named.bundle, Profile::default().bundle);
    assert_eq!(Profile::from_toml("empty", "").unwrap().bundle, named.bundle);
}

#[test]
fn profiles_differ_in_what_their_names_say() {
    let policies = |name: &str| -> Vec<String> {
        let report = Profile::named(name).unwrap().describe();
        report.policies.iter().map(|policy| format!("{}={}", policy.seam.name(), policy.text.name)).collect()
    };
    let default = policies("cubic");
    let differences = |name| -> Vec<String> {
        policies(name).into_iter().filter(|policy| !default.contains(policy)).collect()
    };
    assert_eq!(differences("cubic-hybrid"), ["slow_start=hybrid"]);
    assert_eq!(differences("cubic-classic"), ["slow_start=classic"]);
    assert_eq!(differences("cubic-fixed"), ["credit.stream=fixed", "credit.connection=fixed"]);
    assert_eq!(differences("cubic-freeze"), ["silence=freeze"]);
    assert_eq!(differences("cubic-freeze-paper"), ["silence=freeze"]);
    assert_eq!(differences("quicming"), ["congestion=guaranteed"]);
    assert_eq!(differences("quicming-paper"), ["congestion=guaranteed"]);
    assert_eq!(differences("static"), ["credit.stream=fixed", "credit.connection=fixed"]);
    assert_eq!(differences("static-improved"), ["credit.stream=improved", "credit.connection=improved"]);
    for name in ["fast-autotune", "fast-autotune-paper"] {
        assert_eq!(differences(name), ["credit.stream=fast", "credit.connection=fast"]);
    }
    for name in ["modquic-cubic", "modquic-cubic-paper"] {
        let expected = ["silence=freeze", "credit.stream=on_ack", "credit.connection=on_ack"];
        assert_eq!(differences(name), expected);
    }
    for (name, congestion, group) in [
        ("mquic-bbr", "bbr3", Some("joint")),
        ("mquic-bbr-paper", "bbr1", Some("coordinated")),
        ("mquic-bbr-plain", "bbr1", None),
    ] {
        let mut expected = vec!["slow_start=own".to_owned(), format!("congestion={congestion}")];
        expected.extend(group.map(|group| format!("group={group}")));
        assert_eq!(differences(name), expected);
    }
    for (name, congestion) in [("modquic-bbr", "bbr3"), ("modquic-bbr-paper", "bbr1")] {
        let congestion = format!("congestion={congestion}");
        let expected = ["slow_start=own", &congestion, "credit.stream=on_ack", "credit.connection=on_ack"];
        assert_eq!(differences(name), expected);
    }
    assert_eq!(differences("standard"), ["slow_start=classic", "congestion=newreno"]);
    assert_eq!(differences("history"), ["start=careful"]);
    assert_eq!(differences("history-paper"), ["start=history"]);
    assert_eq!(differences("cubic-iw32"), Vec::<String>::new());
    assert_eq!(Profile::named("cubic-iw32").unwrap().start().initial_window(DATAGRAM), DATAGRAM * 32);
}

#[test]
fn an_unknown_name_is_refused_with_the_names_that_there_are() {
    let error = Profile::named("cubik").unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("there is no profile `cubik`; there are: {}", Profile::names().join(", "))
    );
}

#[test]
fn unknown_keys_and_policies_are_refused_with_their_line_and_what_is_valid() {
    for (text, line, parts) in [
        ("descripton = \"x\"", 1, ["descripton", "congestion"]),
        ("description = \"x\"\n\n[congestion.cubik]\n", 3, ["cubik", "`newreno`, `cubic`, `bbr1`"]),
        ("[slow_start.hystart]\n", 1, ["hystart", "`hystart_pp`"]),
        ("[congestion.cubic]\nbeta = 0.7\ngamma = 1.0\n", 3, ["gamma", "`fast_convergence`"]),
        ("[congestion.newreno]\nbeta = 0.7\n", 2, ["beta", "expected `recovery`"]),
        ("[credit.strean.fixed]\nwindow = 4096\n", 1, ["strean", "`connection`"]),
        ("[credit.stream.fixed]\n", 1, ["missing", "window"]),
        ("[congestion.cubic]\n[congestion.newreno]\n", 1, ["", ""]),
        ("[congestion\n", 1, ["", ""]),
    ] {
        let (at, message) = invalid(text);
        assert_eq!(at, Some(line), "{text}: {message}");
        assert!(parts.iter().all(|part| message.contains(part)), "{text}: {message}");
    }
}

#[test]
fn values_out_of_range_are_refused_with_their_line_and_the_range() {
    for (text, line, part) in [
        ("[start.initial]\ndatagrams = 1", 2, "from 2 to 1000"),
        ("[start.initial]\ndatagrams = -1", 2, "-1"),
        ("[slow_start.hystart_pp]\ngrowth_limit = 0", 2, "from 1 to"),
        ("[congestion.cubic]\nbeta = 0.0", 2, "above 0, below 1"),
        ("[congestion.cubic]\nbeta = 1.0", 2, "above 0, below 1"),
        ("[congestion.cubic]\nbeta = nan", 2, "above 0, below 1"),
        ("[congestion.cubic]\nc = 10.5", 2, "at most 10"),
        ("[credit.stream.on_ack]\ninitial = 4096\nmaximum = 4096\nstep = 1001", 4, "from 0 to 1000"),
        ("[credit.stream.on_ack]\ninitial = 4096\nmaximum = 4096\nfield = 8", 4, "from 26 to 1000"),
        ("[credit.stream.fast]\ninitial = 4096\nmaximum = 4096\nvariant = \"bold\"", 4, "`safe` or `paper`"),
        ("[credit.stream.fixed]\nwindow = 0", 2, "from 1 KiB to 4 GiB"),
        ("[credit.stream.fixed]\nwindow = -4096", 2, "never negative"),
        ("[credit.stream.fixed]\nwindow = \"8 GiB\"", 2, "from 1 KiB to 4 GiB"),
        ("[credit.stream.fixed]\nwindow = \"many\"", 2, "KiB"),
        ("[congestion.guaranteed]\nmin_rate = \"0bit\"", 2, "from 10.0 kbit/s to 100 Gbit/s"),
        ("[congestion.guaranteed]\nmin_rate = \"1000gbit\"", 2, "from 10.0 kbit/s to 100 Gbit/s"),
        ("[congestion.guaranteed]\nmin_rate = \"1tbit\"", 2, "Gbit"),
        ("[congestion.guaranteed]\nmin_rate = 1", 2, "string"),
        ("[congestion.guaranteed]\nacks = 0", 2, "from 1 to 1000"),
        ("[congestion.guaranteed]\nvariant = \"brave\"", 2, "`safe` or `paper`"),
        ("[silence.freeze]\nvariant = \"brave\"", 2, "`safe` or `paper`"),
        ("[ack.standard]\nmax_ack_delay = \"25\"", 2, "\"25 ms\""),
        ("[ack.standard]\nmax_ack_delay = \"2000 ms\"", 2, "from 0 to 1000"),
        ("[start.careful]\nlifetime = \"0 min\"", 2, "from 1 to 10080"),
        ("[start.careful]\nlifetime = \"1 h\"", 2, "60 min"),
        ("[start.careful]\nmax_jump = 0", 2, "from 1 KiB to 4 GiB"),
        ("[start.history]\nipv4_prefix = 33", 2, "from 0 to 32"),
        ("[start.history]\nipv6_prefix = 129", 2, "from 0 to 128"),
        ("[start.history]\naverage = \"median\"", 2, "`moving` or `mean`"),
        ("[start.history]\nscope = \"world\"", 2, "`server` or `prefix`"),
        ("[ack.standard]\npackets = 0", 2, "from 1 to 256"),
    ] {
        let (at, message) = invalid(text);
        assert_eq!(at, Some(line), "{text}: {message}");
        assert!(message.contains(part), "{text}: {message}");
    }
}

#[test]
fn windows_that_contradict_each_other_are_refused() {
    let (line, message) = invalid("[credit.stream.autotune]\ninitial = \"2 MiB\"\nmaximum = \"1 MiB\"\n");
    assert_eq!(line, None);
    assert!(message.contains("credit.stream"), "{message}");
    let (_, message) = invalid("[credit.connection.fixed]\nwindow = \"512 KiB\"\n");
    assert!(message.contains("1.5 times"), "{message}");
}

#[test]
fn a_group_policy_that_has_no_use_for_the_controller_is_refused_with_what_has() {
    let (_, message) = invalid("[congestion.bbr3]\n[group.ensemble]\n");
    assert!(message.contains("[group.joint]"), "{message}");
    let (_, message) = invalid("[congestion.bbr1]\n[group.joint]\n");
    assert!(message.contains("[congestion.bbr3]"), "{message}");
    let (_, message) = invalid("[congestion.guaranteed]\nmin_rate = \"1 Mbit/s\"\n[group.joint]\n");
    assert!(message.contains("[group.ensemble]"), "{message}");
    let joint = Profile::from_toml("mine", "[congestion.bbr3]\n[group.joint]\n").unwrap();
    assert!(joint.group().is_some_and(|group| group.is_told_of_acks()));
}

#[test]
fn values_of_a_text_reach_the_policies() {
    let text = "[ack.standard]\nmax_ack_delay = \"5 ms\"\n[credit.stream.fixed]\nwindow = \"64 KiB\"\n";
    let profile = Profile::from_toml("mine", text).unwrap();
    assert_eq!(profile.max_ack_delay(), Duration::from_millis(5));
    assert_eq!(profile.stream_credit().window(), ByteCount::new(65_536));
}

#[test]
fn the_report_has_every_seam_once_and_no_empty_text() {
    for name in Profile::names() {
        let report = Profile::named(name).unwrap().describe();
        let seams: Vec<Seam> = report.policies.iter().map(|policy| policy.seam).collect();
        assert!(seams.is_sorted() && seams.len() == 8, "{seams:?}");
        for policy in &report.policies {
            let text = policy.text;
            assert!(
                ![text.name, text.claims, text.source, text.use_when, text.breaks_when].contains(&""),
                "{text:?}"
            );
        }
    }
}

#[test]
fn the_default_profiles_report() {
    insta::assert_snapshot!(serde_json::to_string_pretty(&Profile::default().describe()).unwrap());
}

#[test]
fn a_guaranteed_rate_is_part_of_the_name_and_of_the_policy() {
    let bare = Profile::named("quicming").unwrap();
    assert!(bare.lacks_min_rate());
    let message = bare.check_complete().unwrap_err().to_string();
    assert!(message.contains("--min-rate 1mbit") && message.contains("quicming@1mbit"), "{message}");
    for (given, shown) in [("1mbit", "1mbit"), ("1.5 Mbit/s", "1500kbit"), ("100gbit", "100gbit")] {
        let rate = Rate::from_str(given).unwrap();
        let profile = bare.with_min_rate(rate).unwrap();
        assert_eq!(profile.name(), format!("quicming@{shown}"));
        profile.check_complete().unwrap();
        let named = Profile::named(&format!("quicming@{shown}")).unwrap();
        assert_eq!(named.bundle, profile.bundle);
        // Another rate takes the first one's place.
        assert_eq!(profile.with_min_rate(rate).unwrap().name(), profile.name());
    }
    let pacing = |name: &str| {
        let limits = PathLimits { max_datagram_size: DATAGRAM, initial_window: DATAGRAM * 10, seed: 1 };
        let controller = Profile::named(name).unwrap().congestion(limits);
        controller.pacing(&crate::testing::steady_rtt(Duration::from_millis(100))).unwrap().rate
    };
    // 1,248 bytes on the wire for 1,200 of payload.
    assert_eq!(pacing("quicming@1mbit").as_bits_per_second(), 961_536);
    assert_eq!(pacing("quicming-paper@8mbit").as_bits_per_second(), 7_692_304);
}

#[test]
fn guaranteed_rates_that_are_none_are_refused_with_what_is_valid() {
    for (name, parts) in [
        ("quicming@0bit", ["0 bit/s", "from 10.0 kbit/s to 100 Gbit/s"]),
        ("quicming@9900bit", ["out of range", "such as 1mbit"]),
        ("quicming@1000gbit", ["1.00 Tbit/s", "to 100 Gbit/s"]),
        ("quicming@1tbit", ["1tbit", "Gbit"]),
        ("quicming@-1mbit", ["-1mbit", "Mbit"]),
        ("quicming@", ["is not valid", "Mbit"]),
        ("cubic@1mbit", ["`cubic`", "no guaranteed part"]),
        ("quickming@1mbit", ["no profile `quickming`", "quicming"]),
    ] {
        let message = Profile::named(name).unwrap_err().to_string();
        assert!(parts.iter().all(|part| message.contains(part)), "{name}: {message}");
    }
}

#[test]
fn policies_that_break_a_must_say_so_and_no_other_does() {
    for name in Profile::names() {
        let breaks = Profile::named(name).unwrap().describe().policies.iter().any(|p| !p.breaks.is_empty());
        let expected = ["freeze", "quicming", "modquic-cubic"].iter().any(|part| name.contains(part));
        assert_eq!(breaks, expected, "{name}");
    }
}
