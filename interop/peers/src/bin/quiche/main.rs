//! quiche (`BoringSSL`), with its own HTTP/3 layer; the datagrams go through quinn-udp for GSO and GRO.

mod bulk;
mod driver;
mod http3;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use clap::Parser as _;
use posthaste_interop_peers::bulk::{ALPN, UDP_PAYLOAD, WINDOW};
use posthaste_interop_peers::contract::{Mode, Result, Target, print_ready};

use driver::Driver;

/// One thread, as all peers have.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    match Mode::parse() {
        Mode::Client(args) => {
            let target = Target::parse(&args.urls[0])?;
            let config = client_config(&args.ca, quiche::h3::APPLICATION_PROTOCOL)?;
            let mut driver = Driver::bind(loopback(), config)?;
            driver.connect(&target.host, target.address()?, http3::Client::new(args)?)?;
            driver.run(None).await
        }
        Mode::Server(args) => {
            let config = server_config(&args.cert, &args.key, quiche::h3::APPLICATION_PROTOCOL)?;
            let driver = Driver::bind(args.listen, config)?;
            print_ready(driver.local_addr())?;
            driver.run(Some(Box::new(move || http3::Server::new(args.root.clone())))).await
        }
        Mode::BulkServer(args) => {
            let driver = Driver::bind(args.listen, server_config(&args.cert, &args.key, &[ALPN])?)?;
            print_ready(driver.local_addr())?;
            driver.run(Some(Box::new(bulk::Server::default))).await
        }
        Mode::BulkClient(args) => {
            let mut driver = Driver::bind(loopback(), client_config(&args.ca, &[ALPN])?)?;
            driver.connect("localhost", args.connect, bulk::Client::new(args.bytes))?;
            driver.run(None).await
        }
        Mode::IdleClient(_) => Err("quiche: no idle-client; use that of quinn".into()),
    }
}

fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
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
    config.set_initial_max_streams_bidi(256);
    config.set_initial_max_streams_uni(16);
    // quiche only computes send times and leaves waiting to the kernel's SO_TXTIME, which loopback ignores.
    config.enable_pacing(false);
    Ok(config)
}
