use proptest::prelude::*;

use super::*;

/// DATA in pieces, type 0x40 passed over, everything else whole.
fn judge(frame_type: u64, length: u64) -> Result<Admission, Error> {
    match frame_type {
        DATA => Ok(Admission::Pieces),
        0x40 => Ok(Admission::Skip),
        _ => whole_up_to(length, 1000),
    }
}

fn read_all(reader: &mut FrameReader, chunks: &[&[u8]]) -> Result<Vec<Item>, Error> {
    let mut items = Vec::new();
    for chunk in chunks {
        let mut input = Bytes::copy_from_slice(chunk);
        while let Some(item) = reader.next(&mut input, judge)? {
            items.push(item);
        }
        assert!(input.is_empty());
    }
    Ok(items)
}

fn whole(frame_type: u64, payload: &'static [u8]) -> Item {
    Item::Whole { frame_type, payload: Bytes::from_static(payload) }
}

#[test]
fn data_is_handed_on_without_a_copy() {
    let mut reader = FrameReader::default();
    let mut input = Bytes::from(b"\x00\x05abc".to_vec());
    let body = input.slice(2..);
    let Some(Item::Piece(piece)) = reader.next(&mut input, judge).unwrap() else { panic!("no piece") };
    assert_eq!((piece.as_ref(), piece.as_ptr()), (b"abc".as_slice(), body.as_ptr()));
    assert!(reader.end().is_err(), "two bytes are missing");
    assert_eq!(read_all(&mut reader, &[b"de"]).unwrap(), [Item::Piece(Bytes::from_static(b"de"))]);
    reader.end().unwrap();
}

#[test]
fn frames_are_found_however_they_are_cut() {
    let stream = b"\x04\x00\x01\x03abc\x40\x40\x02xx\x00\x00\x07\x40\x01d";
    let expected = [whole(SETTINGS, b""), whole(HEADERS, b"abc"), whole(GOAWAY, b"d")];
    assert_eq!(read_all(&mut FrameReader::default(), &[stream]).unwrap(), expected);
    let single: Vec<&[u8]> = stream.chunks(1).collect();
    assert_eq!(read_all(&mut FrameReader::default(), &single).unwrap(), expected);
}

#[test]
fn an_empty_frame_needs_no_further_byte() {
    assert_eq!(read_all(&mut FrameReader::default(), &[b"\x01\x00"]).unwrap(), [whole(HEADERS, b"")]);
}

#[test]
fn the_judge_speaks_before_the_payload_comes() {
    let error = read_all(&mut FrameReader::default(), &[b"\x01\x43\xe9"]).unwrap_err();
    assert_eq!(error.code, Code::H3_EXCESSIVE_LOAD);
}

#[test]
fn what_is_passed_over_is_not_kept() {
    let mut reader = FrameReader::default();
    // 2^62 - 1 bytes of an unknown frame.
    read_all(&mut reader, &[b"\x40\x40", &[0xff; 8], &[1; 5000]]).unwrap();
    assert_eq!(reader.kept(), 0);
    assert!(reader.end().is_err());
}

#[test]
fn an_end_within_a_header_is_noticed() {
    for start in [b"\x01".as_slice(), b"\x40", b"\x01\x40", b"\x01\x02a"] {
        let mut reader = FrameReader::default();
        read_all(&mut reader, &[start]).unwrap();
        assert_eq!(reader.end().unwrap_err().code, Code::H3_FRAME_ERROR, "{start:?}");
    }
}

proptest! {
    #[test]
    fn frames_survive_any_cut(
        frames in prop::collection::vec((1..0x30_u64, prop::collection::vec(any::<u8>(), 0..200)), 0..8),
        size in 1..50_usize,
    ) {
        let mut stream = Vec::new();
        for (frame_type, payload) in &frames {
            write(&mut stream, *frame_type, payload);
        }
        let chunks: Vec<&[u8]> = stream.chunks(size).collect();
        let mut reader = FrameReader::default();
        let items = read_all(&mut reader, &chunks).unwrap();
        let expected: Vec<Item> = frames
            .into_iter()
            .map(|(frame_type, payload)| Item::Whole { frame_type, payload: payload.into() })
            .collect();
        prop_assert_eq!(items, expected);
        prop_assert!(reader.end().is_ok());
    }

    #[test]
    fn no_more_is_kept_than_was_admitted(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..20)) {
        let mut reader = FrameReader::default();
        for chunk in &chunks {
            if read_all(&mut reader, &[chunk]).is_err() {
                return Ok(());
            }
            prop_assert!(reader.kept() <= 1000);
        }
    }
}
