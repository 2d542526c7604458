use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::inbox::{Inbox, PARTS};

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Takes in receptions of so many bytes and such strides, each from a port of its own.
fn receive(inbox: &mut Inbox, receptions: &[(usize, usize)]) {
    let filled = inbox.buffers().fill(|slices, metas| {
        for (index, (length, stride)) in receptions.iter().enumerate() {
            slices[index][..*length].fill(index as u8);
            metas[index].len = *length;
            metas[index].stride = *stride;
            metas[index].addr = SocketAddr::new(LOCAL, index as u16);
            metas[index].dst_ip = Some(LOCAL);
        }
        Ok(receptions.len())
    });
    assert_eq!(filled.unwrap(), receptions.len());
    inbox.begin();
}

/// The rest of the batch: of each datagram its port, its length, and whether its local address is known.
fn rest(inbox: &mut Inbox) -> Vec<(u16, usize, bool)> {
    let next = || {
        let datagram = inbox.take()?;
        assert!(datagram.iter().all(|byte| u16::from(*byte) == inbox.info().remote.port()));
        Some((inbox.info().remote.port(), datagram.len(), inbox.info().local_ip.is_some()))
    };
    std::iter::from_fn(next).collect()
}

#[test]
fn a_batch_is_handed_on_in_its_order_and_in_few_parts() {
    let mut inbox = Inbox::new();
    assert!(inbox.is_empty());
    for _ in 0..3 {
        receive(&mut inbox, &[(2_500, 1_000), (0, 0), (7, 7), (9, 0)]);
        assert_eq!(inbox.part(), 2, "five datagrams in at most {PARTS} parts");
        let expected = [(0, 1_000, true), (0, 1_000, true), (0, 500, true), (2, 7, true), (3, 9, true)];
        assert_eq!(rest(&mut inbox), expected);
        assert!(inbox.is_empty());
    }
    receive(&mut inbox, &[(30_000, 100); 5]);
    assert_eq!(1_500_usize.div_ceil(inbox.part()), PARTS);
    receive(&mut inbox, &[(0, 0)]);
    assert!(inbox.is_empty() && inbox.take().is_none(), "an empty datagram is nothing to hand on");
}

#[test]
fn what_came_by_a_replaced_socket_has_no_local_address() {
    let mut inbox = Inbox::new();
    receive(&mut inbox, &[(20, 10), (10, 10)]);
    assert_eq!(inbox.take().unwrap().len(), 10);
    assert!(inbox.info().local_ip.is_some());
    inbox.set_late();
    assert_eq!(rest(&mut inbox), [(0, 10, false), (1, 10, false)]);
    receive(&mut inbox, &[(10, 10)]);
    assert_eq!(rest(&mut inbox), [(0, 10, true)], "the next batch is the new socket's");
}
