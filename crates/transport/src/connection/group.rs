//! A connection as a member of a group.

use posthaste_policy::Group;
use posthaste_policy::group::{Action, MemberEventKind, MemberId, MemberView};
use posthaste_units::Time;
use posthaste_wire::{Side, TransportParameters};

use crate::connection::Connection;
use crate::error::{LocalError, PeerError, TransportErrorCode};
use crate::events::Event;
use crate::group::{GroupRequest, GroupToken, Grouping};

/// A connection as the router sees it: as a member of a group.
impl Connection {
    /// What the connection asks for, once.
    pub(crate) fn take_group_request(&mut self) -> GroupRequest {
        let Grouping { is_wanted, shown, .. } = &mut self.grouping;
        GroupRequest { is_wanted: std::mem::take(is_wanted), shown: shown.take() }
    }

    /// The policy of a group that the connection begins.
    pub(crate) fn group_policy(&self) -> Option<Box<dyn Group>> {
        self.config.profile.group()
    }

    /// Tells the peer the name of the group.
    pub(crate) fn send_group_token(&mut self, token: GroupToken) {
        self.grouping.send(token);
    }

    /// From now on what happens on the path is kept for the group's policy; `tells_acks` if it wants to know of each.
    pub(crate) fn become_member(&mut self, now: Time, tells_acks: bool) {
        self.path.control.join_group(now, tells_acks);
    }

    /// What the group is to hear next.
    pub(crate) fn next_member_event(&mut self) -> Option<MemberEventKind> {
        self.path.control.next_member_event()
    }

    pub(crate) fn member_view(&self, id: MemberId) -> MemberView {
        self.path.control.member_view(id)
    }

    /// Carries out what the group's policy has ordered.
    pub(crate) fn obey(&mut self, now: Time, action: &Action) {
        self.path.control.obey(now, action);
    }
}

impl Connection {
    /// On a client: the name of the group that the server has put the connection into, once it has
    /// ([`Event::Grouped`] tells when). Other connections to the server join the group with it.
    pub fn group_token(&self) -> Option<GroupToken> {
        self.grouping.name
    }

    /// On a client that asked for coordination ([`ClientConfig::group_size`](crate::ClientConfig::group_size)): the most
    /// connections that the server coordinates. `None` until the handshake is complete, and if it forms no groups.
    pub fn group_limit(&self) -> Option<u64> {
        self.grouping.peer_size.filter(|_| self.side() == Side::Client && self.grouping.is_offered)
    }

    /// On a client: has the server put this connection into the group of another one, whose
    /// [`Self::group_token`] this is. Servers pass over tokens that are not good.
    ///
    /// # Errors
    /// [`LocalError::NotNow`] on a server, or if the server forms no groups; [`LocalError::TooEarly`] before the
    /// handshake is complete; [`LocalError::Closed`] on a closed connection.
    pub fn join_group(&mut self, token: GroupToken) -> Result<(), LocalError> {
        if self.is_closed() {
            return Err(LocalError::Closed);
        }
        if self.is_handshaking() {
            return Err(LocalError::TooEarly);
        }
        if self.side() == Side::Server || self.grouping.peer_size.is_none() {
            return Err(LocalError::NotNow);
        }
        self.grouping.send(token);
        Ok(())
    }

    /// The peer's parameters are known: a client that means to open several connections begins each with a part of
    /// the window.
    pub(crate) fn on_group_size(&mut self, parameters: &TransportParameters) {
        let Some(size) = parameters.group_size else { return };
        self.grouping.peer_size = Some(size);
        if self.side() == Side::Server
            && let Some(group) = self.config.profile.group()
        {
            self.grouping.is_wanted = true;
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            let window = group.initial_window(self.path.control.state().window, size);
            self.path.control.begin_with(window);
        }
    }

    /// The peer sends `GROUP_TOKEN`.
    pub(crate) fn on_group_token(&mut self, token: GroupToken) -> Result<(), PeerError> {
        if !self.grouping.is_offered {
            let reason = "GROUP_TOKEN without group_size";
            return Err(PeerError::new(TransportErrorCode::FRAME_ENCODING_ERROR, reason));
        }
        match self.side() {
            Side::Server => self.grouping.shown = Some(token),
            Side::Client => {
                if self.grouping.name.replace(token) != Some(token) {
                    self.emit(Event::Grouped);
                }
            }
        }
        Ok(())
    }
}
