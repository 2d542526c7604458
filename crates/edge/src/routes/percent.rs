//! Paths as servers may understand them.

/// A path with its escapes decoded, and then without empty segments, `.` and `..`; backslashes are slashes, and what
/// follows a semicolon in a segment is a parameter. Servers do some of this, and no server anything else.
pub(super) fn resolved(path: &str) -> String {
    let decoded = decoded(path.as_bytes());
    let mut segments: Vec<&[u8]> = Vec::new();
    for segment in decoded.split(|byte| matches!(byte, b'/' | b'\\')) {
        match segment.split(|byte| *byte == b';').next().unwrap_or_default() {
            b"" | b"." => {}
            b".." => {
                segments.pop();
            }
            _ => segments.push(segment),
        }
    }
    let mut all = b"/".to_vec();
    all.extend_from_slice(&segments.join(&b'/'));
    let is_directory = decoded.last().is_some_and(|byte| matches!(byte, b'/' | b'\\'));
    if is_directory && all.len() > 1 {
        all.push(b'/');
    }
    String::from_utf8_lossy(&all).into_owned()
}

fn decoded(path: &[u8]) -> Vec<u8> {
    let digit = |at: usize| path.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let mut bytes = Vec::with_capacity(path.len());
    let mut at = 0;
    while let Some(byte) = path.get(at) {
        if let (b'%', Some(high), Some(low)) = (byte, digit(at + 1), digit(at + 2)) {
            bytes.push((high * 16 + low) as u8);
            at += 3;
        } else {
            bytes.push(*byte);
            at += 1;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_servers_may_resolve_is_resolved() {
        for (path, expected) in [
            ("/", "/"),
            ("", "/"),
            ("/a//b/./c/", "/a/b/c/"),
            ("/a/%2e%2E/b", "/b"),
            ("/../../a", "/a"),
            ("/a\\..\\b", "/b"),
            ("/%", "/%"),
            ("/%4", "/%4"),
            ("/%zz", "/%zz"),
            ("/a/..;x/b", "/b"),
            ("*", "/*"),
        ] {
            assert_eq!(resolved(path), expected, "{path}");
        }
    }
}
