//! The three packet number spaces (RFC 9000 section 12.3).

/// Names a packet number space.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum SpaceId {
    /// Initial packets.
    Initial,
    /// Handshake packets.
    Handshake,
    /// 0-RTT and 1-RTT packets.
    Data,
}

impl SpaceId {
    /// All spaces, in the order in which their packets are coalesced.
    pub(crate) const ALL: [Self; 3] = [Self::Initial, Self::Handshake, Self::Data];
}

/// One value a packet number space.
#[derive(Debug, Default)]
pub(crate) struct PerSpace<T> {
    initial: T,
    handshake: T,
    data: T,
}

impl<T> PerSpace<T> {
    /// The value of each space made by `make`.
    pub(crate) fn from_fn(mut make: impl FnMut(SpaceId) -> T) -> Self {
        Self {
            initial: make(SpaceId::Initial),
            handshake: make(SpaceId::Handshake),
            data: make(SpaceId::Data),
        }
    }
}

impl<T> std::ops::Index<SpaceId> for PerSpace<T> {
    type Output = T;
    fn index(&self, space: SpaceId) -> &T {
        match space {
            SpaceId::Initial => &self.initial,
            SpaceId::Handshake => &self.handshake,
            SpaceId::Data => &self.data,
        }
    }
}

impl<T> std::ops::IndexMut<SpaceId> for PerSpace<T> {
    fn index_mut(&mut self, space: SpaceId) -> &mut T {
        match space {
            SpaceId::Initial => &mut self.initial,
            SpaceId::Handshake => &mut self.handshake,
            SpaceId::Data => &mut self.data,
        }
    }
}
