use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use jsonschema::Validator;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::config::{
    AcmeConfig, CertificateFiles, FieldRules, HealthConfig, Limits, RequestIdConfig, RouteConfig, Settings,
    SiteConfig, Timeouts,
};
use crate::{Config, Edge};

type Names = BTreeSet<String>;

fn schema() -> Value {
    serde_json::from_str(Config::json_schema()).unwrap()
}

fn validator() -> Validator {
    assert!(jsonschema::meta::is_valid(&schema()));
    jsonschema::draft7::new(&schema()).unwrap()
}

/// The keys of a table that are read, and those that it must have, both by serde's word.
fn keys<T: DeserializeOwned>() -> (Names, Names) {
    let error = |text: &str| toml::from_str::<T>(text).err().map(|error| error.message().to_owned());
    let quoted =
        |text: &str| -> Vec<String> { text.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let unknown = quoted(&error("kangaroo = 1").unwrap());
    assert_eq!(unknown[0], "kangaroo");
    let mut required = Names::new();
    let mut text = String::new();
    while let Some(message) = error(&text) {
        assert!(message.starts_with("missing field"), "{message}");
        let name = quoted(&message).remove(0);
        text.push_str(&name);
        text.push_str(" = \"x\"\n");
        assert!(required.insert(name), "{message}");
    }
    (unknown.into_iter().skip(1).collect(), required)
}

#[test]
fn the_keys_are_those_that_are_read() {
    let read = BTreeMap::from([
        ("", keys::<Config>()),
        ("acme", keys::<AcmeConfig>()),
        ("certificate", keys::<CertificateFiles>()),
        ("edge", keys::<Settings>()),
        ("headers", keys::<FieldRules>()),
        ("health", keys::<HealthConfig>()),
        ("limits", keys::<Limits>()),
        ("request-id", keys::<RequestIdConfig>()),
        ("route", keys::<RouteConfig>()),
        ("site", keys::<SiteConfig>()),
        ("timeouts", keys::<Timeouts>()),
    ]);
    let schema = schema();
    let tables =
        schema["definitions"].as_object().unwrap().iter().map(|(name, table)| (name.as_str(), table));
    let tables: BTreeMap<_, _> =
        tables.chain([("", &schema)]).filter(|(_, table)| table.get("properties").is_some()).collect();
    assert_eq!(tables.keys().collect::<Vec<_>>(), read.keys().collect::<Vec<_>>());
    for (name, table) in tables {
        let properties = table["properties"].as_object().unwrap().keys().cloned().collect();
        let required = table.get("required").map_or_else(Names::new, |names| {
            names.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
        });
        assert_eq!(read[name], (properties, required), "[{name}]");
        assert_eq!(table["additionalProperties"], false, "[{name}]");
    }
}

/// A certificate, and a configuration that has it, with every table.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        let made = rcgen::generate_simple_self_signed(vec!["a.test".to_owned()]).unwrap();
        std::fs::write(place.0.path().join("chain"), made.cert.pem()).unwrap();
        std::fs::write(place.0.path().join("key"), made.signing_key.serialize_pem()).unwrap();
        place
    }

    fn config(&self) -> Value {
        let file = |name| self.0.path().join(name).display().to_string();
        json!({
            "edge": { "request-id": {}, "acme": { "state": "x" }, "limits": {} },
            "site": { "a.test": {
                "certificate": { "chain": file("chain"), "key": file("key") },
                "to": "http://127.0.0.1:3000",
                "health": { "path": "/" },
                "headers": {},
                "timeouts": {},
                "route": [{ "path": "/x", "to": "http://127.0.0.1:3000" }],
            } },
        })
    }

    /// As `edge check` does it.
    fn load(config: &Value) -> Result<(), String> {
        let parsed = parse(&toml::to_string(config).unwrap())?;
        let nobody = |_: Option<&Path>| Err("nobody is trusted".to_owned());
        Edge::new(&parsed, &nobody).map(drop).map_err(|error| error.to_string())
    }
}

fn parse(text: &str) -> Result<Config, String> {
    Config::parse(Path::new("edge.toml"), text.to_owned()).map_err(|error| error.to_string())
}

const TABLES: [(&str, &str); 10] = [
    ("edge", "/edge"),
    ("request-id", "/edge/request-id"),
    ("acme", "/edge/acme"),
    ("limits", "/edge/limits"),
    ("site", "/site/a.test"),
    ("certificate", "/site/a.test/certificate"),
    ("health", "/site/a.test/health"),
    ("headers", "/site/a.test/headers"),
    ("timeouts", "/site/a.test/timeouts"),
    ("route", "/site/a.test/route/0"),
];

