//! Every bound on what a peer can make this end store or do, in one place.

pub(crate) mod rate_cap;

use posthaste_units::{ByteCount, Duration};

/// Bytes of CRYPTO data buffered at one level, ahead of what TLS has read (RFC 9000 section 7.5 asks for 4096).
// spec: rfc9000 7.5 crypto-buffer-least
pub(crate) const CRYPTO_BUFFER: u64 = 64 * 1024;

/// Ranges of received packet numbers kept in one space; the oldest are forgotten first (RFC 9000 section 13.2.3).
pub(crate) const ACK_RANGES: usize = 64;

/// The longest ack delay that a peer may ask for: what `max_ack_delay` could say (RFC 9000 section 18.2).
pub(crate) const LONGEST_ACK_DELAY: Duration = Duration::from_millis((1 << 14) - 1);

/// Silence that ends a handshake where neither end has set an idle timeout.
pub(crate) const SILENT_HANDSHAKE: Duration = Duration::from_secs(30);

/// Packets kept until the keys that open them arrive.
pub(crate) const UNDECRYPTABLE_PACKETS: usize = 10;

/// 0-RTT datagrams to one connection ID that are kept before the Initial comes that begins their connection.
pub(crate) const EARLY_DATAGRAMS: usize = UNDECRYPTABLE_PACKETS;

/// Connection IDs for which an endpoint keeps such datagrams.
pub(crate) const EARLY_IDS: usize = 16;

/// Bytes of such datagrams, all of an endpoint's together.
pub(crate) const EARLY_BYTES: usize = 256 * 1024;

/// How long they are kept: longer than packets overtake one another, if the Initial was not lost.
pub(crate) const EARLY_AGE: Duration = Duration::from_millis(500);

/// Answers without a connection (resets, version negotiations, Retry packets) that may wait to be sent: more would only
/// help a flood.
pub(crate) const WAITING_ANSWERS: usize = 32;

/// Stateless resets, and version negotiations, that may follow one another without a pause: clients that a restarted
/// server has lost come all at once.
pub(crate) const STATELESS_BURST: u32 = 100;

/// And in the long run, each in a second (RFC 9000 section 10.3.3 wants the rate of resets bounded).
pub(crate) const STATELESS_PER_SECOND: u32 = 1000;

/// The smallest datagram that a reset may answer: a reset must be shorter than its trigger, so that two endpoints do not
/// reset each other for ever, and looks like a packet only from 21 bytes on (RFC 9000 section 10.3.3).
pub(crate) const LEAST_RESET_TRIGGER: usize = 22;

/// Bytes beyond the granted window that a stream's reassembly may hold, however it is fragmented.
pub(crate) const REASSEMBLY_SLACK: u64 = 256 * 1024;

/// Bytes of the receive budget that are set aside for each connection, so that none is left without.
pub(crate) const LEAST_GRANT: u64 = 16 * 1024;

/// Bytes of stream data that each connection may keep until they are acknowledged, whatever the send budget has left.
pub(crate) const LEAST_KEPT: u64 = 64 * 1024;

/// Streams that may have unsent data up to `TransportConfig::unsent_limit` each, whatever credit the peer has granted. Where
/// there are more, each buffers little beyond its credit: clients that read nothing cost little memory. An HTTP/3 connection
/// has three that are no response.
pub(crate) const STREAMS_THAT_BUFFER_FREELY: usize = 16;

/// Bytes beyond its credit that a stream may then leave unsent.
pub(crate) const UNSENT_WITHOUT_CREDIT: u64 = 8 * 1024;

/// TLS configurations that a server keeps, one for each version and set of limits that its connections grant: sessions
/// are bound to both.
pub(crate) const SCOPED_TLS: usize = 8;

/// Streams whose limits one `ACK_WINDOW` frame of ours repeats.
pub(crate) const ACK_WINDOW_STREAMS: usize = 8;

/// Streams of one direction that the peer may have open at once, whatever the configuration asks for.
pub(crate) const MAX_CONCURRENT_STREAMS: u64 = 1 << 16;

/// Connection IDs of the peer's that are kept (our `active_connection_id_limit`).
// spec: rfc9000 18.2 id-limit-least
pub(crate) const PEER_CONNECTION_IDS: u64 = 4;

/// Connection IDs that this end issues, whatever the peer would take.
pub(crate) const LOCAL_CONNECTION_IDS: u64 = 4;

/// Connection IDs of this end that hold at once, those included that the peer was asked to retire and has not yet.
pub(crate) const UNRETIRED_IDS: u64 = 4 * LOCAL_CONNECTION_IDS;

/// `RETIRE_CONNECTION_ID` frames that may wait to be sent before the peer is closed for a storm (RFC 9000
/// section 5.1.2 suggests at least twice the limit).
pub(crate) const PENDING_RETIREMENTS: usize = 32;

/// Bytes of payload that an address token carries.
pub(crate) const TOKEN_PAYLOAD: usize = 64;

