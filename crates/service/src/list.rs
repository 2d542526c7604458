//! Fields whose values are lists.

use http::header::{HeaderMap, HeaderName};

/// Members of a list that all fields of this name form together (RFC 9110 section 5.6.1). Empty ones are among them; a
/// field that is no text is left out.
pub fn list_members<'a>(fields: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> + use<'a> {
    let values = fields.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::CONNECTION;

    use super::*;

    #[test]
    fn members_of_all_fields_are_one_list() {
        let mut fields = HeaderMap::new();
        fields.append(CONNECTION, HeaderValue::from_static("close , te,"));
        fields.append(CONNECTION, HeaderValue::from_bytes(b"\xff").unwrap());
        fields.append(CONNECTION, HeaderValue::from_static("upgrade"));
        assert_eq!(list_members(&fields, &CONNECTION).collect::<Vec<_>>(), ["close", "te", "", "upgrade"]);
    }
}