/// Values of each kind that some keys take and others do not.
fn probes() -> Vec<Value> {
    let texts = [
        "",
        "kangaroo",
        "10s",
        "10",
        "0s",
        "1.5s",
        "10y",
        "64KiB",
        "64kb",
        "64Kx",
        "1.2",
        "1.4",
        "auto",
        "12",
        "0",
        "whole",
        "redacted",
        "safe",
        "zstd",
        "127.0.0.1:1",
        "[::1]:1",
        "127.0.0.1",
        "https://a.test{path}",
        "ftp://a",
        "200 x",
        "99",
        "700",
    ];
    let mut all: Vec<Value> = texts.iter().map(|&text| json!(text)).collect();
    all.extend([-1, 0, 1, 2000, 20_000_000, 5_000_000_000_i64].map(|number| json!(number)));
    all.extend([json!(true), json!(1.5), json!([]), json!(["br"]), json!(["kangaroo"]), json!([1])]);
    all.extend([json!({}), json!({ "kangaroo": 1 }), json!({ "kangaroo": "x" }), json!([{}])]);
    all
}

#[test]
fn the_types_are_those_that_are_read() {
    let (schema, validator, place) = (schema(), validator(), Place::new());
    assert_eq!(Place::load(&place.config()), Ok(()));
    let (mut right, mut wrong) = (0, 0);
    for (name, pointer) in TABLES {
        for (key, property) in schema["definitions"][name]["properties"].as_object().unwrap() {
            let definition = property["$ref"].as_str().and_then(|place| place.rsplit('/').next());
            let is_table = TABLES.iter().any(|(table, _)| Some(*table) == definition);
            // serde reads a list in the place of a table by position.
            for probe in probes().into_iter().filter(|probe| !(is_table && probe.is_array())) {
                let mut config = place.config();
                let table = config.pointer_mut(pointer).unwrap().as_object_mut().unwrap();
                if ["beside", "files", "redirect", "reply"].contains(&key.as_str()) {
                    table.remove("to");
                }
                table.insert(key.clone(), probe.clone());
                let text = toml::to_string(&config).unwrap();
                if validator.is_valid(&config) {
                    // Ranges of sizes and times are the edge's.
                    let fault = parse(&text).err().filter(|error| !error.contains("is not within"));
                    assert_eq!(fault, None, "{name}: {key} = {probe}");
                    right += 1;
                } else {
                    assert!(Place::load(&config).is_err(), "{name}: {key} = {probe} is refused");
                    wrong += 1;
                }
            }
        }
    }
    assert!(right > 500 && wrong > 500, "{right} {wrong}");
}

fn judged(text: &str) -> (bool, Result<(), String>) {
    let json = serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap();
    (validator().is_valid(&json), parse(text).map(drop))
}

#[test]
fn examples_are_valid() {
    let guide = include_str!("../../../../../docs/guide/edge.md");
    let packaged = include_str!("../../../../../packaging/edge.toml");
    let examples = guide.split("```toml\n").skip(1).filter_map(|it| it.split("```").next());
    let examples: Vec<&str> = examples.chain([packaged]).collect();
    assert_eq!(examples.len(), 3);
    for example in examples {
        assert_eq!(judged(example), (true, Ok(())), "{example}");
    }
}

#[test]
fn what_an_edge_refuses_is_invalid() {
    for text in [
        "kangaroo = 1",
        "[sites]",
        "[edge]\nprofil = \"bbr\"",
        "[edge]\nlisten = 443",
        "[edge]\nlisten = \"443\"",
        "[edge]\nlisten = [\"0.0.0.0:443\"]",
        "[edge]\ngrace = 10",
        "[edge]\ngrace = \"10\"",
        "[edge]\ngrace = \"10min\"",
        "[edge]\nworkers = \"all\"",
        "[edge]\ntls-min = 1.3",
        "[edge]\nlog-query = \"none\"",
        "[edge.limits]\nhead = 32768",
        "[edge.limits]\nhead = \"32 furlongs\"",
        "[edge.limits]\nconnections = 0",
        "[edge.acme]\ncontact = [\"mailto:me@example.org\"]",
        "[site.a]\nfile = \"x\"",
        "[site.a]\nto = 1",
        "[site.a]\nhsts = \"1y\"",
        "[site.a]\nearly-data = \"on\"",
        "[site.a]\ncertificate = { chain = \"chain.pem\" }",
        "[site.a]\nheaders = { set = { server = 1 } }",
        "[site.a]\nroute = { path = \"/\" }",
        "[[site.a.route]]\nreply = \"200\"",
    ] {
        let (valid, read) = judged(text);
        assert!(!valid && read.is_err(), "{text}: {valid} {read:?}");
    }
}
