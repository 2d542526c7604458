use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::limits::MAX_UNSENT_INSTRUCTIONS;

/// Names and values.
type Fields = Vec<(String, String)>;

/// Two ends of a connection of which one sends sections, and what is on its way between them.
struct Link {
    sender: Tables,
    receiver: Tables,
    encoder_stream: Vec<u8>,
    decoder_stream: Vec<u8>,
    /// Sections that have been sent and not decoded, with what they say; by stream, in order.
    sections: BTreeMap<u64, (Vec<u8>, Fields)>,
    next: u64,
}

impl Link {
    fn new(role: Role, capacity: u64, max_blocked: u64) -> Self {
        let settings = Settings {
            qpack_max_table_capacity: capacity,
            qpack_blocked_streams: max_blocked,
            ..Settings::default()
        };
        let (sender, receiver) =
            (Tables::new(role, &Settings::default()), Tables::new(Role::Server, &settings));
        sender.on_settings(&settings);
        sender.set_encoder_writable(true);
        let (encoder_stream, decoder_stream) = (Vec::new(), Vec::new());
        Self { sender, receiver, encoder_stream, decoder_stream, sections: BTreeMap::new(), next: 0 }
    }

    fn send(&mut self, fields: Fields) {
        let mut buffer = Vec::new();
        let end = self.sender.encode(self.next, &mut buffer, |section| {
            for (name, value) in &fields {
                section.field(name.as_bytes(), value.as_bytes(), false);
            }
        });
        self.sections.insert(self.next, ([&buffer[end..], &buffer[..end]].concat(), fields));
        self.next += 4;
    }

    /// Some bytes of both QPACK streams arrive.
    fn carry(&mut self, encoder: usize, decoder: usize) {
        self.encoder_stream.extend(due(&self.sender).unwrap().encoder);
        self.decoder_stream.extend(due(&self.receiver).unwrap().decoder);
        let arrived: Vec<u8> = self.encoder_stream.drain(..encoder.min(self.encoder_stream.len())).collect();
        self.receiver.on_encoder_stream(&arrived).unwrap();
        let arrived: Vec<u8> = self.decoder_stream.drain(..decoder.min(self.decoder_stream.len())).collect();
        self.sender.on_decoder_stream(&arrived).unwrap();
    }

    /// The section of a stream arrives, or is looked at again. The receiver refuses it if more streams wait than may.
    fn arrive(&mut self, place: usize) {
        let Some(stream) = self.sections.keys().nth(place % self.sections.len().max(1)).copied() else {
            return;
        };
        let (section, fields) = &self.sections[&stream];
        let decoded = self.receiver.decode(stream, section, 1 << 20).expect("a section of our own");
        let Some(decoded) = decoded else { return };
        let decoded: Fields = decoded
            .iter()
            .map(|field| [&field.name, &field.value].map(|text| String::from_utf8(text.to_vec()).unwrap()))
            .map(|[name, value]| (name, value))
            .collect();
        assert_eq!(decoded, *fields);
        self.sections.remove(&stream);
    }

    fn give_up(&mut self, place: usize) {
        let Some(stream) = self.sections.keys().nth(place % self.sections.len().max(1)).copied() else {
            return;
        };
        self.sections.remove(&stream);
        self.receiver.cancel(stream);
    }

    /// All arrives; nothing waits any more, and the encoder knows.
    fn settle(&mut self) {
        self.carry(usize::MAX, 0);
        while !self.sections.is_empty() {
            let before = self.sections.len();
            self.arrive(0);
            assert_eq!(self.sections.len(), before - 1);
        }
        self.carry(0, usize::MAX);
        let mut fields = Vec::new();
        // What is known to have arrived is referred to, whatever the peer lets wait.
        for name in ["cookie", "user-agent"] {
            fields.push((name.to_owned(), "0123456789012345678901".to_owned()));
        }
        for _ in 0..3 {
            self.send(fields.clone());
            self.carry(usize::MAX, 0);
            self.arrive(0);
            self.carry(0, usize::MAX);
        }
    }
}

/// All that is to be sent.
fn due(tables: &Tables) -> Result<Due, Error> {
    tables.due(Waker::noop(), Takes { encoder: true, decoder: true, is_sending: true })
}

