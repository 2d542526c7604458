//! Room for urgent streams in what the connection keeps.

use super::*;

#[test]
fn an_urgent_stream_finds_room_that_many_others_have_not_filled() {
    let (mut client, mut server) = pair(1 << 20, 4 << 20, 100);
    let urgency = |urgency| Priority { urgency, incremental: true };
    // More than is kept for them, and the last of them wait.
    let others: Vec<StreamId> = (0..64).map(|_| client.open(UNI).unwrap()).collect();
    for id in &others {
        client.set_priority(*id, urgency(5)).unwrap();
        client.write(*id, &mut Bytes::from(vec![0; 64 << 10])).unwrap();
    }
    let last = others[63];
    assert_eq!(client.write(last, &mut Bytes::from(vec![0; 1000])), Ok(0));
    let urgent = client.open(UNI).unwrap();
    client.set_priority(urgent, urgency(1)).unwrap();
    assert_eq!(client.write(urgent, &mut Bytes::from(vec![0; 64 << 10])), Ok(64 << 10), "at once");
    client.finish(urgent).unwrap();
    let first = frames(&packet(&mut client, 1200).0);
    assert!(matches!(&first[..], [Frame::Stream(frame)] if frame.id == urgent), "{first:?}");
    // One that waits and becomes a little more urgent is woken before those that have waited longer.
    for id in others.iter().rev() {
        let _ = client.write(*id, &mut Bytes::from(vec![0; 64 << 10]));
    }
    client.set_priority(others[40], urgency(4)).unwrap();
    while client.poll_event().is_some() {}
    transfer(&mut client, &mut server);
    let woken = std::iter::from_fn(|| client.poll_event()).find_map(|event| match event {
        StreamEvent::Writable(id) => Some(id),
        _ => None,
    });
    assert_eq!(woken, Some(others[40]));
}
