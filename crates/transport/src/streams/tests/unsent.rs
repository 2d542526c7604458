use super::*;
use crate::limits;

/// Streams of the client, each with a writer that has more than any limit.
fn crowd(client: &mut Streams, count: u64) -> Vec<StreamId> {
    let ids: Vec<StreamId> = (0..count).map(|_| client.open(BIDI).unwrap()).collect();
    for id in &ids {
        fill(client, *id);
    }
    ids
}

/// Writes until nothing more is taken.
fn fill(client: &mut Streams, id: StreamId) {
    while client.write(id, &mut Bytes::from(vec![7; 64 << 10])).unwrap() > 0 {}
}

/// A client with room for all, and a server.
fn roomy_pair(stream: u64, connection: u64) -> (Streams, Streams) {
    let (_, server) = pair(stream, connection, 256);
    let mut client = Streams::new(StreamsConfig {
        side: Side::Client,
        max_streams_bidi: 256,
        max_streams_uni: 256,
        send_share: SendBudget::default().open(),
        send_buffer: ByteCount::new(64 << 20),
        unsent_limit: ByteCount::new(64 << 10),
        stream_credit: Box::new(|| credit(1000)),
        connection_credit: credit(1000),
        account: ReceiveBudget::default().open().unwrap(),
    });
    client.set_peer_limits(&parameters(server.local_limits()));
    (client, server)
}

/// Carries a packet; what the sender owned in it is acknowledged.
fn carry(from: &mut Streams, to: &mut Streams) {
    let (payload, records) = packet(from, 1200);
    for frame in frames(&payload) {
        receive(to, frame).unwrap();
    }
    records.iter().for_each(|record| assert!(from.on_acked(record)));
}

#[test]
fn many_streams_without_credit_buffer_little_and_lose_no_wakeup() {
    // The connection's credit runs out first in one case, and the streams' in the other.
    for (stream, connection) in [(1 << 20, 2_000), (2_000, 1 << 30)] {
        let (mut client, mut server) = roomy_pair(stream, connection);
        let ids = crowd(&mut client, 200);
        let buffered = client.stats().buffered.get();
        let freely = limits::STREAMS_THAT_BUFFER_FREELY as u64 * (64 << 10);
        assert!(buffered <= freely + 200 * (2_000 + limits::UNSENT_WITHOUT_CREDIT), "{buffered}");
        let mut received = vec![0; ids.len()];
        // Writers that are woken write again: none is forgotten, and none is woken in vain.
        for _ in 0..20_000 {
            for event in events(&mut client) {
                let StreamEvent::Writable(id) = event else { continue };
                let mut data = Bytes::from(vec![7; 64 << 10]);
                assert!(client.write(id, &mut data).unwrap() > 0, "woken for nothing");
                fill(&mut client, id);
            }
            carry(&mut client, &mut server);
            for (id, received) in ids.iter().zip(&mut received) {
                while let Ok(Read::Data(data)) = server.read(*id, usize::MAX, &context()) {
                    *received += data.len();
                }
            }
            carry(&mut server, &mut client);
        }
        assert!(received.iter().all(|received| *received > 30_000), "{received:?}");
    }
}

#[test]
fn few_streams_buffer_whatever_their_credit_is() {
    let (mut client, _) = pair(1_000, 1_000, 256);
    let count = limits::STREAMS_THAT_BUFFER_FREELY as u64;
    crowd(&mut client, count);
    assert_eq!(client.stats().buffered, ByteCount::new(count * (64 << 10)));
}
