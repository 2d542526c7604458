use proptest::prelude::*;

use super::*;

/// The byte at an offset of the stream under test.
fn byte_at(offset: u64) -> u8 {
    (offset.wrapping_mul(31) ^ (offset >> 8)) as u8
}

fn slice_of(start: u64, length: usize) -> Bytes {
    (start..start + length as u64).map(byte_at).collect::<Vec<u8>>().into()
}

fn read_all(assembler: &mut Assembler, max: usize) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(data) = assembler.read(max) {
        assert!(!data.is_empty() && data.len() <= max);
        all.extend_from_slice(&data);
    }
    all
}

#[test]
fn data_in_order_are_handed_on_without_a_copy() {
    let mut assembler = Assembler::default();
    let first = slice_of(0, 1200);
    let second = slice_of(1200, 1200);
    assembler.insert(0, first.clone());
    assembler.insert(1200, second.clone());
    let read = [assembler.read(usize::MAX), assembler.read(usize::MAX)].map(Option::unwrap);
    assert_eq!(read[0].as_ptr(), first.as_ptr());
    assert_eq!(read[1].as_ptr(), second.as_ptr());
    assert_eq!((assembler.read_offset(), assembler.read(1)), (2400, None));
}

/// However far behind the reader is: a copy would free nothing.
#[test]
fn slices_that_fill_their_datagrams_are_never_copied() {
    let mut assembler = Assembler::default();
    let slices: Vec<Bytes> = (0..4000).map(|index| slice_of(index * 1400, 1400)).collect();
    for (offset, slice) in (0..).step_by(1400).zip(&slices) {
        assembler.insert(offset, slice.clone());
    }
    for slice in &slices {
        assert_eq!(assembler.read(usize::MAX).unwrap().as_ptr(), slice.as_ptr());
    }
}

#[test]
fn a_gap_holds_data_back_until_it_is_filled() {
    // spec: rfc9000 2.2 ordered-delivery
    let mut assembler = Assembler::default();
    assembler.insert(3000, slice_of(3000, 3000));
    assert!(!assembler.is_readable());
    assert_eq!(assembler.read(10), None);
    assembler.insert(0, slice_of(0, 3000));
    assert_eq!(assembler.contiguous(), 6000);
    assert_eq!(read_all(&mut assembler, 999), slice_of(0, 6000));
}

#[test]
fn where_data_differ_the_first_copy_wins() {
    let mut assembler = Assembler::default();
    assembler.insert(4, Bytes::from_static(b"EF"));
    assembler.insert(2, Bytes::from_static(b"cdefgh"));
    assembler.insert(0, Bytes::from_static(b"abCDEFGHIJ"));
    assembler.insert(0, Bytes::from_static(b"xxxxxxxxxx"));
    assert_eq!(read_all(&mut assembler, 100), b"abcdEFghIJ");
}

#[test]
fn offsets_at_the_end_of_the_number_space_do_no_harm() {
    let mut assembler = Assembler::default();
    let last = posthaste_wire::varint::MAX;
    assembler.insert(last - 3, Bytes::from_static(b"abc"));
    assembler.insert(last - 3, Bytes::from_static(b"abc"));
    assert_eq!(assembler.read(10), None);
    assert_eq!(assembler.blocks.len(), 1);
}

/// Fragments of one byte with gaps of one byte, each pinning a large datagram, fill a window of 1 MiB: what is
/// held stays below the window, an eighth of it (one bit a byte) and the slack.
#[test]
fn memory_is_bounded_by_the_window_however_data_are_cut() {
    const WINDOW: u64 = 1 << 20;
    let bound = (WINDOW + WINDOW / 8 + WINDOW / 32 + REASSEMBLY_SLACK) as usize;
    for step in [2, 3, 64, 4095, 4096, 5000] {
        let mut assembler = Assembler::default();
        for offset in (1..WINDOW).step_by(step) {
            let datagram = slice_of(offset - 1, 1200);
            assembler.insert(offset, datagram.slice(1..2));
        }
        assert!(assembler.memory() <= bound, "step {step}: {} > {bound}", assembler.memory());
    }
}

