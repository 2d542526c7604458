//! A congestion controller of one's own: everything as in the default profile, but for the window.
//!
//! `cargo run -p posthaste-examples --example own_controller`. `examples/outside` races another one in the lab.

use posthaste_endpoint::policy::sample::{AckSample, LossSample};
use posthaste_endpoint::policy::{
    Adjustment, Congestion, CongestionState, LossCause, Pacing, PathLimits, Phase, SlowStart,
};
use posthaste_endpoint::units::Time;
use posthaste_endpoint::{
    ByteCount, ClientConfig, Endpoint, Rate, RttView, ServerConfig, TransportConfig, default_profile,
    default_transport, rustls, tls,
};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// One window, whatever happens: fit for a link of one's own, whose rate and delay are known.
#[derive(Debug)]
struct Fixed(ByteCount);

impl Fixed {
    /// One for each path; the profile's slow start is left unused.
    fn new(_limits: PathLimits, _slow_start: Box<dyn SlowStart>) -> Self {
        Self(ByteCount::new(500_000))
    }
}

impl Congestion for Fixed {
    fn on_ack(&mut self, _ack: &AckSample<'_>) {}

    fn on_loss(&mut self, _loss: &LossSample<'_>) -> LossCause {
        LossCause::Path
    }

    fn on_congestion_experienced(&mut self, _now: Time, _sent_at: Time, _in_flight: ByteCount) {}

    fn on_persistent_congestion(&mut self, _now: Time) {}

    fn on_max_datagram_size(&mut self, _size: ByteCount) {}

    fn adjust(&mut self, _adjustment: &Adjustment) {}

    fn window(&self) -> ByteCount {
        self.0
    }

    /// The window over the round trip, and a quarter more.
    fn pacing(&self, rtt: &RttView) -> Option<Pacing> {
        let rate = Rate::from_transfer(self.0, rtt.smoothed).mul_ratio(5, 4);
        rtt.is_measured.then_some(Pacing { rate, burst: ByteCount::new(20_000) })
    }

    fn state(&self) -> CongestionState {
        CongestionState { window: self.0, slow_start_threshold: None, phase: Phase::Named("fixed") }
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let identity = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(identity.cert.der().clone())?;
    let key = identity.signing_key.serialize_der().try_into()?;
    let tls = tls::server_config(vec![identity.cert.into()], key, &[b"own"])?;
    let server = Endpoint::server("127.0.0.1:0".parse()?, ServerConfig::new(tls, default_transport()))?;
    let address = server.local_addr()?;
    tokio::spawn(async move {
        let connection = server.accept().await?;
        let received = connection.accept_uni().await.ok()?.read_to_end(10_000_000).await.ok()?;
        println!("{} bytes have arrived", received.len());
        connection.closed().await;
        Some(())
    });

    let profile = default_profile().to_builder("fixed").congestion(Fixed::new).build()?;
    let tls = tls::client_config_with_roots(roots, &[b"own"])?;
    let client = Endpoint::client("127.0.0.1:0".parse()?)?;
    let config = ClientConfig::new(tls, TransportConfig::new(profile));
    let connection = client.connect(&config, address, "localhost").await?;
    let mut stream = connection.open_uni().await?;
    stream.write_all(&vec![7; 10_000_000]).await?;
    stream.finish();
    stream.acknowledged().await?;

    let CongestionState { window, phase, .. } = connection.stats().congestion;
    println!("window {window}, phase {}, round trip {:?}", phase.name(), connection.rtt());
    assert_eq!((window, phase), (ByteCount::new(500_000), Phase::Named("fixed")));
    connection.close(0, b"done");
    client.wait_idle().await;
    Ok(())
}

#[test]
fn it_runs_to_its_end() {
    main().unwrap();
}
