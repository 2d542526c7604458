use std::future::{pending, ready};
use std::pin::pin;

use tokio::sync::Notify;
use tokio::time::timeout;

use super::*;

fn slots(max_requests: usize, max_requests_per_client: usize, max_stalled: usize) -> Slots {
    Slots::new(&ServerOptions {
        max_requests,
        max_requests_per_client,
        max_stalled,
        ..ServerOptions::default()
    })
}

fn client(number: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, number])
}

/// Whether a slot is to be had at once.
async fn is_free(slots: &Slots, number: u8) -> bool {
    timeout(Duration::from_millis(1), slots.seat(client(number))).await.is_ok()
}

#[tokio::test]
async fn a_client_has_its_share_and_no_more() {
    let slots = slots(4, 2, 10);
    let held = [slots.seat(client(1)).await, slots.seat(client(1)).await];
    assert!(!is_free(&slots, 1).await);
    assert!(is_free(&slots, 2).await);
    let others = [slots.seat(client(2)).await, slots.seat(client(2)).await];
    assert!(!is_free(&slots, 3).await, "all are taken");
    drop(others);
    assert!(!is_free(&slots, 1).await);
    drop(held);
    assert!(is_free(&slots, 1).await);
}

#[tokio::test]
async fn who_waits_for_a_client_holds_no_slot_and_has_one_again_afterwards() {
    let slots = slots(1, 1, 10);
    let go = Notify::new();
    let mut seat = slots.seat(client(1)).await;
    assert_eq!(seat.wait(pin!(ready(7))).await, Waited::Done(7));
    assert!(!is_free(&slots, 2).await, "nothing was waited for");
    let going = pin!(go.notified());
    let waiting = seat.wait(going);
    let others = async {
        assert!(is_free(&slots, 2).await);
        assert!(is_free(&slots, 1).await);
        go.notify_one();
    };
    assert_eq!(tokio::join!(waiting, others).0, Waited::Done(()));
    assert!(!is_free(&slots, 2).await);
    drop(seat);
    assert!(is_free(&slots, 2).await);
    assert!(lock(&slots.places).taken.is_empty());
}

#[tokio::test]
async fn the_longest_wait_ends_where_places_run_out_and_not_before_it_is_long() {
    let slots = slots(10, 10, 2);
    let mut seats = Vec::new();
    for number in 0..4 {
        seats.push(slots.seat(client(number)).await);
    }
    let [first, second, third, fourth] = &mut seats[..] else { panic!("four seats") };
    let soon = Duration::from_millis(1);
    {
        let for_ever = (pin!(pending::<()>()), pin!(pending::<()>()));
        let (mut first, mut second) = (pin!(first.wait(for_ever.0)), pin!(second.wait(for_ever.1)));
        assert!(futures::poll!(&mut first).is_pending() && futures::poll!(&mut second).is_pending());
        assert!(timeout(soon, third.wait(pin!(pending::<()>()))).await.is_err());
        assert_eq!(slots.all.available_permits(), 8, "without a place it keeps its slot");
        lock(&slots.places).least_wait = Duration::ZERO;
        assert!(timeout(soon, fourth.wait(pin!(pending::<()>()))).await.is_err(), "it has a place");
        assert_eq!(futures::poll!(&mut first), Poll::Ready(Waited::Evicted));
        assert!(futures::poll!(&mut second).is_pending());
    }
    assert!(lock(&slots.places).taken.is_empty());
}

#[tokio::test]
async fn who_found_no_place_gives_up_the_slot_as_soon_as_the_longest_wait_is_long() {
    let slots = slots(2, 2, 1);
    let least_wait = Duration::from_millis(200);
    lock(&slots.places).least_wait = least_wait;
    let (mut first, mut second) = (slots.seat(client(1)).await, slots.seat(client(1)).await);
    let for_ever = (pin!(pending::<()>()), pin!(pending::<()>()));
    let (mut gone, mut held) = (pin!(first.wait(for_ever.0)), pin!(second.wait(for_ever.1)));
    assert!(futures::poll!(&mut gone).is_pending() && futures::poll!(&mut held).is_pending());
    let another = slots.seat(client(1)).await;
    assert_eq!(slots.all.available_permits(), 0, "one has a slot and no place");
    let next = timeout(least_wait * 100, async {
        tokio::select! {
            _ = &mut held => panic!("nothing came"),
            seat = slots.seat(client(1)) => seat,
        }
    });
    assert!(next.await.is_ok(), "nobody else has to wait for that");
    assert_eq!(gone.await, Waited::Evicted);
    drop(another);
}

#[tokio::test]
async fn shares_of_clients_that_are_gone_are_forgotten() {
    let slots = slots(10, 10, 10);
    let kept = slots.seat(client(1)).await;
    for number in 0..10_000_u32 {
        drop(slots.seat(IpAddr::from(number.to_be_bytes())).await);
    }
    assert!(lock(&slots.shares).of.len() <= LEAST_SHARES);
    drop(kept);
}