/// Bytes of a `NEW_TOKEN` token that a client keeps; longer ones are forgotten at once.
pub(crate) const NEW_TOKEN: usize = 512;

/// Bytes of a Retry's token that a client repeats: its Initial packets must have room for more.
pub(crate) const RETRY_TOKEN: usize = 900;

/// Silence after which a connection gives back the memory that its collections keep from busier times.
pub(crate) const REST_AFTER: Duration = Duration::from_secs(1);

/// Tokens for one client that wait to be sent or acknowledged.
pub(crate) const PENDING_TOKENS: usize = 4;

/// Used tokens that a server remembers, at some 40 bytes each.
pub(crate) const USED_TOKENS: usize = 1 << 15;

/// Clients whose tokens are not believed about their paths, because one was wrong.
pub(crate) const DISTRUSTED_PATHS: usize = 4096;

/// Retired connection IDs of the peer's whose numbers are remembered, to recognise late copies of their offers.
pub(crate) const REMEMBERED_RETIREMENTS: usize = 64;

/// `PATH_RESPONSE` frames that may wait to be sent; older challenges are forgotten.
pub(crate) const PENDING_PATH_RESPONSES: usize = 4;

/// `PATH_RESPONSE` frames sent in a second at the most; further challenges go unanswered.
pub(crate) const PATH_RESPONSES_PER_SECOND: u32 = 32;

/// Paths in memory, the one in use included; one more makes the one unheard the longest be forgotten.
pub(crate) const PATHS: usize = 4;

/// Connection IDs of either end that may be retired in a burst before the peer is closed for a storm: several for each
/// of many moves.
pub(crate) const RETIRED_IDS_BURST: u32 = 256;

/// And in the long run, in a second.
pub(crate) const RETIRED_IDS_PER_SECOND: u32 = 16;

/// Factor by which a server may send more than it received before the address is validated (RFC 9000 section 8.1).
pub(crate) const AMPLIFICATION_FACTOR: u64 = 3;

/// Messages of DATAGRAM frames that wait to be sent, and as many to be read; one more makes the oldest go.
pub(crate) const QUEUED_DATAGRAMS: usize = 1024;

/// And their bytes.
pub(crate) const QUEUED_DATAGRAM_BYTES: usize = 1 << 20;

/// Packets declared lost that one space remembers, to recognise a late acknowledgement.
pub(crate) const LOST_PACKETS: usize = 1024;

/// Packets of nothing but ACK that one space remembers, to learn which ranges the peer has been told of.
pub(crate) const ACK_ONLY_PACKETS: usize = 64;

/// Frames of one packet that a trace shows, so that a packet full of PINGs does not make it a hundred times longer.
pub(crate) const TRACED_FRAMES: usize = 256;

/// Youngest outstanding packets among which one to copy is looked for.
pub(crate) const REPAIR_PACKETS: usize = 1024;

/// The greatest window that a link's rate leads to: 100 ms at 2.6 Gbit/s, twice.
pub(crate) const HINTED_WINDOW: ByteCount = ByteCount::new(64 << 20);

/// Memory of what is kept of a connection's streams to restore their ends (`TAIL_CODE`), in bytes: data that were read,
/// and blocks in the making.
pub(crate) const CODE_MEMORY: usize = 10 << 20;

/// And of one stream's data that were read.
pub(crate) const CODE_STREAM_MEMORY: usize = 5 << 20;

/// Streams for which either is kept.
pub(crate) const CODE_STREAMS: usize = 64;

/// Bytes of recovery symbols that a connection keeps.
pub(crate) const CODE_RECOVERY: usize = 512 << 10;

/// Decoding beyond what received data have paid for, in bytes of work: about 20 ms of it, once.
pub(crate) const CODE_WORK: u64 = 32 << 20;

/// Bytes of recovery symbols that a connection has made and not forgotten.
pub(crate) const CODE_SENT_MEMORY: usize = 512 << 10;

/// Streams for whose ends it makes some.
pub(crate) const CODE_SENT_STREAMS: usize = 16;

/// Packet numbers never used that one space remembers, to catch a peer that acknowledges them.
pub(crate) const SKIPPED_NUMBERS: usize = 16;

/// Bytes of datagrams handed out at once: what one send of segments may carry (an IPv4 packet less its headers).
pub(crate) const TRANSMIT_BYTES: usize = 65_507;

/// Most bytes of CRYPTO data in a server's Handshake packets that are put into a datagram of their own rather than behind
/// the `ServerHello`: with more there are several datagrams anyway, and another might be one too many for the
/// amplification limit (RFC 9000 section 8.1).
pub(crate) const SPLIT_HANDSHAKE: u64 = 1000;

/// One client may have one of so many parts of the handshakes that a server bears in progress,
pub(crate) const PENDING_SHARES: usize = 8;

/// and this many at least.
pub(crate) const LEAST_PENDING_SHARE: usize = 16;
