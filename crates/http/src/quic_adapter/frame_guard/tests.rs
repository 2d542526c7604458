use proptest::prelude::*;

use super::*;

/// A variable-length integer in its 8-byte form, which is valid for every value.
fn integer(value: u64) -> [u8; 8] {
    (value | 0xc000_0000_0000_0000).to_be_bytes()
}

fn frame(frame_type: u64, length: u64, payload: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(integer(frame_type));
    bytes.extend(integer(length));
    bytes.resize(bytes.len() + payload, 0xff);
    bytes
}

#[test]
fn data_may_be_of_any_length() {
    assert_eq!(FrameGuard::for_request().inspect(&frame(DATA, 1 << 40, 100_000)), Ok(()));
}

#[test]
fn headers_and_unknown_frames_are_bounded() {
    for frame_type in [0x01, 0x04, 0x21, 0xf0_0700] {
        let most = frame(frame_type, MAX_FRAME_PAYLOAD, MAX_FRAME_PAYLOAD as usize);
        assert_eq!(FrameGuard::for_request().inspect(&most), Ok(()), "{frame_type:#x}");
        let more = frame(frame_type, MAX_FRAME_PAYLOAD + 1, 0);
        let oversized = OversizedFrame { frame_type, length: MAX_FRAME_PAYLOAD + 1 };
        assert_eq!(FrameGuard::for_request().inspect(&more), Err(oversized));
    }
}

#[test]
fn of_unidirectional_streams_only_the_control_stream_has_frames() {
    let oversized = frame(0x04, 1 << 30, 0);
    let control = [&[0x00], oversized.as_slice()].concat();
    assert!(FrameGuard::for_uni().inspect(&control).is_err());
    for stream_type in [0x01, 0x02, 0x03, 0x3f] {
        let other = [&[stream_type], oversized.as_slice()].concat();
        assert!(FrameGuard::for_uni().inspect(&other).is_ok());
    }
}

proptest! {
    /// However a stream is cut into chunks, the verdict is the same, and an oversized frame after any others is seen.
    #[test]
    fn cutting_changes_nothing(
        lengths in proptest::collection::vec((0u64..4, 0usize..300), 0..8),
        oversized in any::<bool>(),
        cut in 1usize..50,
    ) {
        let mut stream = Vec::new();
        for (frame_type, length) in lengths {
            stream.extend(frame(frame_type, length as u64, length));
        }
        if oversized {
            stream.extend(frame(1, MAX_FRAME_PAYLOAD + 1, 3));
        }
        let mut guard = FrameGuard::for_request();
        let verdict = stream.chunks(cut).try_for_each(|chunk| guard.inspect(chunk));
        prop_assert_eq!(verdict.is_err(), oversized);
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = FrameGuard::for_uni().inspect(&bytes);
        let _ = FrameGuard::for_request().inspect(&bytes);
    }
}
