use super::*;

fn plan(arguments: &[&str]) -> Result<Plan, Failure> {
    let args =
        <crate::args::Args as clap::Parser>::try_parse_from(["posthaste", "race"].iter().chain(arguments));
    match args.expect("valid arguments").command {
        crate::args::Command::Race(race) => Plan::new(&race, &race.path[0]),
        _ => unreachable!("the command is race"),
    }
}

fn refusal(arguments: &[&str]) -> String {
    plan(arguments).map(|_| ()).expect_err("refused").to_string()
}

#[test]
fn every_racer_starts_once_a_round_and_nobody_always_first() {
    let plan =
        plan(&["--profiles", "cubic,standard,cubic-iw32", "--runs", "6", "--seed", "7"]).expect("a plan");
    let order: Vec<Start> = plan.order().collect();
    assert_eq!(order.len(), 18);
    for (index, round) in order.chunks(3).enumerate() {
        assert!(round.iter().all(|start| start.round == index as u64 + 1 && start.seed == index as u64 + 7));
        let mut racers: Vec<usize> = round.iter().map(|start| start.racer).collect();
        assert_eq!(racers[0], index % 3);
        racers.sort_unstable();
        assert_eq!(racers, [0, 1, 2]);
    }
}

#[test]
fn the_baseline_is_standard_unless_told_otherwise() {
    let names = |arguments: &[&str]| {
        let plan = plan(arguments).expect("a plan");
        plan.racers[plan.baseline].name.clone()
    };
    assert_eq!(names(&[]), "standard");
    assert_eq!(names(&["--profiles", "cubic-iw32,cubic"]), "cubic-iw32");
    assert_eq!(names(&["--baseline", "cubic"]), "cubic");
    assert!(refusal(&["--baseline", "newreno"]).contains("cubic, standard"));
}

#[test]
fn all_profiles_race_with_the_rates_that_they_want() {
    let all = plan(&["--profiles", "all", "--runs", "1"]).expect("a plan");
    assert_eq!(all.racers.len(), posthaste_schemes::names().len());
    assert!(
        all.names().contains(&"quicming@min_rate=1mbit")
            && all.command(&all.names()).contains("quicming@min_rate=1mbit")
    );
    assert_eq!(all.racers[all.baseline].name, "standard");
    // A parameter of one's own stands.
    let promised =
        plan(&["--profiles", "history,quicming@min_rate=5mbit,acks=7,all-server"]).expect("a plan");
    let own = "quicming@min_rate=5mbit,acks=7";
    let racer = promised.racers.iter().find(|racer| racer.name == own).expect("it takes part");
    assert_eq!(racer.transport().expect("a profile").profile.name(), own);
    assert_eq!(promised.names()[..3], ["history", own, "cubic"]);
    assert!(!promised.names().contains(&"fast-autotune"));
    assert!(refusal(&["--profiles", "all,cubic,cubic"]).contains("twice"));
}

#[test]
fn what_cannot_be_raced_is_refused_with_the_choices() {
    assert!(
        refusal(&["--path", "avarage"])
            .contains("there are: good, average, bad, lte, wifi, lte-trace, wifi-trace")
    );
    assert!(refusal(&["--path", "/missing.toml"]).contains("/missing.toml"));
    assert!(refusal(&["--profiles", "cubic,cubik"]).contains("there is no profile `cubik`"));
    assert!(refusal(&["--profiles", "cubic,standard,cubic"]).contains("twice"));
    assert!(refusal(&["--profiles", "cubic,tcp:vegas"]).contains("there is no stack `tcp:vegas`"));
}

#[test]
fn the_default_takes_about_a_minute() {
    let args = <crate::args::Args as clap::Parser>::try_parse_from(["posthaste", "race"]);
    let crate::args::Command::Race(race) = args.expect("valid arguments").command else {
        unreachable!("the command is race")
    };
    let plans = Plan::all(&race).expect("two plans");
    assert_eq!(plans.len(), 2, "two paths");
    let estimate: u64 = plans.iter().map(|plan| plan.estimate().as_secs()).sum();
    assert!((20..120).contains(&estimate), "{estimate} s");
    assert!(plans.iter().all(|plan| plan.timeout > plan.expected * 5));
}

#[test]
fn the_command_repeats_the_race() {
    let two = ["--path", "average", "--profiles", "cubic,standard"];
    let plan =
        plan(&[&two[..], &["--object", "1.5MB", "--runs", "3", "--parallel", "2"]].concat()).expect("a plan");
    assert_eq!(
        plan.command(&plan.names()),
        "posthaste race --path average --object 1500000B --profiles cubic,standard --runs 3 --seed 1 --parallel 2"
    );
    assert_eq!(plan.describe_workload(), "1.5 MB");
    let command = |arguments: &[&str], racers: &[&str]| {
        super::tests::plan(&[&two[..], arguments].concat()).expect("a plan").command(racers)
    };
    let both = ["cubic", "standard"];
    assert!(command(&["--bare", "--baseline", "cubic"], &both).contains(" --baseline cubic --bare --runs"));
    assert!(!command(&["--baseline", "standard"], &both).contains("--baseline"), "it is that anyway");
    assert!(
        !command(&["--baseline", "cubic"], &["standard"]).contains("--baseline"),
        "one racer's own command"
    );
}

#[test]
fn the_command_repeats_workloads_with_all_their_settings() {
    let plan = |arguments: &[&str]| plan(arguments).expect("a plan");
    let requests = plan(&["--profiles", "cubic", "--workload", "requests@count=5", "--object", "2kB"]);
    let command = requests.command(&requests.names());
    assert!(command.contains(" --workload requests@count=5,object=2000B,think=0s --profiles "), "{command}");
    assert_eq!(requests.describe_workload(), "5 requests for 2 kB each");
    let video = plan(&["--profiles", "cubic", "--workload", "video"]);
    assert_eq!(video.describe_workload(), "a video of 10 chunks of 2s at 4 Mbit/s with a buffer of 6s");
    // It plays for longer than it downloads: 20 s, of which the buffer holds six.
    assert!((14..25).contains(&video.expected.as_secs()), "{:?}", video.expected);
    assert!(video.timeout > video.expected * 5);
}

#[test]
fn limits_are_those_of_what_is_measured() {
    let limit = |workload| {
        plan(&["--path", "average", "--workload", workload, "--profiles", "cubic"]).expect("a plan").limit
    };
    // 50 ms and 100 Mbit/s: two round trips for the first answer, one for another.
    let (file, requests) = (limit("file@object=20kB").seconds, limit("requests@object=20kB").seconds);
    assert!((0.1..0.103).contains(&file) && (0.05..0.053).contains(&requests), "{file} {requests}");
    let chunk = limit("video@rate=80kbit,chunk=2s").seconds;
    assert!((chunk - file).abs() < 1e-9, "a first chunk of 20 kB: {chunk}");
}

#[test]
fn more_requests_than_can_be_remembered_are_refused() {
    let requests = ["--profiles", "cubic", "--workload", "requests@count=10000", "--runs"];
    assert!(plan(&[&requests[..], &["200"]].concat()).is_ok());
    assert!(refusal(&[&requests[..], &["201"]].concat()).contains("2010000 requests in all runs"));
    assert!(refusal(&["--workload", "video", "--object", "1MB"]).contains("rate x chunk"));
}
