//! The event loop that quiche leaves to its user: one socket, many connections.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
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
}

impl<A: Application> Driver<A> {
    pub(crate) fn bind(address: SocketAddr, config: quiche::Config) -> Result<Self> {
        let socket = std::net::UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        let state = UdpSocketState::new((&socket).into())?;
        state.set_recv_buffer_size((&socket).into(), SOCKET_BUFFER)?;
        state.set_send_buffer_size((&socket).into(), SOCKET_BUFFER)?;
        let local = socket.local_addr()?;
        Ok(Self {
            socket: tokio::net::UdpSocket::from_std(socket)?,
            state,
            local,
            config,
            entries: BTreeMap::new(),
            ids: HashMap::new(),
            next_entry: 0,
            dirty: BTreeSet::new(),
            send_buffer: vec![0; 65_507],
        })
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.local
    }

    pub(crate) fn connect(&mut self, name: &str, peer: SocketAddr, application: A) -> Result<()> {
        let id = fresh_id()?;
        let source = quiche::ConnectionId::from_ref(&id);
        let connection = quiche::connect(Some(name), &source, self.local, peer, &mut self.config)?;
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
            self.settle(serving).await?;
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
                    // An error says that it is closing already.
                    let _ = entry.connection.close(true, 0x100, b"done");
                }
                Err(error) if serving => {
                    eprintln!("connection: {error}");
                    let _ = entry.connection.close(true, 0x102, b"failed");
                }
                Err(error) => return Err(error),
            }
            flush(&self.socket, &self.state, &mut entry.connection, &mut self.send_buffer).await?;
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
                let id = fresh_id()?;
                let source = quiche::ConnectionId::from_ref(&id);
                let connection = quiche::accept(&source, None, self.local, from, &mut self.config)?;
                let destination = header.dcid.to_vec();
                self.insert(connection, acceptor(), &[&id, &destination])
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

/// Sends all that the connection has, in GSO batches of full packets.
async fn flush(
    socket: &tokio::net::UdpSocket,
    state: &UdpSocketState,
    connection: &mut quiche::Connection,
    buffer: &mut [u8],
) -> Result<()> {
    let full = usize::from(UDP_PAYLOAD);
    let most = full * (buffer.len() / full).min(state.max_gso_segments());
    let mut done = false;
    while !done {
        let mut filled = 0;
        let mut destination = None;
        while filled + full <= most {
            let (length, info) = match connection.send(&mut buffer[filled..filled + full]) {
                Ok(sent) => sent,
                Err(quiche::Error::Done) => {
                    done = true;
                    break;
                }
                Err(error) => return Err(error.into()),
            };
            filled += length;
            destination = Some(info.to);
            if length < full {
                // A shorter packet ends a batch.
                break;
            }
        }
        let Some(destination) = destination else { return Ok(()) };
        let contents = &buffer[..filled];
        let segment_size = (filled > full).then_some(full);
        let transmit = Transmit { destination, ecn: None, contents, segment_size, src_ip: None };
        socket.async_io(Interest::WRITABLE, || state.try_send(socket.into(), &transmit)).await?;
    }
    Ok(())
}
