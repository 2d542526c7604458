use posthaste_policy::{PathLimits, Seam};
use posthaste_units::{ByteCount, Duration};

use super::*;

const DATAGRAM: ByteCount = ByteCount::new(1200);

/// All seams.
const SEAMS: [Seam; 9] = [
    Seam::Start,
    Seam::SlowStart,
    Seam::Congestion,
    Seam::Silence,
    Seam::StreamCredit,
    Seam::ConnectionCredit,
    Seam::Ack,
    Seam::Repair,
    Seam::Group,
];

/// Built-in ones and those for comparison.
fn every_name() -> impl Iterator<Item = &'static str> {
    names().iter().chain(comparison_names()).copied()
}

fn invalid(text: &str) -> (Option<usize>, String) {
    match from_toml("mine", text) {
        Err(ProfileError::Invalid { name, line, message }) => {
            assert_eq!(name, "mine");
            (line, message)
        }
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn every_built_in_profile_builds_all_its_policies() {
    for definition in selection::every().unwrap_or_else(|error| panic!("{error}")) {
        let (profile, name) = (definition.build().unwrap(), definition.name());
        assert_eq!(profile.name(), name);
        assert_eq!(definition.describe(), profile.describe());
        assert!(!profile.description().is_empty(), "{name}");
        let window = profile.start().initial_window(DATAGRAM);
        let limits = PathLimits { max_datagram_size: DATAGRAM, initial_window: window, seed: 1 };
        // A guaranteed rate takes no window.
        assert!(profile.congestion(limits).window() == window || name.contains("min_rate"), "{name}");
        assert!(!profile.silence().holds_back());
        let (stream, connection) = (profile.stream_credit(), profile.connection_credit());
        assert!(connection.initial_window() * 2 >= stream.initial_window() * 3, "{name}: 1.5 times at least");
        assert_eq!(profile.ack_policy(profile.max_ack_delay()).deadline(), None);
    }
}

#[test]
fn the_default_is_the_first_and_what_an_empty_file_gives() {
    assert_eq!(names()[0], default_profile().name());
    let default = default_profile().describe();
    assert_eq!(named(names()[0]).unwrap().describe(), default);
    let empty = from_toml("cubic", "").unwrap().describe();
    assert_eq!(empty.policies, default.policies);
}

#[test]
fn profiles_differ_in_what_their_names_say() {
    let policies = |name: &str| -> Vec<String> {
        let report = Definition::named(name).unwrap().describe();
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
    assert_eq!(differences("quicming-paper"), ["slow_start=hybrid", "congestion=guaranteed"]);
    assert_eq!(differences("static"), ["credit.stream=fixed", "credit.connection=fixed"]);
    assert_eq!(differences("static-improved"), ["credit.stream=improved", "credit.connection=improved"]);
    for name in ["fast-autotune", "fast-autotune-paper"] {
        assert_eq!(differences(name), ["credit.stream=fast", "credit.connection=fast"]);
    }
    let expected =
        ["slow_start=hybrid", "silence=freeze", "credit.stream=on_ack", "credit.connection=on_ack"];
    assert_eq!(differences("modquic-cubic-paper"), expected);
    assert_eq!(differences("modquic-cubic"), expected[1..]);
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
        let mut expected = vec!["slow_start=own", &congestion];
        expected.extend((name == "modquic-bbr-paper").then_some("silence=freeze"));
        expected.extend(["credit.stream=on_ack", "credit.connection=on_ack"]);
        assert_eq!(differences(name), expected);
    }
    assert_eq!(differences("standard"), ["slow_start=classic", "congestion=newreno"]);
    assert_eq!(differences("history"), ["start=careful"]);
    assert_eq!(differences("history-paper"), ["start=history", "slow_start=hybrid"]);
    assert_eq!(differences("cubic-iw32"), Vec::<String>::new());
    assert_eq!(differences("gquic-2017"), ["slow_start=hybrid"]);
    assert_eq!(differences("gquic-2017-reno"), ["slow_start=hybrid", "congestion=newreno"]);
    assert_eq!(differences("gquic-2017-bbr"), ["slow_start=own", "congestion=bbr1"]);
    for name in ["gquic-2017", "gquic-2017-reno", "gquic-2017-bbr"] {
        let profile = named(name).unwrap();
        assert_eq!(profile.start().initial_window(ByteCount::new(1350)), ByteCount::new(43_200), "{name}");
        assert_eq!(profile.stream_credit().initial_window(), ByteCount::new(6 << 20), "{name}");
        assert_eq!(profile.connection_credit().initial_window(), ByteCount::new(15 << 20), "{name}");
    }
    assert_eq!(named("cubic-iw32").unwrap().start().initial_window(DATAGRAM), DATAGRAM * 32);
}

#[test]
fn an_unknown_name_is_refused_with_the_names_that_there_are() {
    let error = named("cubik").unwrap_err();
    let (names, others) = (names().join(", "), comparison_names().join(", "));
    let expected = format!("there is no profile `cubik`; there are: {names}; forms for comparison: {others}");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn unknown_keys_and_policies_are_refused_with_their_line_and_what_is_valid() {
    for (text, line, parts) in [
        ("descripton = \"x\"", 1, ["descripton", "congestion"]),
        ("description = \"x\"\n\n[congestion.cubik]\n", 3, ["cubik", "`newreno`, `cubic`, `bbr1`"]),
        ("[slow_start.hystart]\n", 1, ["hystart", "`hystart_pp`"]),
        ("[congestion.cubic]\nbeta = 0.7\ngamma = 1.0\n", 3, ["gamma", "`fast_convergence`"]),
        ("[congestion.newreno]\ngamma = 0.7\n", 2, ["gamma", "`recovery`"]),
        ("[credit.strean.fixed]\nwindow = 4096\n", 1, ["strean", "`connection`"]),
        ("[credit.stream.fixed]\n", 1, ["missing", "window"]),
        ("[congestion.cubic]\n[congestion.newreno]\n", 2, ["two policies", "`bbr3`"]),
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
    let joint = from_toml("mine", "[congestion.bbr3]\n[group.joint]\n").unwrap();
    assert!(joint.group().is_some_and(|group| group.is_told_of_acks()));
}

#[test]
fn values_of_a_text_reach_the_policies() {
    let text = "[ack.standard]\nmax_ack_delay = \"5 ms\"\n[credit.stream.fixed]\nwindow = \"64 KiB\"\n";
    let profile = from_toml("mine", text).unwrap();
    assert_eq!(profile.max_ack_delay(), Duration::from_millis(5));
    assert_eq!(profile.stream_credit().window(), ByteCount::new(65_536));
}

#[test]
fn the_report_has_every_seam_once() {
    for name in every_name() {
        let report = Definition::named(name).unwrap().describe();
        let seams: Vec<Seam> = report.policies.iter().map(|policy| policy.seam).collect();
        assert!(seams.is_sorted() && seams.len() == 9, "{seams:?}");
    }
}

#[test]
fn the_default_profiles_report() {
    insta::assert_snapshot!(serde_json::to_string_pretty(&default_profile().describe()).unwrap());
}

#[test]
fn a_parameter_is_part_of_the_name_and_of_the_policy() {
    for name in ["quicming", "quicming-paper", "quicming@acks=7"] {
        let bare = Definition::named(name).unwrap();
        assert_eq!(bare.missing().map(|required| required.key), Some("min_rate"));
        assert!(!bare.describe().policies[2].constants.is_empty(), "it can be described");
        let message = named(name).unwrap_err().to_string();
        assert!(message.contains("needs `min_rate`") && message.contains("@min_rate=1mbit"), "{message}");
    }
    let profile = named("quicming@min_rate=1 Mbit/s,acks=7").unwrap();
    assert_eq!(profile.name(), "quicming@min_rate=1 Mbit/s,acks=7");
    let constants = &profile.describe().policies[2].constants;
    let value = |name: &str| constants.iter().find(|constant| constant.name == name).unwrap().value.clone();
    assert_eq!((value("min_rate").as_str(), value("acks").as_str()), ("1.00 Mbit/s", "7"));
    // The later of two values stands.
    let twice = Definition::named("quicming@acks=7,min_rate=1mbit").unwrap().with("acks", "9").unwrap();
    assert_eq!(twice.name(), "quicming@min_rate=1mbit,acks=9");
    let pacing = |name: &str| {
        let limits = PathLimits { max_datagram_size: DATAGRAM, initial_window: DATAGRAM * 10, seed: 1 };
        let controller = named(name).unwrap().congestion(limits);
        controller.pacing(&crate::testing::steady_rtt(Duration::from_millis(100))).unwrap().rate
    };
    // 1,248 bytes on the wire for 1,200 of payload.
    assert_eq!(pacing("quicming@min_rate=1mbit").as_bits_per_second(), 961_536);
    assert_eq!(pacing("quicming-paper@min_rate=8mbit").as_bits_per_second(), 7_692_304);
}

#[test]
fn parameters_of_every_kind_reach_the_policies() {
    assert_eq!(named("cubic@datagrams=20").unwrap().start().initial_window(DATAGRAM), DATAGRAM * 20);
    let windows = named("cubic@credit.stream.initial=64 KiB,credit.connection.initial=128KiB").unwrap();
    assert_eq!(windows.stream_credit().window(), ByteCount::new(64 << 10));
    assert_eq!(windows.connection_credit().window(), ByteCount::new(128 << 10));
    assert_eq!(named("cubic@max_ack_delay=5 ms").unwrap().max_ack_delay(), Duration::from_millis(5));
    let beta = named("cubic@congestion.beta=0.5").unwrap().describe();
    let known = beta.policies[2].constants.iter().any(|constant| constant.value == "0.500");
    assert!(known, "{:?}", beta.policies[2]);
    assert!(named("mquic-bbr@tolerated_loss=0.05").unwrap().group().is_some());
}

#[test]
fn a_seam_as_key_gives_it_another_policy() {
    let policies = |name: &str| -> Vec<String> {
        let report = Definition::named(name).unwrap().describe();
        report.policies.iter().map(|policy| format!("{}={}", policy.seam.name(), policy.text.name)).collect()
    };
    let plain = policies("mobile");
    for (option, differences) in [
        ("ack=frequency", vec!["ack=frequency"]),
        ("credit=on_ack", vec!["credit.stream=on_ack", "credit.connection=on_ack"]),
        ("credit.stream=on_ack", vec!["credit.stream=on_ack"]),
        ("group=coordinated", vec!["group=coordinated"]),
        ("repair=none", vec!["repair=none"]),
        ("ack=frequency,ack=standard", vec![]),
    ] {
        let name = format!("mobile@{option}");
        let mut own = policies(&name);
        own.retain(|policy| !plain.contains(policy));
        assert_eq!(own, differences, "{name}");
        assert_eq!(named(&name).unwrap().name(), name, "the name gives the same profile again");
    }
    // Windows stay as they were, and what follows is a parameter of the new policy.
    let windows = named("mobile@credit=on_ack,credit.stream.step=16").unwrap();
    assert_eq!(windows.stream_credit().initial_window(), ByteCount::new(2 << 20));
    assert_eq!(windows.connection_credit().initial_window(), ByteCount::new(3 << 20));
    assert!(windows.connection_credit().rides_on_acks().is_some());
    assert!(named("mobile").unwrap().connection_credit().rides_on_acks().is_none());
    assert!(named("mobile@group=coordinated").unwrap().group().is_some());
    assert!(named("mobile").unwrap().group().is_none());
    let constant = |name: &str, key: &str| -> String {
        let report = Definition::named(name).unwrap().describe();
        let ack = report.policies.into_iter().find(|policy| policy.seam == Seam::Ack).unwrap();
        ack.constants.into_iter().find(|constant| constant.name == key).unwrap().value
    };
    assert_eq!(constant("mobile@ack=frequency,packets=20", "packets"), "20");
    assert_eq!(constant("mobile@packets=4,ack=frequency", "packets"), "10", "one key, two meanings");
    // What is changed later is not what an earlier policy left.
    let again = Definition::named("mobile@ack=frequency,packets=20").unwrap().with("packets", "30").unwrap();
    assert_eq!(again.name(), "mobile@ack=frequency,packets=30");
    // No parameter has the name of a seam.
    for key in registry::ENTRIES.iter().flat_map(super::entry::Entry::keys) {
        assert!(*key != "credit" && SEAMS.iter().all(|seam| seam.name() != *key), "{key}");
    }
}

#[test]
fn parameters_that_are_none_are_refused_with_what_is_valid() {
    for (name, parts) in [
        ("mobile@ack=seldom", ["`ack=seldom`", "`standard`, `frequency`"]),
        ("mobile@credit=none", ["`credit=none`", "`on_ack`"]),
        ("mobile@group=ensemble", ["group.ensemble does not go with", "congestion.mobile"]),
        ("mobile@group=joint", ["group.joint does not go with", "congestion.mobile"]),
        ("cubic@credit=fixed", ["`credit=fixed`", "window"]),
        ("quicming@min_rate=0bit", ["0 bit/s", "from 10.0 kbit/s to 100 Gbit/s"]),
        ("quicming@min_rate=9900bit", ["out of range", "`min_rate=9900bit`"]),
        ("quicming@min_rate=1tbit", ["1tbit", "Gbit"]),
        ("quicming@min_rate=-1mbit", ["-1mbit", "Mbit"]),
        ("quicming@min_rate=", ["is not valid", "Mbit"]),
        ("quicming@min_rate=1", ["`min_rate=1`", "string"]),
        ("quicming@1mbit", ["`1mbit` is not a parameter", "congestion.min_rate"]),
        ("quicming@", ["is not a parameter", "key=value"]),
        ("cubic@min_rate=1mbit", ["profile `cubic`", "congestion.beta"]),
        ("cubic@beta=2", ["`beta=2`", "above 0, below 1"]),
        ("cubic@initial=4MiB", ["credit.stream.initial or", "credit.connection.initial"]),
        ("cubic@congestion.initial=1", ["has no parameter", "start.datagrams"]),
        ("cubic@credit.stream.maximum=1GiB", ["profile `cubic@credit", "1.5 times"]),
        ("quickming@min_rate=1mbit", ["no profile `quickming`", "quicming"]),
    ] {
        let message = named(name).unwrap_err().to_string();
        assert!(parts.iter().all(|part| message.contains(part)), "{name}: {message}");
    }
}

#[test]
fn a_file_is_a_profile_with_its_lines() {
    let folder = std::env::temp_dir().join(format!("posthaste-schemes-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("mine@home.toml");
    let name = path.to_str().unwrap();
    std::fs::write(&path, "[start.initial]\ndatagrams = 12\n").unwrap();
    assert_eq!(find(name).unwrap().start().initial_window(DATAGRAM), DATAGRAM * 12);
    let set = find(&format!("{name}@datagrams=14")).unwrap();
    assert_eq!((set.name(), set.start().initial_window(DATAGRAM)), ("mine@home@datagrams=14", DATAGRAM * 14));
    std::fs::write(&path, "[start.initial]\ndatagrams = 1\n").unwrap();
    let message = find(name).unwrap_err().to_string();
    assert!(
        message.contains(name) && message.contains("line 2") && message.contains("from 2 to"),
        "{message}"
    );
    std::fs::remove_dir_all(&folder).unwrap();
    let message = find(name).unwrap_err().to_string();
    assert!(message.starts_with("cannot read the profile") && message.contains(name), "{message}");
    assert!(is_file("./cubic") && !is_file("quicming@min_rate=1 Mbit/s"));
}

#[test]
fn the_registry_has_each_name_once_a_seam_and_no_empty_text() {
    for seam in SEAMS {
        let names: Vec<&str> = registry::of(seam).map(Entry::name).collect();
        let mut unique = names.clone();
        unique.sort_unstable();
        unique.dedup();
        assert!(unique.len() == names.len() && !names.is_empty(), "{names:?}");
    }
    for entry in registry::ENTRIES {
        let text = entry.text;
        let parts = [text.name, text.claims, text.source, text.use_when, text.breaks_when];
        assert!(!parts.contains(&""), "{text:?}");
        for required in entry.requires {
            let keys = std::iter::once(required.key).chain(required.or);
            assert!(keys.into_iter().all(|key| entry.keys().contains(&key)), "{entry:?}");
        }
    }
}

#[test]
fn a_jump_is_refused_with_a_controller_that_does_not_take_it() {
    for controller in ["bbr1", "bbr3", "guaranteed"] {
        let (_, message) = invalid(&format!("[start.careful]\n[congestion.{controller}]\n"));
        let expected = format!("start.careful does not go with congestion.{controller}");
        assert!(message.contains(&expected) && message.contains("[congestion.cubic]"), "{message}");
    }
    let (_, message) = invalid("[start.history]\n[congestion.guaranteed]\n");
    assert!(message.contains("start.history does not go with congestion.guaranteed"), "{message}");
    from_toml("mine", "[start.history]\n[congestion.bbr3]\n").unwrap();
    for controller in ["newreno", "cubic"] {
        from_toml("mine", &format!("[start.careful]\n[congestion.{controller}]\n")).unwrap();
    }
}

#[test]
fn policies_that_break_a_must_say_so_and_no_other_does() {
    for name in names() {
        let breaks =
            Definition::named(name).unwrap().describe().policies.iter().any(|p| !p.breaks.is_empty());
        let expected = ["freeze", "quicming", "modquic-cubic"].iter().any(|part| name.contains(part));
        assert_eq!(breaks, expected, "{name}");
    }
}
