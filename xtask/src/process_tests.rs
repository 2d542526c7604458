use super::*;

fn shell(script: &str, directory: &Path) -> Running {
    Running::spawn(Command::new("sh").args(["-c", script]), "shell", directory).expect("a shell")
}

#[test]
fn a_ready_line_is_read_once_it_is_whole() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut running = shell("printf 'READY 1'; sleep 0.2; echo 234; sleep 60", folder.path());
    let port =
        running.wait_for(Duration::from_secs(10), |line| line.strip_prefix("READY ").map(str::to_owned));
    assert_eq!(port.expect("in time"), "1234");
}

#[test]
fn a_child_that_ends_early_or_hangs_is_an_error() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let nothing = |_: &str| None::<()>;
    let error =
        shell("exit 3", folder.path()).wait_for(Duration::from_secs(10), nothing).expect_err("it ended");
    assert!(error.to_string().contains("ended before it was ready"), "{error}");
    let mut hanging = shell("sleep 60", folder.path());
    let error = hanging.wait_for(Duration::from_millis(50), nothing).expect_err("it hangs");
    assert!(error.to_string().contains("was not ready"), "{error}");
    assert!(hanging.wait(Duration::from_millis(50)).is_err());
}

#[test]
fn dropping_ends_what_the_child_started_too() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut running = shell("sleep 60 & echo $!; wait", folder.path());
    let grandchild: i32 =
        running.wait_for(Duration::from_secs(10), |line| line.parse().ok()).expect("its id");
    drop(running);
    // Nobody may have reaped it yet: a zombie has ended as well. A busy machine takes its time to let it end.
    let state = || std::fs::read_to_string(format!("/proc/{grandchild}/stat")).unwrap_or_default();
    let has_ended = |state: &str| state.is_empty() || state.contains(") Z ") || state.contains(") X ");
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while !has_ended(&state()) && std::time::Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(has_ended(&state()), "{}", state());
}

#[test]
fn ended_children_are_accounted() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let before = children_cpu().expect("rusage");
    let mut busy = shell("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done", folder.path());
    assert!(busy.wait(Duration::from_secs(30)).expect("in time").success());
    assert!(children_cpu().expect("rusage") > before);
}

#[test]
fn processor_time_is_counted_while_a_child_computes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let running = shell("while :; do :; done", folder.path());
    let began = Instant::now();
    while running.cpu().expect("it runs") < Duration::from_millis(50) {
        assert!(began.elapsed() < Duration::from_secs(30), "no processor time");
        std::thread::sleep(TICK);
    }
}
