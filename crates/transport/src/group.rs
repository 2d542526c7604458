//! A connection's side of groups: `GROUP_TOKEN` frames and the parameter `group_size` (`docs/spec/groups.md`). What the
//! members of a group have in common is the router's (`router/groups.rs`).

pub(crate) mod membership;

use posthaste_wire::Frame;
use posthaste_wire::frame::group::TOKEN_LEN;

use crate::packet::frame_owner::FrameOwner;
use crate::packet::frame_writer::FrameWriter;
use crate::packet::sent_frame::SentFrame;

/// The name of a group: whoever knows it, and comes from the address of its members, may join.
pub type GroupToken = [u8; TOKEN_LEN];

/// What a connection knows of its group.
#[derive(Debug, Default)]
pub(crate) struct Grouping {
    /// This end has sent `group_size`, so that the peer may send the frame.
    pub(crate) is_offered: bool,
    /// The peer's `group_size`, if it has sent one.
    pub(crate) peer_size: Option<u64>,
    /// On a server: the client has asked to be in a group, and the router has not seen to it yet.
    pub(crate) is_wanted: bool,
    /// On a server: the token that the client has shown last, until the router has looked at it.
    pub(crate) shown: Option<GroupToken>,
    /// On a client: the name of the group that the connection is in.
    pub(crate) name: Option<GroupToken>,
    /// The token that this end has sent, or is to send.
    outgoing: Option<GroupToken>,
    /// The same while it is to be sent.
    unsent: Option<GroupToken>,
}

impl Grouping {
    pub(crate) fn new(is_offered: bool) -> Self {
        Self { is_offered, ..Self::default() }
    }

    /// Sends the token to the peer.
    pub(crate) fn send(&mut self, token: GroupToken) {
        self.outgoing = Some(token);
        self.unsent = Some(token);
    }
}

impl FrameOwner for Grouping {
    fn has_unsent(&self) -> bool {
        self.unsent.is_some()
    }

    fn write(&mut self, writer: &mut FrameWriter<'_>) {
        let record = Some(SentFrame::GroupToken);
        self.unsent.take_if(|token| writer.push(&Frame::GroupToken(*token), record));
    }

    fn on_acked(&mut self, frame: &SentFrame) -> bool {
        matches!(frame, SentFrame::GroupToken)
    }

    /// The newest token goes again.
    fn on_lost(&mut self, frame: &SentFrame) -> bool {
        let is_own = matches!(frame, SentFrame::GroupToken);
        if is_own {
            self.unsent = self.outgoing;
        }
        is_own
    }
}

/// What a connection asks of the router.
pub(crate) struct GroupRequest {
    /// It is to be put into a group of its own.
    pub(crate) is_wanted: bool,
    /// The token of the group that it asks to join.
    pub(crate) shown: Option<GroupToken>,
}
