//! What a client accepts.

use http::HeaderMap;
use http::header::ACCEPT_ENCODING;

use crate::coding::Coding;
use crate::list::list_members;

/// Thousandths, as `q` has them (RFC 9110 section 12.4.2).
type Weight = u16;

const FULL: Weight = 1000;

/// The codings out of `offered`, in the server's order of preference, that a request's `accept-encoding` accepts, those with
/// the greatest weight first. None where the client likes the content as it is better than any of them.
pub fn accepted_codings(fields: &HeaderMap, offered: &[Coding]) -> Vec<Coding> {
    let mut wishes = Wishes::default();
    for member in list_members(fields, &ACCEPT_ENCODING) {
        wishes.add(member);
    }
    let identity = wishes.identity.unwrap_or(0);
    let mut accepted: Vec<_> = offered.iter().map(|coding| (wishes.weight(*coding), *coding)).collect();
    accepted.retain(|(weight, _)| *weight > 0 && *weight >= identity);
    // Stable: what weighs the same keeps the server's order.
    accepted.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    accepted.into_iter().map(|(_, coding)| coding).collect()
}

/// Weights by name. The first that a client gives counts.
#[derive(Default)]
struct Wishes {
    codings: [Option<Weight>; Coding::ALL.len()],
    identity: Option<Weight>,
    any: Option<Weight>,
}

impl Wishes {
    fn add(&mut self, member: &str) {
        let (name, parameters) = member.split_once(';').unwrap_or((member, ""));
        let Some(weight) = weight(parameters) else { return };
        let name = name.trim();
        let place = match name {
            "*" => &mut self.any,
            _ if name.eq_ignore_ascii_case("identity") => &mut self.identity,
            _ => match name.parse::<Coding>() {
                Ok(coding) => &mut self.codings[place(coding)],
                Err(_) => return,
            },
        };
        place.get_or_insert(weight);
    }

    fn weight(&self, coding: Coding) -> Weight {
        self.codings[place(coding)].or(self.any).unwrap_or(0)
    }
}

const fn place(coding: Coding) -> usize {
    match coding {
        Coding::Zstd => 0,
        Coding::Brotli => 1,
        Coding::Gzip => 2,
    }
}

/// `q=0.5`, the full weight without it. `None` if it is something else: who cannot be understood gets the content as it is.
fn weight(parameters: &str) -> Option<Weight> {
    let parameters = parameters.trim();
    if parameters.is_empty() {
        return Some(FULL);
    }
    let (name, value) = parameters.split_once('=')?;
    if !name.trim().eq_ignore_ascii_case("q") {
        return None;
    }
    let value = value.trim();
    let (whole, digits) = value.split_once('.').unwrap_or((value, ""));
    if digits.len() > 3 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let thousandths = format!("{digits:0<3}").parse::<Weight>().ok()?;
    match whole {
        "0" => Some(thousandths),
        "1" if thousandths == 0 => Some(FULL),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use Coding::{Brotli, Gzip, Zstd};
    use http::HeaderValue;

    use super::*;

    fn of(fields: &[&'static str]) -> Vec<Coding> {
        let mut map = HeaderMap::new();
        for field in fields {
            map.append(ACCEPT_ENCODING, HeaderValue::from_static(field));
        }
        accepted_codings(&map, &Coding::ALL)
    }

    #[test]
    fn the_server_chooses_among_what_weighs_the_same() {
        assert_eq!(of(&["gzip, deflate, br, zstd"]), [Zstd, Brotli, Gzip]);
        assert_eq!(of(&["gzip", "br"]), [Brotli, Gzip]);
        assert_eq!(of(&["gzip;q=1.0, br;q=0.9, zstd;q=0.95"]), [Gzip, Zstd, Brotli]);
        assert_eq!(of(&["X-GZIP ; Q=0.5"]), [Gzip]);
        assert_eq!(of(&["*"]), [Zstd, Brotli, Gzip]);
        assert_eq!(of(&["*;q=0.3, br"]), [Brotli, Zstd, Gzip]);
        let gzip_only = accepted_codings(
            &[(ACCEPT_ENCODING, HeaderValue::from_static("br,gzip"))].into_iter().collect(),
            &[Gzip],
        );
        assert_eq!(gzip_only, [Gzip]);
    }

    #[test]
    fn what_is_not_asked_for_or_refused_is_not_accepted() {
        for fields in [
            &[][..],
            &[""],
            &["identity"],
            &["deflate, compress"],
            &["br;q=0, gzip;q=0.000"],
            &["*;q=0"],
            &["gzip;q=0.5, identity"],
            // Not weights.
            &["gzip;q=2"],
            &["gzip;q=0.5000"],
            &["gzip;q=1.001"],
            &["gzip;q=-1"],
            &["gzip;q=+0.5"],
            &["gzip;level=9"],
            &["gzip;q"],
        ] {
            assert_eq!(of(fields), [], "{fields:?}");
        }
        assert_eq!(of(&["*, zstd;q=0, br;q=0"]), [Gzip]);
        assert_eq!(of(&["gzip;q=0, gzip"]), []);
    }
}