#[derive(Debug, Clone)]
enum Step {
    Send(Fields),
    Carry(usize, usize),
    Arrive(usize),
    GiveUp(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let name = prop::sample::select(vec!["cookie", "user-agent", ":authority", "x-custom", "x-b", ":path"]);
    let field = (name, 0..5_usize, 0..160_usize)
        .prop_map(|(name, kind, length)| (name.to_owned(), kind.to_string().repeat(length / 16 * 16)));
    prop_oneof![
        4 => prop::collection::vec(field, 0..5).prop_map(Step::Send),
        3 => (0..80_usize, 0..6_usize).prop_map(|(encoder, decoder)| Step::Carry(encoder, decoder)),
        4 => (0..8_usize).prop_map(Step::Arrive),
        1 => (0..8_usize).prop_map(Step::GiveUp),
    ]
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded_whatever_is_late(
        role in prop::sample::select(vec![Role::Client, Role::Server]),
        capacity in prop::sample::select(vec![0, 31, 64, 130, 300, 4096, 1 << 20]),
        max_blocked in 0..4_u64,
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let mut link = Link::new(role, capacity, max_blocked);
        for step in steps {
            match step {
                Step::Send(fields) => link.send(fields),
                Step::Carry(encoder, decoder) => link.carry(encoder, decoder),
                Step::Arrive(place) => link.arrive(place),
                Step::GiveUp(place) => link.give_up(place),
            }
        }
        link.settle();
        if capacity >= 300 {
            link.send(vec![("cookie".to_owned(), "0123456789012345678901".to_owned())]);
            let (section, _) = link.sections.values().next().unwrap();
            prop_assert!(section.len() <= 5, "{section:?}");
        }
    }

    #[test]
    fn a_hostile_peer_gets_an_error_and_no_more_memory(
        encoder in prop::collection::vec(any::<u8>(), 0..200),
        decoder in prop::collection::vec(any::<u8>(), 0..30),
        section in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let mut link = Link::new(Role::Client, 300, 2);
        let text = || ("cookie".to_owned(), "0123456789012345678901".to_owned());
        link.send(vec![text()]);
        let _ = link.sender.on_decoder_stream(&decoder);
        let receiver = &link.receiver;
        let _ = receiver.on_encoder_stream(&[b"\x3f\x8d\x02", &encoder[..]].concat());
        if let Ok(Some(fields)) = receiver.decode(0, &section, 4096) {
            let size: usize = fields.iter().map(|field| field.name.len() + field.value.len() + 32).sum();
            prop_assert!(size <= 4096);
        }
        prop_assert!(due(receiver).unwrap().decoder.len() <= 20);
    }
}

#[test]
fn who_sends_is_woken_for_what_is_due() {
    use std::sync::atomic::{AtomicUsize, Ordering};

    struct Count(AtomicUsize);
    impl std::task::Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let count = Arc::new(Count(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&count));
    let woken = || count.0.load(Ordering::Relaxed);
    let mut link = Link::new(Role::Client, 300, 2);
    link.carry(usize::MAX, 0);
    let none = Takes { encoder: false, decoder: false, is_sending: false };
    link.sender.due(&waker, none).unwrap();
    link.receiver.due(&waker, none).unwrap();
    link.send(vec![("cookie".to_owned(), "0123456789012345678901".to_owned())]);
    assert_eq!(woken(), 1, "an insertion");
    link.arrive(0);
    assert_eq!((woken(), link.sections.len()), (1, 1), "it waits");
    let cx = Context::from_waker(&waker);
    assert!(link.receiver.poll_unblocked(0, &cx).is_pending());
    link.carry(usize::MAX, 0);
    assert_eq!(woken(), 2, "the section may be read");
    let all = Takes { encoder: true, decoder: true, is_sending: false };
    assert_eq!(link.receiver.due(&waker, all).unwrap().decoder, [1], "the encoder hears of it");
    link.arrive(0);
    assert_eq!(woken(), 2, "an acknowledgement alone is not urgent");
    assert_eq!(link.receiver.due(&waker, all).unwrap().decoder, [], "and waits for a packet");
    let with_message = Takes { is_sending: true, ..all };
    assert_eq!(link.receiver.due(&waker, with_message).unwrap().decoder, [0x80]);
    link.decoder_stream = vec![1, 0x80];
    link.receiver.cancel(4);
    assert_eq!(woken(), 3, "a cancellation is");
    link.carry(usize::MAX, usize::MAX);
    link.receiver.due(&waker, none).unwrap();
    for _ in 0..32 {
        link.send(vec![("cookie".to_owned(), "0123456789012345678901".to_owned())]);
        link.arrive(0);
    }
    assert_eq!(woken(), 4, "nor are many acknowledgements to be kept");
    for _ in 0..MAX_UNSENT_INSTRUCTIONS {
        link.receiver.cancel(4);
    }
    assert!(link.receiver.due(&waker, none).is_err(), "the peer takes none of them");
}
