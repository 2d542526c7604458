//! The event loop that quiche leaves to its user: one socket, many connections.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use posthaste_interop_peers::bulk::{SOCKET_BUFFER, UDP_PAYLOAD};
use posthaste_interop_peers::contract::Result;
use posthaste_interop_peers::tls;
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use tokio::io::Interest;

/// What happens on a connection.
pub(crate) trait Application {
    /// Called after every event; true once this side is done and the connection may close.
    fn progress(&mut self, connection: &mut quiche::Connection) -> Result<bool>;

    /// Called after that: the local address to move to now, if there is one.
    fn leaves_for(&mut self) -> Option<IpAddr> {
        None
    }
}

/// Makes the application of an accepted connection.
pub(crate) type Acceptor<A> = Box<dyn Fn() -> A>;

struct Entry<A> {
    connection: quiche::Connection,
    application: A,
    deadline: Option<Instant>,
}

pub(crate) struct Driver<A> {
    socket: tokio::net::UdpSocket,
    state: UdpSocketState,
    local: SocketAddr,
    config: quiche::Config,
    entries: BTreeMap<u64, Entry<A>>,
    ids: HashMap<Vec<u8>, u64>,
    next_entry: u64,
    /// Entries that something happened to.
    dirty: BTreeSet<u64>,
    send_buffer: Vec<u8>,
    retry: bool,
}

impl<A: Application> Driver<A> {
    pub(crate) fn bind(address: SocketAddr, config: quiche::Config) -> Result<Self> {
        let (socket, state) = bind(address)?;
        let local = socket.local_addr()?;
        Ok(Self {
            socket,
            state,
            local,
            config,
            entries: BTreeMap::new(),
            ids: HashMap::new(),
            next_entry: 0,
            dirty: BTreeSet::new(),
            send_buffer: vec![0; 65_507],
            retry: false,
        })
    }

