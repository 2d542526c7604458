//! The program by which Linux chooses one of the sockets that share a port (`SO_ATTACH_REUSEPORT_CBPF`, socket(7)). It
//! computes [`Steering::owner`] of the datagram's destination ID, and needs no privileges.

use std::io;
use std::net::UdpSocket;

use posthaste_transport::Steering;

/// Has the kernel choose by `steering` among the sockets that share the address of `socket`, in the order in which they
/// were bound.
///
/// # Errors
/// What the system reported.
#[cfg(target_os = "linux")]
pub(super) fn attach(socket: &UdpSocket, steering: &Steering) -> io::Result<()> {
    use nix::libc::{sock_filter, sock_fprog};
    use nix::sys::socket::{setsockopt, sockopt::AttachReusePortCbpf};

    let mut instructions: Vec<sock_filter> =
        instructions(steering).into_iter().map(|(code, jt, jf, k)| sock_filter { code, jt, jf, k }).collect();
    let len = u16::try_from(instructions.len()).map_err(io::Error::other)?;
    // The kernel copies the instructions before the call returns.
    let program = sock_fprog { len, filter: instructions.as_mut_ptr() };
    Ok(setsockopt(socket, AttachReusePortCbpf, &program)?)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn attach(_socket: &UdpSocket, _steering: &Steering) -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "only Linux can steer datagrams to sockets that share a port",
    ))
}

/// Code, jumps if true and if false, and operand of each instruction (the kernel's networking/filter documentation). What
/// is too short to be read goes to the first socket.
#[cfg(target_os = "linux")]
pub(super) fn instructions(steering: &Steering) -> [(u16, u8, u8, u32); 21] {
    const LOAD_WORD: u16 = 0x20;
    const LOAD_BYTE: u16 = 0x30;
    const LOAD_MEMORY: u16 = 0x60;
    const STORE: u16 = 0x02;
    const JUMP: u16 = 0x05;
    const JUMP_IF_SET: u16 = 0x45;
    const XOR: u16 = 0xa4;
    const XOR_INDEX: u16 = 0xac;
    const MULTIPLY: u16 = 0x24;
    const SHIFT_RIGHT: u16 = 0x74;
    const MODULO: u16 = 0x94;
    const TO_INDEX: u16 = 0x07;
    const RETURN: u16 = 0x16;
    /// The header form: set in long headers (RFC 8999 section 5.1).
    const LONG: u32 = 0x80;
    /// Where the destination ID begins in short headers, and in long ones behind its length (RFC 8999 section 5).
    const SHORT_ID: u32 = 1;
    const LONG_ID: u32 = 6;

    let [k0, k1, k2, k3] = steering.keys();
    [
        (LOAD_BYTE, 0, 0, 0),
        (JUMP_IF_SET, 4, 0, LONG),
        // A short header: the ID's first word goes to memory, its second stays at hand.
        (LOAD_WORD, 0, 0, SHORT_ID),
        (STORE, 0, 0, 0),
        (LOAD_WORD, 0, 0, SHORT_ID + 4),
        (JUMP, 0, 0, 3),
        // A long header: the same.
        (LOAD_WORD, 0, 0, LONG_ID),
        (STORE, 0, 0, 0),
        (LOAD_WORD, 0, 0, LONG_ID + 4),
        (STORE, 0, 0, 1),
        (LOAD_MEMORY, 0, 0, 0),
        (XOR, 0, 0, k0),
        (MULTIPLY, 0, 0, k1),
        (TO_INDEX, 0, 0, 0),
        (LOAD_MEMORY, 0, 0, 1),
        (XOR_INDEX, 0, 0, 0),
        (XOR, 0, 0, k2),
        (MULTIPLY, 0, 0, k3),
        (SHIFT_RIGHT, 0, 0, 15),
        (MODULO, 0, 0, u32::from(steering.endpoints().get())),
        (RETURN, 0, 0, 0),
    ]
}
