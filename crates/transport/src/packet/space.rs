//! The three packet number spaces (RFC 9000 section 12.3).

pub(crate) use posthaste_policy::sample::PacketSpace;

/// One value per packet number space.
#[derive(Debug, Default)]
pub(crate) struct PerSpace<T> {
    initial: T,
    handshake: T,
    data: T,
}

impl<T> std::ops::Index<PacketSpace> for PerSpace<T> {
    type Output = T;
    fn index(&self, space: PacketSpace) -> &T {
        match space {
            PacketSpace::Initial => &self.initial,
            PacketSpace::Handshake => &self.handshake,
            PacketSpace::Data => &self.data,
        }
    }
}

impl<T> std::ops::IndexMut<PacketSpace> for PerSpace<T> {
    fn index_mut(&mut self, space: PacketSpace) -> &mut T {
        match space {
            PacketSpace::Initial => &mut self.initial,
            PacketSpace::Handshake => &mut self.handshake,
            PacketSpace::Data => &mut self.data,
        }
    }
}
