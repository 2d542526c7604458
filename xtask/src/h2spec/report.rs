//! h2spec's report in `JUnit`'s form, as results of cases.

/// One case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Case {
    /// Where it belongs to, such as `http2/8.1.2`.
    pub(super) section: String,
    pub(super) name: String,
    pub(super) passed: bool,
}

/// All cases in their order. A case that was skipped has not passed.
pub(super) fn parse(report: &str) -> Vec<Case> {
    let cases = report.split("<testcase ").skip(1);
    let cases = cases.map(|text| text.split("</testcase>").next().unwrap_or(text));
    cases
        .map(|text| Case {
            section: attribute(text, "package"),
            name: attribute(text, "classname"),
            passed: !["<error", "<failure", "<skipped"].iter().any(|element| text.contains(element)),
        })
        .collect()
}

/// The value of an attribute, with the entities that h2spec writes.
fn attribute(text: &str, name: &str) -> String {
    let value = text.split_once(&format!("{name}=\"")).and_then(|(_, rest)| rest.split_once('"'));
    let value = value.map(|(value, _)| value).unwrap_or_default();
    value
        .replace("&#34;", "\"")
        .replace("&#39;", "'")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites>
  <testsuite name="1. Starting HTTP/2" package="generic/1" id="1" tests="1" skipped="0" failures="0" errors="0">
    <testcase package="generic/1" classname="Sends a client connection preface" time="0.0003"></testcase>
  </testsuite>
  <testsuite name="8.1.2.6. Malformed" package="http2/8.1.2.6" id="8.1.2.6" tests="2" skipped="0" failures="0" errors="1">
    <testcase package="http2/8.1.2.6" classname="Sends the &#34;content-length&#34; header" time="5.0036">
      <error>GOAWAY Frame (Error Code: PROTOCOL_ERROR)
Connection closed</error>
    </testcase>
  </testsuite>
</testsuites>"#;

    #[test]
    fn errors_belong_to_their_case() {
        let case =
            |section: &str, name: &str, passed| Case { section: section.into(), name: name.into(), passed };
        let expected = [
            case("generic/1", "Sends a client connection preface", true),
            case("http2/8.1.2.6", "Sends the \"content-length\" header", false),
        ];
        assert_eq!(parse(REPORT), expected);
        assert_eq!(parse(""), []);
    }
}
