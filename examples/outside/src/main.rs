//! Races a controller of this crate, `src/steady.rs`, against `cubic`: in the lab, in virtual time, and over real sockets
//! on loopback.
//!
//! `cargo run --release --manifest-path examples/outside/Cargo.toml`

mod steady;

use std::time::Instant;

use posthaste_endpoint::{
    ClientConfig, Endpoint, Profile, ServerConfig, TransportConfig, default_profile, rustls, tls,
};
use posthaste_lab::peers::Stack;
use posthaste_lab::run::run;
use posthaste_lab::spec::RunSpec;
use steady::Steady;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What is fetched in the lab, over a path of its own name.
const SPEC: &str = r#"
network = { kind = "simple", path = "PATH" }
deadline = "300s"
flows = [{ stack = "cubic", workload = { kind = "bulk", object = "5MB" } }]
"#;
const PATHS: [&str; 3] = ["good", "average", "bad"];
const SEEDS: u64 = 5;
/// Bytes over loopback.
const LENGTH: usize = 20_000_000;
const ALPN: &[&[u8]] = &[b"outside"];

#[tokio::main]
async fn main() -> Result<(), Failure> {
    // Everything as in the default profile, but for the controller.
    let steady = default_profile().to_builder("steady").congestion(Steady::new).build()?;
    for profile in [default_profile(), steady] {
        for path in PATHS {
            println!("lab, {path}, 5 MB, {}: {:.2} s", profile.name(), in_lab(&profile, path)?);
        }
        println!("loopback, 20 MB, {}: {:.3} s", profile.name(), over_sockets(&profile).await?);
    }
    Ok(())
}

/// The median of the times that the lab measures.
fn in_lab(profile: &Profile, path: &str) -> Result<f64, Failure> {
    let mut spec: RunSpec = toml::from_str(&SPEC.replace("PATH", path))?;
    spec.flows[0].stack = Stack::profile(profile.clone(), 1);
    let mut seconds = Vec::new();
    for seed in 0..SEEDS {
        let result = run(&spec, seed, None)?;
        seconds.push(result.flows[0].completion.ok_or("the transfer does not end")?);
    }
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[seconds.len() / 2])
}

/// How long a server with the profile takes for one stream to a client on the same machine.
async fn over_sockets(profile: &Profile) -> Result<f64, Failure> {
    let identity = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(identity.cert.der().clone())?;
    let key = identity.signing_key.serialize_der().try_into()?;
    let server_tls = tls::server_config(vec![identity.cert.into()], key, ALPN)?;
    let server = ServerConfig::new(server_tls, TransportConfig::new(profile.clone()));
    let server = Endpoint::server("127.0.0.1:0".parse()?, server)?;
    let address = server.local_addr()?;
    let sender = tokio::spawn(async move {
        let connection = server.accept().await.ok_or("nobody comes")?;
        let (mut send, _) = connection.accept_bi().await?;
        send.write_all(&vec![7; LENGTH]).await?;
        send.finish();
        connection.closed().await;
        Ok::<(), Failure>(())
    });

    let client = Endpoint::client("127.0.0.1:0".parse()?)?;
    let client_tls = tls::client_config_with_roots(roots, ALPN)?;
    let config = ClientConfig::new(client_tls, TransportConfig::new(profile.clone()));
    let connection = client.connect(&config, address, "localhost").await?;
    let began = Instant::now();
    let (mut send, mut recv) = connection.open_bi().await?;
    send.write_all(b"please").await?;
    send.finish();
    let received = recv.read_to_end(LENGTH + 1).await?;
    let seconds = began.elapsed().as_secs_f64();
    if received != vec![7; LENGTH] {
        return Err("what arrives is not what was sent".into());
    }
    connection.close(0, b"thank you");
    client.wait_idle().await;
    sender.await??;
    Ok(seconds)
}
