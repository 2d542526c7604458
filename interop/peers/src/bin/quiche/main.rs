//! quiche (`BoringSSL`), with its own HTTP/3 layer; the datagrams go through quinn-udp for GSO and GRO.

mod bulk;
mod datagrams;
mod driver;
mod http3;
mod requests;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use clap::Parser as _;
use posthaste_interop_peers::bulk::{ALPN, STREAMS, UDP_PAYLOAD, WINDOW};
use posthaste_interop_peers::contract::{Again, ClientArgs, Form, Mode, Result, Target, print_ready};
use posthaste_interop_peers::datagrams::{ALPN as DATAGRAM_ALPN, QUEUE};

use driver::Driver;
use http3::Session;

/// One thread, as all peers have.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    match Mode::parse() {
        Mode::Client(args) => client(args).await,
        Mode::Server(args) => {
            let mut config = server_config(&args.cert, &args.key, quiche::h3::APPLICATION_PROTOCOL)?;
            config.enable_early_data();
            let mut driver = Driver::bind(args.listen, config)?;
            if args.retry {
                driver.always_retry();
            }
            print_ready(driver.local_addr())?;
            driver.run(Some(Box::new(move || http3::Server::new(args.root.clone())))).await
        }
        Mode::BulkServer(args) => {
            let mut config = server_config(&args.cert, &args.key, &[ALPN])?;
            shape(&mut config, args.form, 1)?;
            let driver = Driver::bind(args.listen, config)?;
            print_ready(driver.local_addr())?;
            driver.run(Some(Box::new(bulk::Server::default))).await
        }
        Mode::BulkClient(args) => {
            let mut config = client_config(&args.ca, &[ALPN])?;
            shape(&mut config, args.form, args.connections * args.streams)?;
            let mut driver = Driver::bind(loopback_of(args.connect), config)?;
            driver.connect("localhost", args.connect, None, bulk::Client::new(args.bytes))?;
            driver.run(None).await
        }
        Mode::RequestServer(args) => {
            let mut config = server_config(&args.cert, &args.key, &[ALPN])?;
            shape(&mut config, args.form, 1)?;
            let driver = Driver::bind(args.listen, config)?;
            print_ready(driver.local_addr())?;
            driver.run(Some(Box::new(requests::Server::default))).await
        }
        Mode::RequestClient(args) => {
            let mut config = client_config(&args.ca, &[ALPN])?;
            shape(&mut config, args.form, args.connections)?;
            let mut driver = Driver::bind(loopback_of(args.connect), config)?;
            driver.connect("localhost", args.connect, None, requests::Client::new(&args))?;
            driver.run(None).await
        }
        Mode::DatagramServer(args) => {
            let mut config = server_config(&args.cert, &args.key, &[DATAGRAM_ALPN])?;
            config.enable_dgram(true, QUEUE, QUEUE);
            let driver = Driver::bind(args.listen, config)?;
            print_ready(driver.local_addr())?;
            driver.run(Some(Box::new(datagrams::Server::default))).await
        }
        Mode::DatagramClient(args) => {
            let mut config = client_config(&args.ca, &[DATAGRAM_ALPN])?;
            config.enable_dgram(true, QUEUE, QUEUE);
            let mut driver = Driver::bind(loopback_of(args.connect), config)?;
            driver.connect("localhost", args.connect, None, datagrams::Client::new(args.messages))?;
            driver.run(None).await
        }
        Mode::HandshakeClient(_) => Err("quiche: no handshake-client".into()),
        Mode::IdleClient(_) => Err("quiche: no idle-client; use that of quinn".into()),
    }
}

/// One connection after the other, each with the session of the one before.
async fn client(args: ClientArgs) -> Result<()> {
    if args.quic_version != quiche::PROTOCOL_VERSION || args.update_keys {
        return Err("quiche speaks version 1 only, and updates no keys of itself".into());
    }
    let target = Target::parse(&args.urls[0])?;
    let address = target.address()?;
    // BoringSSL's check of names, which is what quiche offers, takes no addresses; the suite's certificate has both.
    let is_address = target.host.parse::<IpAddr>().is_ok();
    let name = if is_address { "localhost" } else { target.host.as_str() };
    let session = Session::default();
    for number in 1..=args.connections() {
        let mut config = client_config(&args.ca, quiche::h3::APPLICATION_PROTOCOL)?;
        if args.again == Some(Again::Early) {
            config.enable_early_data();
        }
        let mut driver = Driver::bind(loopback_of(address), config)?;
        let ticket = session.borrow().clone();
        if number > 1 && ticket.is_none() {
            return Err("the first connection brought no session".into());
        }
        let application = http3::Client::new(args.clone(), number.to_string(), session.clone())?;
        driver.connect(name, address, ticket.as_deref(), application)?;
        driver.run(None).await?;
    }
    Ok(())
}

/// What a bench varies, as far as this peer has it: no tasks, one connection, one stream of bulk.
fn shape(config: &mut quiche::Config, form: Form, at_once: u64) -> Result<()> {
    if form.block_on || at_once > 1 {
        return Err("quiche: no tasks, and one stream or connection at a time".into());
    }
    config.set_max_send_udp_payload_size(form.udp_payload.into());
    Ok(())
}

/// Any port of the loopback address of `remote`'s family.
fn loopback_of(remote: SocketAddr) -> SocketAddr {
    let ip: IpAddr = if remote.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
    (ip, 0).into()
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().ok_or_else(|| format!("{}: not UTF-8", path.display()).into())
}

fn client_config(ca: &Path, alpn: &[&[u8]]) -> Result<quiche::Config> {
    let mut config = common_config(alpn)?;
    config.load_verify_locations_from_file(text(ca)?)?;
    config.verify_peer(true);
    Ok(config)
}

fn server_config(cert: &Path, key: &Path, alpn: &[&[u8]]) -> Result<quiche::Config> {
    let mut config = common_config(alpn)?;
    config.load_cert_chain_from_pem_file(text(cert)?)?;
    config.load_priv_key_from_pem_file(text(key)?)?;
    // Browsers that come back ask with their first packets.
    config.enable_early_data();
    Ok(config)
}

/// CUBIC, IW 10 and CID handling stay as the library has them; windows and packet size are those of all peers.
fn common_config(alpn: &[&[u8]]) -> Result<quiche::Config> {
    let mut config = quiche::Config::new(quiche::PROTOCOL_VERSION)?;
    config.set_application_protos(alpn)?;
    config.set_max_idle_timeout(posthaste_interop_peers::bulk::IDLE_TIMEOUT.as_millis() as u64);
    config.set_max_recv_udp_payload_size(65_527);
    config.set_max_send_udp_payload_size(UDP_PAYLOAD.into());
    config.set_initial_max_data(WINDOW);
    config.set_initial_max_stream_data_bidi_local(WINDOW);
    config.set_initial_max_stream_data_bidi_remote(WINDOW);
    config.set_initial_max_stream_data_uni(WINDOW);
    config.set_max_connection_window(WINDOW);
    config.set_max_stream_window(WINDOW);
    config.set_initial_max_streams_bidi(STREAMS.into());
    config.set_initial_max_streams_uni(16);
    config.set_active_connection_id_limit(4);
    // quiche only computes send times and leaves waiting to the kernel's SO_TXTIME, which loopback ignores.
    config.enable_pacing(false);
    Ok(config)
}