/// The same for data in order that the application does not read: small ones, large ones and both by turns.
#[test]
fn memory_is_bounded_while_the_reader_is_slow() {
    const WINDOW: u64 = 1 << 20;
    let bound = (WINDOW + WINDOW / 8 + REASSEMBLY_SLACK) as usize;
    for sizes in
        [&[1][..], &[511], &[512], &[1200], &[1400], &[1, 1200], &[1, 1400], &[1, 512], &[600, 3, 16_000]]
    {
        let mut assembler = Assembler::default();
        let mut offset = 0;
        for size in sizes.iter().cycle() {
            if offset + *size as u64 > WINDOW {
                break;
            }
            assembler.insert(offset, slice_of(offset, *size));
            offset += *size as u64;
        }
        assert!(assembler.memory() <= bound, "sizes {sizes:?}: {} > {bound}", assembler.memory());
        assert_eq!(read_all(&mut assembler, 5000), slice_of(0, offset as usize));
        assert!(assembler.memory() < 64 * 1024, "memory is not given back: {}", assembler.memory());
    }
}

#[test]
fn blocks_are_given_back_when_their_data_have_been_passed_on() {
    let mut assembler = Assembler::default();
    for round in 0..100 {
        let start = round * 20_000;
        for part in (0..10).rev() {
            assembler.insert(start + part * 2000, slice_of(start + part * 2000, 2000));
        }
        assert_eq!(read_all(&mut assembler, usize::MAX), slice_of(start, 20_000));
        assert!(assembler.blocks.len() <= 1, "{}", assembler.blocks.len());
    }
}

/// What the application would see of a stream of which pieces arrive: the simplest thing that works.
#[derive(Default)]
struct Model {
    bytes: BTreeMap<u64, u8>,
    read: u64,
}

impl Model {
    fn insert(&mut self, offset: u64, data: &[u8]) {
        for (offset, byte) in (offset..).zip(data) {
            if offset >= self.read {
                self.bytes.entry(offset).or_insert(*byte);
            }
        }
    }

    fn read(&mut self, max: usize) -> Vec<u8> {
        let mut data = Vec::new();
        while data.len() < max
            && let Some(byte) = self.bytes.remove(&self.read)
        {
            data.push(byte);
            self.read += 1;
        }
        data
    }
}

#[derive(Debug, Clone)]
enum Step {
    /// Offset, length and a salt, so that overlapping pieces differ.
    Insert(u64, usize, u8),
    Read(usize),
}

fn step(span: u64) -> impl Strategy<Value = Step> {
    let length = prop_oneof![4 => 0usize..40, 3 => 400usize..1500, 1 => 3000usize..9000];
    prop_oneof![
        6 => (0..span, length, any::<u8>()).prop_map(|(offset, length, salt)| Step::Insert(offset, length, salt)),
        1 => (1usize..3000).prop_map(Step::Read),
    ]
}

/// Exhaustive: four pieces of five bytes, in each order, with each overlap (all of them contradict each other), and nothing,
/// one byte or everything read after each.
#[test]
fn every_short_sequence_of_pieces_agrees_with_a_naive_model() {
    const BYTES: u64 = 5;
    let pieces: Vec<(u64, usize)> =
        (0..BYTES).flat_map(|offset| (1..=BYTES - offset).map(move |len| (offset, len as usize))).collect();
    let count = pieces.len();
    for portion in [0, 1, usize::MAX] {
        for code in 0..count.pow(4) {
            let (mut assembler, mut model) = (Assembler::default(), Model::default());
            for place in 0..4 {
                let (offset, length) = pieces[code / count.pow(place) % count];
                let data = vec![place as u8; length];
                model.insert(offset, &data);
                assembler.insert(offset, data.into());
                let mut read = Vec::new();
                while read.len() < portion
                    && let Some(data) = assembler.read(portion - read.len())
                {
                    read.extend_from_slice(&data);
                }
                assert_eq!(read, model.read(portion), "{code}");
                assert_eq!(assembler.read_offset(), model.read, "{code}");
                assert!(assembler.blocks.len() <= BYTES as usize, "{code}");
            }
            assert_eq!(read_all(&mut assembler, usize::MAX), model.read(usize::MAX), "{code}");
            assert!(!assembler.has_unread() || !model.bytes.is_empty(), "{code}");
        }
    }
}

