use std::path::Path;

use super::*;

const WHOLE: &str = r#"
[edge]
listen = "[::]:8443"
redirect = "[::]:8080"
profile = "bbr"
workers = 2
state = "/var/lib/posthaste/edge"
tls-min = "1.3"
grace = "30s"
admin = "[::1]:9443"
admin-public = true
trusted = ["10.0.0.0/8"]
log-query = "redacted"

[edge.request-id]
header = "x-request-id"
accept = true
upstream = true
response = false

[edge.limits]
connections = 500
head = "16384B"
idle-timeout = "30s"

[site."example.org"]
names = ["www.example.org"]
certificate = { chain = "chain.pem", key = "key.pem" }
to = "http://127.0.0.1:3000"
hsts = "180d"
early-hints = ["</app.css>; rel=preload; as=style"]
early-data = "files"

[site."example.org".headers]
set = { "x-frame-options" = "DENY" }
remove = ["server"]

[site."example.org".timeouts]
connect = "1s"

[[site."example.org".route]]
path = "/assets/"
files = "/srv/www/assets"

[[site."example.org".route]]
path = "/api"
to = ["http://10.0.0.1:3000", "unix:/run/app.sock"]

[site."example.org".route.health]
path = "/healthz"
every = "1s"
timeout = "500ms"
failures = 2

[[site."example.org".route]]
path = "/old"
redirect = "https://example.org/new"
"#;

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(Path::new("edge.toml"), text.to_owned())
}

#[test]
fn a_configuration_is_written_as_it_is_read() {
    let config = parse(WHOLE).unwrap();
    assert_eq!(config.edge.grace.duration().as_secs(), 30);
    assert_eq!(config.sites["example.org"].routes.len(), 3);
    assert_eq!(config.upstreams(), ["http://10.0.0.1:3000", "http://127.0.0.1:3000", "unix:/run/app.sock"]);
    let written = config.to_toml();
    let again = parse(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
    assert_eq!(again.to_toml(), written);
    assert_eq!(
        toml::from_str::<toml::Table>(WHOLE).unwrap(),
        toml::from_str::<toml::Table>(&written).unwrap()
    );
}

#[test]
fn two_lines_are_a_site() {
    let config = parse("[site.\"example.org\"]\nto = \"http://127.0.0.1:3000\"\n").unwrap();
    assert_eq!(config.edge, Settings::default());
    assert_eq!(config.sites["example.org"].to.as_ref().unwrap().get_ref().urls(), ["http://127.0.0.1:3000"]);
}

#[test]
fn unknown_keys_are_errors_with_place_and_nearest_name() {
    for (text, place, meant) in [
        ("[edge]\nlisten = \"0.0.0.0:443\"\nprofil = \"bbr\"", "edge.toml:3:1: ", Some("profile")),
        ("[sites]", "edge.toml:1:2: ", Some("site")),
        ("[site.a]\nfile = \"x\"", "edge.toml:2:1: ", Some("files")),
        (
            "[site.a]\nto=\"x\"\n  [[site.a.route]]\n  path=\"/\"\n  redirct = \"y\"",
            "edge.toml:5:3: ",
            Some("redirect"),
        ),
        ("[site.a]\nkangaroo = 1", "edge.toml:2:1: ", None),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.message().starts_with(place), "{error}");
        assert!(
            error.message().contains("expected one of") || error.message().contains("expected `"),
            "{error}"
        );
        let hint = meant.map(|name| format!("did you mean `{name}`?"));
        assert_eq!(error.help(), hint.as_deref(), "{error}");
    }
}

#[test]
fn values_that_cannot_be_are_errors_with_their_place() {
    for (text, expected) in [
        ("[edge]\ngrace = \"10\"", "edge.toml:2:9: `10` is not a time such as 500ms"),
        ("[edge]\nlisten = \"here\"", "edge.toml:2:10: "),
        ("[edge.limits]\nconnections = 0", "edge.toml:2:15: connections \"0\": is not within 1 and 1000000"),
        (
            "[edge.limits]\nconnections = 10\nconnections-per-client = 11",
            "edge.toml:3:26: connections-per-client \"11\": is not within 1 and 10",
        ),
        (
            "[edge.limits]\nrequests-per-client = -1",
            "edge.toml:2:23: requests-per-client \"-1\": is not within 1 and 4096",
        ),
        (
            "[edge.limits]\nhead = \"1KiB\"",
            "edge.toml:2:8: head \"1.02 kB\": is not within 8.00 kB and 1.00 MB",
        ),
        (
            "[edge.limits]\nstall-timeout = \"2h\"",
            "edge.toml:2:17: stall-timeout \"2h\": is not within 1s and 1h",
        ),
        ("[edge.limits]\nhead = 32768", "edge.toml:2:8: "),
        ("[edge]\nlog-query = \"none\"", "edge.toml:2:13: "),
        ("[site.a]\nearly-data = \"on\"", "edge.toml:2:14: "),
        ("[edge\n", "edge.toml:1:"),
        ("[site.a]\nto = 1", "edge.toml:2:6: "),
    ] {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    let error = Config::read(Path::new("/nowhere/edge.toml")).unwrap_err().to_string();
    assert!(error.contains("/nowhere/edge.toml"), "{error}");
}

#[test]
fn the_examples_of_the_guide_are_valid() {
    let guide = include_str!("../../../../docs/guide/edge.md");
    let examples: Vec<&str> =
        guide.split("```toml\n").skip(1).filter_map(|it| it.split("```").next()).collect();
    assert_eq!(examples.len(), 2);
    for example in &examples {
        let config = parse(example).unwrap_or_else(|error| panic!("{error}\n{example}"));
        assert!(config.sites.contains_key("example.org"));
    }
}
