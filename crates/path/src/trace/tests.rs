use super::*;

fn fault_of(text: &str) -> (usize, String) {
    let error = Trace::parse(text).expect_err(text);
    (error.line, error.fault)
}

#[test]
fn both_formats_are_told_apart_and_read() {
    let stamps = OpportunityTrace { stamps: vec![0, 2, 2, 10] };
    assert_eq!(Trace::parse("# a comment\n\n0\n2\r\n 2 \n10\n"), Ok(Trace::Opportunities(stamps.clone())));
    assert_eq!((stamps.count(), stamps.duration()), (4, Duration::from_millis(10)));
    // 6000 bytes in 10 ms.
    assert_eq!(stamps.mean_rate(), Rate::from_bits_per_second(4_800_000));
    for text in
        ["0,8000\n0.5,16000\n", "seconds,bits_per_second\n0, 8e3\n0.5 ,16000", "# x\n0,8000\n.5,16000"]
    {
        let Ok(Trace::Steps(trace)) = Trace::parse(text) else { panic!("{text}") };
        // The last rate holds as long as the one before it.
        assert_eq!(trace.duration(), Duration::from_secs(1));
        assert_eq!(trace.mean_rate(), Rate::from_bits_per_second(12_000));
    }
    let constant = RateTrace::parse("0,8000").expect("one rate is enough");
    assert_eq!(constant.mean_rate(), Rate::from_bytes_per_second(1_000));
}

#[test]
fn traces_are_written_as_they_are_read() {
    for text in ["0\n2\n2\n10\n", "seconds,bits_per_second\n0.000000000,8000\n0.125000001,0\n"] {
        let written = match Trace::parse(text).expect(text) {
            Trace::Opportunities(trace) => trace.to_text(),
            Trace::Steps(trace) => trace.to_text(),
        };
        assert_eq!(written, text);
    }
}

#[test]
fn faults_are_named_with_their_line() {
    assert_eq!(fault_of(""), (1, "no times: one millisecond stamp a line is needed".to_owned()));
    assert_eq!(fault_of("1\n\nx\n").0, 3);
    assert!(fault_of("1\n1.5\n").1.contains("whole milliseconds"));
    assert!(fault_of("-1\n").1.contains("`-1`"));
    assert!(fault_of("4294967296\n").1.contains("4294967295"));
    assert_eq!(fault_of("5\n4\n"), (2, "4 ms is earlier than 5 ms before it".to_owned()));
    assert!(fault_of("0\n0\n").1.contains("above zero"));
    assert!(fault_of("seconds,bits_per_second\n").1.contains("no rates"));
    assert_eq!(fault_of("1,8000\n"), (1, "the first rate must begin at 0 seconds".to_owned()));
    assert_eq!(fault_of("0,8000\n1,8000\n1,9000\n").0, 3);
    assert!(fault_of("0,8000,1\n").1.contains(HEADER));
    assert!(fault_of("0,8000\n1\n").1.contains(HEADER));
    assert!(fault_of("0,-1\n").1.contains("a rate in bits a second"));
    assert!(fault_of("0,nan\n").1.contains("a rate in bits a second"));
    assert!(fault_of("0,1e13\n").1.contains("1000000000000"));
    assert!(fault_of("0,0\n1,0\n").1.contains("above zero"));
    assert!(
        fault_of(&format!("{}\n", "9".repeat(1_000))).1.len() < 120,
        "a long line is not repeated in full"
    );
}

#[test]
fn a_trace_s_length_is_bounded() {
    let text = "1\n".repeat(MAX_TRACE_LINES + 1);
    let error = OpportunityTrace::parse(&text).expect_err("too long");
    assert_eq!(error.line, MAX_TRACE_LINES + 1);
    assert!(error.fault.contains("more than"), "{error}");
}
