//! Packets: headers, packet numbers, coalescing (RFC 9000 sections 12 and 17).
