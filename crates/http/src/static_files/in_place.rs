//! Looks at a file without ever waiting: for the threads that drive connections.
//!
//! Linux 5.12 resolves a path from what the kernel has in memory, or says that it would have to ask a disk or a server
//! (`RESOLVE_CACHED`). Elsewhere nothing is known in place, and blocking threads do the work.

use std::fs::File;
use std::path::Path;

use super::stamp::Stamp;

/// Whether `path`, which is absolute, still leads to the file in the state of `stamp`, and through no link. False if that
/// cannot be said at once. Only for files that were on a local file system ([`is_local`]).
#[cfg(target_os = "linux")]
pub(super) fn is_unchanged(path: &Path, stamp: &Stamp) -> bool {
    use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, StatxFlags, makedev, openat2, statx};

    // Without links, what is found is below the directory that the path was made from.
    let resolve = ResolveFlags::CACHED | ResolveFlags::NO_SYMLINKS;
    let Ok(place) = openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve) else {
        return false;
    };
    // Something else may have been mounted over it, whose server is gone. This asks for nothing that it would be asked for.
    let nothing = StatxFlags::empty();
    let is_there = statx(&place, "", AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC, nothing)
        .is_ok_and(|found| makedev(found.stx_dev_major, found.stx_dev_minor) == stamp.device());
    is_there && File::from(place).metadata().is_ok_and(|metadata| Stamp::of(&metadata) == *stamp)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn is_unchanged(_: &Path, _: &Stamp) -> bool {
    false
}

/// Whether the file is on a file system that knows its files' states without asking another machine or another process.
/// Blocks.
#[cfg(target_os = "linux")]
pub(super) fn is_local(file: &File) -> bool {
    // statfs(2): ext2 to ext4, XFS, Btrfs, tmpfs, F2FS, ZFS, bcachefs, overlayfs, ramfs, EROFS, SquashFS.
    const LOCAL: [u32; 11] = [
        0xef53,
        0x5846_5342,
        0x9123_683e,
        0x0102_1994,
        0xf2f5_2010,
        0x2fc1_2fc1,
        0xca45_1a4e,
        0x794c_7630,
        0x8584_58f6,
        0xe0f5_e1e2,
        0x7371_7368,
    ];
    rustix::fs::fstatfs(file).is_ok_and(|system| LOCAL.contains(&(system.f_type as u32)))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn is_local(_: &File) -> bool {
    false
}
