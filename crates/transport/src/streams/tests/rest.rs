use super::*;

/// What lies in one block of memory with other datagrams, as the endpoint has it: true while a slice of it is in use.
fn is_in_use(block: &Bytes) -> bool {
    !block.is_unique()
}

#[test]
fn streams_that_rest_keep_nothing_of_what_was_read_for_a_code() {
    let budget = ReceiveBudget::default();
    let (mut client, mut server) = pair(1000, 10_000, 4);
    server.offer_tail_code(budget.open_kept());
    let before = budget.taken();
    // A control stream: some bytes, and no end.
    let id = client.open(UNI).unwrap();
    let block = Bytes::from(vec![7; 100]);
    let frame = StreamFrame { id, offset: 0, data: block.slice(10..20), fin: false };
    receive(&mut server, Frame::Stream(frame)).unwrap();
    let read = server.read(id, 1000, &context());
    assert!(matches!(read, Ok(Read::Data(data)) if data.len() == 10));
    assert!(is_in_use(&block), "a code may need it");
    assert!(budget.taken() > before);
    server.shrink();
    assert!(!is_in_use(&block), "the block is kept in use");
    assert_eq!(budget.taken(), before, "a share of the budget is kept");
    // The stream goes on as if nothing had happened.
    let frame = StreamFrame { id, offset: 10, data: block.slice(20..30), fin: true };
    receive(&mut server, Frame::Stream(frame)).unwrap();
    assert!(matches!(server.read(id, 1000, &context()), Ok(Read::Data(data)) if data.len() == 10));
    assert!(!is_in_use(&block), "nothing is kept of a complete stream");
}