/// Exhaustive: three pieces that begin and end at any of the edges of words and blocks, in each order, with each overlap (all of
/// them contradict each other). Never more memory than the window that ends behind the last byte, an eighth of it, and the slack.
#[test]
fn every_short_sequence_of_pieces_at_the_edges_of_words_and_blocks_agrees_with_a_naive_model() {
    const EDGES: [usize; 9] =
        [0, 1, 63, 64, 65, BLOCK as usize - 1, BLOCK as usize, BLOCK as usize + 1, 2 * BLOCK as usize];
    const SPAN: usize = 2 * BLOCK as usize;
    let pieces: Vec<(usize, usize)> = EDGES
        .iter()
        .flat_map(|start| EDGES.iter().map(move |end| (*start, *end)))
        .filter(|(start, end)| start < end)
        .collect();
    let contents = [1, 2, 3].map(|salt| Bytes::from(vec![salt; SPAN]));
    for (code, first) in pieces.iter().enumerate() {
        for second in &pieces {
            for third in &pieces {
                let (mut assembler, mut model) = (Assembler::default(), [0_u8; SPAN]);
                for ((start, end), content) in [first, second, third].into_iter().zip(&contents) {
                    assembler.insert(*start as u64, content.slice(start..end));
                    for byte in model[*start..*end].iter_mut().filter(|byte| **byte == 0) {
                        *byte = content[0];
                    }
                    let most = SPAN + SPAN / 8 + REASSEMBLY_SLACK as usize;
                    assert!(assembler.memory() <= most, "{code}: {} bytes", assembler.memory());
                }
                let whole = model.iter().position(|byte| *byte == 0).unwrap_or(SPAN);
                assert_eq!(assembler.contiguous(), whole as u64, "{first:?} {second:?} {third:?}");
                assert_eq!(read_all(&mut assembler, usize::MAX), model[..whole]);
                let is_left = model[whole..].iter().any(|byte| *byte != 0);
                assert_eq!(assembler.has_unread(), is_left, "{first:?} {second:?} {third:?}");
            }
        }
    }
}

proptest! {
    /// Any pieces in any order, with conflicting overlaps, read in any portions: as the model has it.
    #[test]
    fn agrees_with_a_naive_model(steps in prop::collection::vec(step(20_000), 1..120)) {
        let mut assembler = Assembler::default();
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Insert(offset, length, salt) => {
                    let data: Vec<u8> = slice_of(offset, length).iter().map(|byte| byte ^ salt).collect();
                    model.insert(offset, &data);
                    assembler.insert(offset, data.into());
                }
                Step::Read(max) => {
                    let mut read = Vec::new();
                    while read.len() < max && let Some(data) = assembler.read(max - read.len()) {
                        read.extend_from_slice(&data);
                    }
                    prop_assert_eq!(read, model.read(max));
                }
            }
            prop_assert_eq!(assembler.read_offset(), model.read);
        }
        prop_assert_eq!(read_all(&mut assembler, usize::MAX), model.read(usize::MAX));
        prop_assert!(!assembler.is_readable());
    }

    /// A stream cut into small fragments that arrive in random order comes out whole.
    #[test]
    fn a_shuffled_stream_comes_out_whole(
        order in Just((0u64..300).collect::<Vec<_>>()).prop_shuffle(),
        size in 1u64..200,
    ) {
        let mut assembler = Assembler::default();
        for index in order {
            assembler.insert(index * size, slice_of(index * size, size as usize));
        }
        prop_assert_eq!(read_all(&mut assembler, usize::MAX), slice_of(0, 300 * size as usize));
        prop_assert!(assembler.blocks.len() <= 1);
    }
}
