//! Groups of connections: who is in which, and the group policies' orders carried out.
//!
//! A group exists as long as it has members, of which each is a live connection: the peers' connections bound what is
//! kept. A client's token names a group by 128 random bits that only its members' connections carry, encrypted; a
//! connection joins from the address of the group's members only.

use std::net::IpAddr;

use posthaste_policy::Group;
use posthaste_policy::group::{MAX_MEMBERS, MemberEvent, MemberEventKind, MemberId, MemberView, Order};
use posthaste_units::{Rng, Time};

use crate::connection::Connection;
use crate::group::{GroupRequest, GroupToken};
use crate::router::keyed_map::{KeyedMap, keyed_map};
use crate::router::slots::Slots;

/// All groups of an endpoint.
pub(super) struct Groups {
    by_token: KeyedMap<GroupToken, Members>,
    /// Which group a connection is in, by its slot.
    memberships: KeyedMap<u32, GroupToken>,
    /// Connections that orders have changed: to be polled again.
    changed: Vec<u32>,
    orders: Vec<Order>,
}

/// One group.
struct Members {
    policy: Box<dyn Group>,
    address: IpAddr,
    members: Vec<(MemberId, u32)>,
    next_id: u64,
}

/// What becomes of the window that a member had, when it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// It is the others'.
    Leaves,
    /// It goes along into another group: the others' as well, it would be there twice, and a client could make windows
    /// by going to and fro.
    Keeps,
}

impl Groups {
    pub(super) fn new(rng: &mut Rng) -> Self {
        Self {
            by_token: keyed_map(rng),
            memberships: keyed_map(rng),
            changed: Vec::new(),
            orders: Vec::new(),
        }
    }

    /// Connections whose windows or rates were changed since the last call.
    pub(super) fn take_changed(&mut self) -> impl Iterator<Item = u32> + use<> {
        std::mem::take(&mut self.changed).into_iter()
    }

    /// How many the connection's group has; 1 outside groups.
    pub(super) fn members(&self, index: u32) -> usize {
        let token = self.memberships.get(&index);
        token.and_then(|token| self.by_token.get(token)).map_or(1, |group| group.members.len())
    }

    /// After the connection has acted: what it asks for is done, and its group hears what has happened to it.
    pub(super) fn coordinate(&mut self, now: Time, index: u32, slots: &mut Slots, rng: &mut Rng) {
        let Some(connection) = slots.get_mut(index) else { return };
        let GroupRequest { is_wanted, shown } = connection.take_group_request();
        if is_wanted {
            self.found(now, index, slots, rng);
        }
        if let Some(token) = shown {
            self.join(now, index, &token, slots);
        }
        let next_event = |slots: &mut Slots| slots.get_mut(index)?.next_member_event();
        while let Some(kind) = next_event(slots) {
            self.tell(now, index, kind, slots);
        }
    }

    /// The connection begins a group.
    fn found(&mut self, now: Time, index: u32, slots: &mut Slots, rng: &mut Rng) {
        let Some(connection) = slots.get_mut(index) else { return };
        let Some(policy) = connection.group_policy() else { return };
        let mut token = GroupToken::default();
        rng.fill(&mut token);
        connection.send_group_token(token);
        let address = connection.remote().ip().to_canonical();
        self.by_token.insert(token, Members { policy, address, members: Vec::new(), next_id: 0 });
        self.enter(now, index, token, slots);
    }

    /// The connection joins the group of another, if it may; if not, it stays where it is.
    fn join(&mut self, now: Time, index: u32, token: &GroupToken, slots: &mut Slots) {
        let Some(connection) = slots.get_mut(index) else { return };
        let address = connection.remote().ip().to_canonical();
        let is_good = self.by_token.get(token).is_some_and(|group| {
            group.address == address
                && group.members.len() < MAX_MEMBERS
                && group.members.iter().all(|(_, member)| *member != index)
        });
        if is_good {
            self.part(now, index, slots, Part::Keeps);
            self.enter(now, index, *token, slots);
        }
    }

    fn enter(&mut self, now: Time, index: u32, token: GroupToken, slots: &mut Slots) {
        let Some(connection) = slots.get_mut(index) else { return };
        let Some(group) = self.by_token.get_mut(&token) else { return };
        connection.become_member(now, group.policy.is_told_of_acks());
        group.members.push((MemberId(group.next_id), index));
        group.next_id += 1;
        self.memberships.insert(index, token);
        self.tell(now, index, MemberEventKind::Joined, slots);
    }

    /// The connection is no member any more: it has ended, or left the address that its group is at.
    pub(super) fn leave(&mut self, now: Time, index: u32, slots: &mut Slots) {
        self.part(now, index, slots, Part::Leaves);
    }

    fn part(&mut self, now: Time, index: u32, slots: &mut Slots, part: Part) {
        let Some(token) = self.memberships.remove(&index) else { return };
        let Some(group) = self.by_token.get_mut(&token) else { return };
        let place = group.members.iter().position(|(_, member)| *member == index);
        let Some((member, _)) = place.map(|place| group.members.remove(place)) else { return };
        let is_last = group.members.is_empty();
        let window = slots.get_mut(index).and_then(Connection::leave_group);
        if is_last {
            self.by_token.remove(&token);
            return;
        }
        let window = window.filter(|_| part == Part::Leaves).unwrap_or_default();
        let kind = MemberEventKind::Left { window };
        self.decide(MemberEvent { now, member, kind }, &token, slots);
    }

    /// Leaves if the connection's address is not its group's any more.
    pub(super) fn on_moved(&mut self, now: Time, index: u32, slots: &mut Slots) {
        let Some(token) = self.memberships.get(&index) else { return };
        let is_elsewhere = slots.get(index).is_some_and(|connection| {
            let address = connection.remote().ip().to_canonical();
            self.by_token.get(token).is_some_and(|group| group.address != address)
        });
        if is_elsewhere {
            self.leave(now, index, slots);
        }
    }

    fn tell(&mut self, now: Time, index: u32, kind: MemberEventKind, slots: &mut Slots) {
        let Some(token) = self.memberships.get(&index).copied() else { return };
        let Some(group) = self.by_token.get(&token) else { return };
        let Some((member, _)) = group.members.iter().find(|(_, at)| *at == index) else { return };
        self.decide(MemberEvent { now, member: *member, kind }, &token, slots);
    }

    /// Asks the policy, and carries its orders out.
    fn decide(&mut self, event: MemberEvent, token: &GroupToken, slots: &mut Slots) {
        let Self { by_token, changed, orders, .. } = self;
        let Some(group) = by_token.get_mut(token) else { return };
        let view = |(id, index): &(MemberId, u32)| -> Option<MemberView> {
            Some(slots.get(*index)?.member_view(*id))
        };
        let views: Vec<MemberView> = group.members.iter().filter_map(view).collect();
        group.policy.on_event(&event, &views, orders);
        for order in orders.drain(..) {
            let place = group.members.iter().find(|(id, _)| *id == order.member);
            let Some((_, index)) = place else { continue };
            if let Some(connection) = slots.get_mut(*index) {
                connection.obey(event.now, &order.action);
                changed.push(*index);
            }
        }
    }
}