    /// Sends a Retry to every new client.
    pub(crate) fn always_retry(&mut self) {
        self.retry = true;
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Connects, with the session of an earlier connection if there is one.
    pub(crate) fn connect(
        &mut self,
        name: &str,
        peer: SocketAddr,
        session: Option<&[u8]>,
        application: A,
    ) -> Result<()> {
        let id = fresh_id()?;
        let source = quiche::ConnectionId::from_ref(&id);
        let mut connection = quiche::connect(Some(name), &source, self.local, peer, &mut self.config)?;
        if let Some(session) = session {
            connection.set_session(session)?;
        }
        self.insert(connection, application, &[&id]);
        Ok(())
    }

    fn insert(&mut self, connection: quiche::Connection, application: A, ids: &[&[u8]]) -> u64 {
        let entry = self.next_entry;
        self.next_entry += 1;
        for id in ids {
            self.ids.insert(id.to_vec(), entry);
        }
        self.entries.insert(entry, Entry { connection, application, deadline: None });
        self.dirty.insert(entry);
        entry
    }

    /// Runs until all connections are closed (a client) or for ever (with an acceptor).
    pub(crate) async fn run(mut self, acceptor: Option<Acceptor<A>>) -> Result<()> {
        let serving = acceptor.is_some();
        let segments = self.state.gro_segments().max(1);
        let mut storage = vec![0; BATCH_SIZE * segments * 1_500];
        loop {
            while !self.dirty.is_empty() {
                self.settle(serving).await?;
            }
            if !serving && self.entries.is_empty() {
                return Ok(());
            }
            let deadline = self.entries.values().filter_map(|entry| entry.deadline).min();
            tokio::select! {
                ready = self.socket.readable() => ready?,
                () = sleep_until(deadline) => self.expire(),
            }
            self.receive(&mut storage, acceptor.as_ref())?;
        }
    }

    /// Lets the applications of dirty connections go on, sends what they have to send, removes closed ones.
    async fn settle(&mut self, serving: bool) -> Result<()> {
        for index in std::mem::take(&mut self.dirty) {
            let Some(entry) = self.entries.get_mut(&index) else { continue };
            match entry.application.progress(&mut entry.connection) {
                Ok(false) => (),
                Ok(true) => {
                    // A connection that is closing sends nothing else: a response that came with the server's first
                    // flight would end the handshake before the server has the client's Finished.
                    let sender = Sender { socket: &self.socket, state: &self.state, local: self.local };
                    sender.flush(&mut entry.connection, &mut self.send_buffer).await?;
                    // An error says that it is closing already.
                    let _ = entry.connection.close(true, 0x100, b"done");
                }
                Err(error) if serving => {
                    eprintln!("connection: {error}");
                    let _ = entry.connection.close(true, 0x102, b"failed");
                }
                Err(error) => return Err(error),
            }
            if let Some(address) = entry.application.leaves_for() {
                (self.socket, self.state) = bind((address, 0).into())?;
                self.local = self.socket.local_addr()?;
                entry.connection.migrate_source(self.local)?;
            }
            issue_ids(&mut entry.connection, &mut self.ids, index)?;
            let was_early = entry.connection.is_in_early_data();
            let sender = Sender { socket: &self.socket, state: &self.state, local: self.local };
            sender.flush(&mut entry.connection, &mut self.send_buffer).await?;
            if entry.connection.is_in_early_data() && !was_early {
                // The first packet is out, the keys of early data are there: the application may begin.
                self.dirty.insert(index);
            }
            entry.deadline = entry.connection.timeout_instant();
            if entry.connection.is_closed() || (!serving && entry.connection.local_error().is_some()) {
                if !serving && entry.connection.local_error().is_none_or(|error| error.error_code != 0x100) {
                    return Err(closed_early(&entry.connection).into());
                }
                self.entries.remove(&index);
                self.ids.retain(|_, entry| *entry != index);
            }
        }
        Ok(())
    }

    fn expire(&mut self) {
        let now = Instant::now();
        for (index, entry) in &mut self.entries {
            if entry.deadline.is_some_and(|deadline| deadline <= now) {
                entry.connection.on_timeout();
                self.dirty.insert(*index);
            }
        }
    }

    /// Takes one batch from the socket.
    fn receive(&mut self, storage: &mut [u8], acceptor: Option<&Acceptor<A>>) -> Result<()> {
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        let size = storage.len() / BATCH_SIZE;
        let count = {
            let mut slices = storage.chunks_mut(size).map(IoSliceMut::new);
            let mut buffers: [IoSliceMut<'_>; BATCH_SIZE] =
                std::array::from_fn(|_| slices.next().unwrap_or_else(|| IoSliceMut::new(&mut [])));
            let read = || self.state.recv((&self.socket).into(), &mut buffers, &mut metas);
            match self.socket.try_io(Interest::READABLE, read) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        };
        for (meta, buffer) in metas.iter().zip(storage.chunks_mut(size)).take(count) {
            for datagram in buffer[..meta.len].chunks_mut(meta.stride.max(1)) {
                self.on_datagram(datagram, meta.addr, acceptor)?;
            }
        }
        Ok(())
    }

    /// A connection for a client's first packet, or a Retry and none.
    fn accept(
        &mut self,
        header: &quiche::Header<'_>,
        from: SocketAddr,
        acceptor: &Acceptor<A>,
    ) -> Result<Option<u64>> {
        let id = fresh_id()?;
        let source = quiche::ConnectionId::from_ref(&id);
        let token = header.token.as_deref().unwrap_or_default();
        if self.retry && token.is_empty() {
            let mut packet = [0; 1_200];
            let token = retry_token(&header.dcid, from);
            let length =
                quiche::retry(&header.scid, &header.dcid, &source, &token, header.version, &mut packet)?;
            // A client that does not get it asks again.
            let _ = self.socket.try_send_to(&packet[..length], from);
            return Ok(None);
        }
        if !self.retry {
            let connection = quiche::accept(&source, None, self.local, from, &mut self.config)?;
            return Ok(Some(self.insert(connection, acceptor(), &[&id, &header.dcid])));
        }
        // The original destination is behind what says whose token it is.
        let original = token.strip_prefix(retry_token(&[], from).as_slice());
        let Some(original) = original.map(quiche::ConnectionId::from_ref) else { return Ok(None) };
        let source = header.dcid.clone();
        let connection = quiche::accept(&source, Some(&original), self.local, from, &mut self.config)?;
        Ok(Some(self.insert(connection, acceptor(), &[&source])))
    }

    fn on_datagram(
        &mut self,
        datagram: &mut [u8],
        from: SocketAddr,
        acceptor: Option<&Acceptor<A>>,
    ) -> Result<()> {
        let Ok(header) = quiche::Header::from_slice(datagram, quiche::MAX_CONN_ID_LEN) else { return Ok(()) };
        let index = match (self.ids.get(header.dcid.as_ref()), acceptor) {
            (Some(&index), _) => index,
            (None, Some(acceptor)) if header.ty == quiche::Type::Initial => {
                let Some(index) = self.accept(&header, from, acceptor)? else { return Ok(()) };
                index
            }
            _ => return Ok(()),
        };
        let Some(entry) = self.entries.get_mut(&index) else { return Ok(()) };
        // An error closes the connection, which the next flush tells the peer.
        let _ = entry.connection.recv(datagram, quiche::RecvInfo { from, to: self.local });
        self.dirty.insert(index);
        Ok(())
    }
}

/// A token that only tells the suite's clients apart: nobody here forges any.
fn retry_token(original: &[u8], from: SocketAddr) -> Vec<u8> {
    let mut token = from.to_string().into_bytes();
    token.push(b' ');
    token.extend_from_slice(original);
    token
}

/// Binds a socket.
fn bind(address: SocketAddr) -> Result<(tokio::net::UdpSocket, UdpSocketState)> {
    let socket = std::net::UdpSocket::bind(address)?;
    socket.set_nonblocking(true)?;
    let state = UdpSocketState::new((&socket).into())?;
    state.set_recv_buffer_size((&socket).into(), SOCKET_BUFFER)?;
    state.set_send_buffer_size((&socket).into(), SOCKET_BUFFER)?;
    Ok((tokio::net::UdpSocket::from_std(socket)?, state))
}

/// Gives the peer the IDs that it needs to move, or to follow a move: quiche leaves that to its user.
fn issue_ids(connection: &mut quiche::Connection, ids: &mut HashMap<Vec<u8>, u64>, index: u64) -> Result<()> {
    while let Some(retired) = connection.retired_scid_next() {
        ids.remove(retired.as_ref());
    }
    while connection.is_established() && connection.scids_left() > 0 {
        let (id, token) = (fresh_id()?, fresh_id()?);
        let token = token.first_chunk().map_or(0, |token| u128::from_be_bytes(*token));
        connection.new_scid(&quiche::ConnectionId::from_ref(&id), token, false)?;
        ids.insert(id.to_vec(), index);
    }
    Ok(())
}

fn closed_early(connection: &quiche::Connection) -> String {
    format!(
        "the connection closed early: timed out {}, by us {:?}, by the peer {:?}",
        connection.is_timed_out(),
        connection.local_error(),
        connection.peer_error()
    )
}

fn fresh_id() -> Result<[u8; quiche::MAX_CONN_ID_LEN]> {
    let mut id = [0; quiche::MAX_CONN_ID_LEN];
    tls::provider().secure_random.fill(&mut id).map_err(|_| "no randomness")?;
    Ok(id)
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

/// The way out.
struct Sender<'a> {
    socket: &'a tokio::net::UdpSocket,
    state: &'a UdpSocketState,
    local: SocketAddr,
}

impl Sender<'_> {
    /// Sends all that the connection has, path by path (one that must be probed hides the others from a sender that
    /// names none), in GSO batches of full packets.
    async fn flush(&self, connection: &mut quiche::Connection, buffer: &mut [u8]) -> Result<()> {
        for peer in connection.paths_iter(self.local) {
            self.flush_path(connection, peer, buffer).await?;
        }
        Ok(())
    }

    async fn flush_path(
        &self,
        connection: &mut quiche::Connection,
        peer: SocketAddr,
        buffer: &mut [u8],
    ) -> Result<()> {
        let full = usize::from(UDP_PAYLOAD);
        let most = full * (buffer.len() / full).min(self.state.max_gso_segments());
        let mut filled = 0;
        loop {
            let packet = &mut buffer[filled..filled + full];
            let length = match connection.send_on_path(packet, Some(self.local), Some(peer)) {
                Ok((length, _)) => length,
                Err(quiche::Error::Done) => return self.send(&buffer[..filled], peer).await,
                Err(error) => return Err(error.into()),
            };
            filled += length;
            // A shorter packet ends a batch.
            if length < full || filled + full > most {
                self.send(&buffer[..filled], peer).await?;
                filled = 0;
            }
        }
    }

    async fn send(&self, contents: &[u8], destination: SocketAddr) -> Result<()> {
        if contents.is_empty() {
            return Ok(());
        }
        let full = usize::from(UDP_PAYLOAD);
        let segment_size = (contents.len() > full).then_some(full);
        let transmit = Transmit { destination, ecn: None, contents, segment_size, src_ip: None };
        let try_send = || self.state.try_send(self.socket.into(), &transmit);
        Ok(self.socket.async_io(Interest::WRITABLE, try_send).await?)
    }
}
