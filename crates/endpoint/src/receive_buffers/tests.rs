use bytes::Bytes;

use super::*;

fn collect(arenas: &mut Arenas, reception: &[u8], stride: usize) -> Vec<BytesMut> {
    arenas.place(reception, stride).collect()
}

fn pattern(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|index| (index as u8).wrapping_mul(31).wrapping_add(seed)).collect()
}

#[test]
fn a_reception_is_cut_at_its_stride_and_nothing_is_lost() {
    let mut arenas = Arenas::new();
    for (length, stride, expected) in [
        (5000, 1252, 4),
        (2504, 1252, 2),
        (100, 100, 1),
        (100, 2000, 1),
        (7, 0, 1),
        (7, 1, 7),
        (0, 0, 0),
        (65_507, 1252, 53),
    ] {
        let reception = pattern(length, 3);
        let datagrams = collect(&mut arenas, &reception, stride);
        assert_eq!(datagrams.len(), expected, "{length} bytes by {stride}");
        assert_eq!(datagrams.concat(), reception);
    }
}

#[test]
fn data_that_was_read_makes_room_for_more() {
    let mut arenas = Arenas::new();
    for round in 0..1000u32 {
        let reception = pattern(60_000, round as u8);
        let datagrams = collect(&mut arenas, &reception, 1252);
        assert_eq!(datagrams.concat(), reception);
    }
    assert!(arenas.spent.len() <= 1, "{} arenas for data that is read at once", arenas.spent.len());
}

#[test]
fn data_that_is_kept_is_never_overwritten_and_pins_a_bounded_amount() {
    let mut arenas = Arenas::new();
    let mut kept: Vec<(Bytes, u8)> = Vec::new();
    for round in 0..2000u32 {
        let datagrams = collect(&mut arenas, &pattern(12_520, round as u8), 1252);
        // The worst reader: it keeps one datagram of each reception.
        kept.push((datagrams.into_iter().next().unwrap().freeze(), round as u8));
    }
    assert!(arenas.spent.len() < MAX_ARENAS);
    for (data, seed) in &kept {
        assert_eq!(data[..], pattern(1252, *seed)[..]);
    }
    // Once it is read, the arenas are used again, and those not needed are given back.
    kept.clear();
    for round in 0..2000u32 {
        collect(&mut arenas, &pattern(60_000, round as u8), 1252);
    }
    assert!(arenas.spent.len() <= 8, "{} arenas are left", arenas.spent.len());
}

#[test]
fn a_datagram_that_is_never_read_does_not_hide_free_arenas() {
    let mut arenas = Arenas::new();
    let mut pinned = Vec::new();
    for round in 0..20u8 {
        pinned.extend(collect(&mut arenas, &pattern(60_000, round), 60_000));
    }
    let before = arenas.spent.len();
    for round in 0..200u8 {
        collect(&mut arenas, &pattern(60_000, round), 1252);
    }
    assert!(arenas.spent.len() <= before + 2, "{before} grew to {}", arenas.spent.len());
    assert_eq!(pinned[3][..], pattern(60_000, 3)[..]);
}

#[test]
fn free_arenas_are_given_back_without_further_data() {
    let mut arenas = Arenas::new();
    let mut kept: Vec<_> =
        (0..100).flat_map(|round| collect(&mut arenas, &pattern(60_000, round), 60_000)).collect();
    let before = arenas.spent.len();
    arenas.trim();
    assert_eq!(arenas.spent.len(), before, "all of them are in use");
    let last = kept.split_off(99);
    let pinned = kept.swap_remove(50);
    drop(kept);
    arenas.trim();
    assert!(arenas.spent.len() <= KEPT + 1, "{} of {before} arenas are left", arenas.spent.len());
    assert_eq!((&pinned[..], &last[0][..]), (&pattern(60_000, 50)[..], &pattern(60_000, 99)[..]));
    collect(&mut arenas, &pattern(60_000, 7), 1252);
}

#[test]
fn an_arena_is_written_no_further_than_its_size() {
    let mut arenas = Arenas::new();
    let first = collect(&mut arenas, &[1; 1_000], 1_000)[0].as_ptr();
    for round in 0..100 {
        let datagrams = collect(&mut arenas, &pattern(1_000, round), 1_000);
        let (from, to) = (first as usize, datagrams[0].as_ptr() as usize + 1_000);
        assert!(
            (from..=from + ARENA).contains(&to),
            "{} bytes from the arena's start",
            to.wrapping_sub(from)
        );
    }
    for round in 0..100 {
        let datagrams = collect(&mut arenas, &pattern(60_000, round), 60_000);
        let to = datagrams[0].as_ptr() as usize + 60_000;
        assert!((first as usize..=first as usize + ARENA).contains(&to));
    }
}

#[test]
fn receptions_are_what_the_system_filled() {
    let mut buffers = ReceiveBuffers::new();
    let filled = buffers.fill(|slices, metas| {
        assert_eq!(slices.len(), metas.len());
        assert!(slices.iter().all(|slice| slice.len() == RECEPTION));
        slices[1][..3].copy_from_slice(b"two");
        metas[1].len = 3;
        metas[1].stride = 3;
        Ok(2)
    });
    assert_eq!(filled.unwrap(), 2);
    let receptions: Vec<_> = buffers.receptions().map(|(_, data)| data.to_vec()).collect();
    assert_eq!(receptions, [Vec::new(), b"two".to_vec()]);
    assert!(buffers.fill(|_, _| Err(std::io::ErrorKind::WouldBlock.into())).is_err());
    assert_eq!(buffers.receptions().count(), 0, "a failed reception leaves nothing of the one before");
}
