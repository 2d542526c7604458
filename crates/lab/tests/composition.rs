//! Policies that may be combined hold together: no legal pair is slower than both of its parts by more than a quarter at
//! the median.
//!
//! A pair is the default profile with the policies of two seams replaced, its parts are the default profile with one of
//! them replaced. `COMPOSITION_SEEDS=15 COMPOSITION_OBJECT=10MB cargo test --release -p posthaste-lab --test all composition
//! -- --nocapture` runs the larger version, which holds the 95th percentile to half as well; it prints each ratio above
//! its bound.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use posthaste_lab::peers::Stack;
use posthaste_lab::run::run;
use posthaste_lab::spec::RunSpec;
use posthaste_policy::{Profile, Seam};
use posthaste_schemes::{Definition, registry};

const PATHS: [&str; 6] = ["good", "average", "bad", "lte", "lte-trace", "wifi-trace"];
/// Seams of which two policies may meet at the window; credit is one here, both of its windows.
const SEAMS: [Seam; 5] = [Seam::Start, Seam::SlowStart, Seam::Congestion, Seam::Silence, Seam::StreamCredit];
/// What a pair may be slower than the slower one of its parts.
const MEDIAN_BOUND: f64 = 1.25;
const TAIL_BOUND: f64 = 1.5;
/// Seeds from which on there is a 95th percentile to speak of.
const TAIL_SEEDS: u64 = 15;

/// Seam and policy, in a profile's TOML.
type Part = (Seam, String, String);

/// The policies that the default profile does not have.
fn parts() -> Vec<Part> {
    let default = posthaste_schemes::default_profile().describe();
    let mut parts = Vec::new();
    for seam in SEAMS {
        let usual = default.policies.iter().find(|policy| policy.seam == seam).expect("each seam is there");
        for entry in registry::of(seam).filter(|entry| entry.name() != usual.text.name) {
            let name = entry.name();
            let text = if seam == Seam::StreamCredit {
                let keys = |initial: &str, maximum: &str| {
                    let is_fixed = entry.keys().contains(&"window");
                    if is_fixed {
                        format!("window = \"{maximum}\"")
                    } else {
                        format!("initial = \"{initial}\"\nmaximum = \"{maximum}\"")
                    }
                };
                format!(
                    "[credit.stream.{name}]\n{}\n[credit.connection.{name}]\n{}\n",
                    keys("1 MiB", "16 MiB"),
                    keys("1536 KiB", "24 MiB")
                )
            } else {
                let required = entry
                    .requires
                    .iter()
                    .map(|required| format!("{} = \"{}\"\n", required.key, required.example));
                format!("[{}.{name}]\n{}", seam.name(), required.collect::<String>())
            };
            parts.push((seam, name.to_owned(), text));
        }
    }
    parts
}

/// The profile of these parts; `None` if it is refused.
fn profile(parts: &[&Part]) -> Option<Profile> {
    let name: Vec<&str> = parts.iter().map(|(_, name, _)| name.as_str()).collect();
    let text: String = parts.iter().map(|(.., text)| text.as_str()).collect();
    let name = name.join("+");
    match Definition::from_toml(&name, &text) {
        Ok(definition) => Some(definition.build().expect("it is complete")),
        Err(error) => {
            assert!(error.to_string().contains("does not go with"), "{error}");
            None
        }
    }
}

fn setting(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.to_owned())
}

/// Completion times in seconds, sorted: by profile and path.
fn measure(profiles: &[Profile], seeds: u64, object: &str) -> BTreeMap<(String, &'static str), Vec<f64>> {
    let jobs: Vec<(&Profile, &'static str, u64)> = profiles
        .iter()
        .flat_map(|profile| {
            PATHS.iter().flat_map(move |path| (0..seeds).map(move |seed| (profile, *path, seed)))
        })
        .collect();
    let (next, times) = (AtomicUsize::new(0), Mutex::new(BTreeMap::<_, Vec<f64>>::new()));
    let work = || {
        while let Some((profile, path, seed)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut spec: RunSpec = toml::from_str(&format!(
                "network = {{ kind = \"simple\", path = \"{path}\" }}\ndeadline = \"900s\"\n\
                 flows = [{{ stack = \"cubic\", workload = {{ kind = \"bulk\", object = \"{object}\" }}, warm-up = {{ connections = 2 }} }}]"
            ))
            .expect("a run");
            spec.flows[0].stack = Stack::profile((*profile).clone(), 1);
            let result = run(&spec, *seed, None).expect("it can be built");
            let seconds = result.flows[0].completion.unwrap_or(900.0);
            let mut times = times.lock().expect("nobody panics with it");
            times.entry((profile.name().to_owned(), *path)).or_default().push(seconds);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(work);
        }
    });
    let mut times = times.into_inner().expect("nobody panics with it");
    for times in times.values_mut() {
        times.sort_by(f64::total_cmp);
    }
    times
}

/// The nearest rank.
fn quantile(sorted: &[f64], of: f64) -> f64 {
    sorted[((sorted.len() as f64 * of).ceil() as usize).clamp(1, sorted.len()) - 1]
}

#[test]
fn no_legal_pair_is_slower_than_both_of_its_parts() {
    let seeds: u64 = setting("COMPOSITION_SEEDS", "7").parse().expect("a number of seeds");
    let object = setting("COMPOSITION_OBJECT", "1MB");
    let parts = parts();
    let mut profiles: Vec<Profile> =
        parts.iter().map(|part| profile(&[part]).expect("one alone is legal")).collect();
    let mut pairs = Vec::new();
    for (index, first) in parts.iter().enumerate() {
        for second in parts[index + 1..].iter().filter(|second| second.0 != first.0) {
            if let Some(profile) = profile(&[first, second]) {
                pairs.push((profile.name().to_owned(), first.1.clone(), second.1.clone()));
                profiles.push(profile);
            }
        }
    }
    assert!(pairs.len() > 50, "{}", pairs.len());
    let times = measure(&profiles, seeds, &object);
    let mut faults = Vec::new();
    for (pair, first, second) in &pairs {
        for path in PATHS {
            let of = |name: &str, part: f64| quantile(&times[&(name.to_owned(), path)], part);
            let ratio = |part| of(pair, part) / of(first, part).max(of(second, part));
            if ratio(0.5) > MEDIAN_BOUND {
                faults.push(format!(
                    "{pair} over {path}: {:.2} at the median, {:.2} s",
                    ratio(0.5),
                    of(pair, 0.5)
                ));
            }
            if seeds >= TAIL_SEEDS && ratio(0.95) > TAIL_BOUND {
                faults.push(format!(
                    "{pair} over {path}: {:.2} at p95, {:.2} s",
                    ratio(0.95),
                    of(pair, 0.95)
                ));
            }
        }
    }
    println!("{} pairs, {} runs", pairs.len(), profiles.len() * PATHS.len() * seeds as usize);
    assert!(faults.is_empty(), "slower than both parts:\n{}", faults.join("\n"));
}
