//! State of the three packet number spaces, of which two end with the handshake.

use std::ops::{Index, IndexMut};

use super::space::PacketSpace;

/// A type that has one value for "nothing has happened yet".
pub(crate) trait Blank: Default + 'static {
    /// The value of [`Default`].
    const BLANK: &'static Self;
}

/// One value per packet number space, as [`PerSpace`](super::space::PerSpace), for values that are large: those of the
/// handshake's spaces take memory from their first change until they are discarded, which is long before most connections
/// end.
#[derive(Debug, Default)]
pub(crate) struct EarlySpaces<T> {
    initial: Option<Box<T>>,
    handshake: Option<Box<T>>,
    data: T,
}

impl<T: Blank> EarlySpaces<T> {
    /// With this value for the 1-RTT space.
    pub(crate) fn with_data(data: T) -> Self {
        Self { initial: None, handshake: None, data }
    }

    /// Sets a space's value back to the blank one.
    pub(crate) fn discard(&mut self, space: PacketSpace) {
        match space {
            PacketSpace::Initial => self.initial = None,
            PacketSpace::Handshake => self.handshake = None,
            PacketSpace::Data => self.data = T::default(),
        }
    }

    /// The values that take memory.
    pub(crate) fn used(&mut self) -> impl Iterator<Item = &mut T> {
        let early = [self.initial.as_deref_mut(), self.handshake.as_deref_mut()];
        early.into_iter().flatten().chain([&mut self.data])
    }
}

impl<T: Blank> Index<PacketSpace> for EarlySpaces<T> {
    type Output = T;
    fn index(&self, space: PacketSpace) -> &T {
        match space {
            PacketSpace::Initial => self.initial.as_deref().unwrap_or(T::BLANK),
            PacketSpace::Handshake => self.handshake.as_deref().unwrap_or(T::BLANK),
            PacketSpace::Data => &self.data,
        }
    }
}

impl<T: Blank> IndexMut<PacketSpace> for EarlySpaces<T> {
    fn index_mut(&mut self, space: PacketSpace) -> &mut T {
        match space {
            PacketSpace::Initial => self.initial.get_or_insert_default(),
            PacketSpace::Handshake => self.handshake.get_or_insert_default(),
            PacketSpace::Data => &mut self.data,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Blank for u64 {
        const BLANK: &'static Self = &0;
    }

    #[test]
    fn spaces_of_the_handshake_take_memory_while_they_are_in_use() {
        let mut spaces = EarlySpaces::with_data(3_u64);
        assert_eq!(PacketSpace::ALL.map(|space| spaces[space]), [0, 0, 3]);
        assert_eq!(spaces.used().count(), 1);
        spaces[PacketSpace::Handshake] = 7;
        spaces[PacketSpace::Data] += 1;
        assert_eq!(PacketSpace::ALL.map(|space| spaces[space]), [0, 7, 4]);
        assert_eq!(spaces.used().map(|value| *value).collect::<Vec<_>>(), [7, 4]);
        spaces.discard(PacketSpace::Handshake);
        assert_eq!(PacketSpace::ALL.map(|space| spaces[space]), [0, 0, 4]);
        assert_eq!(spaces.used().count(), 1);
    }
}
