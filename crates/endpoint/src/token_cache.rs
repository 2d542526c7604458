//! A client's address tokens: what spares it a Retry when it comes back.

use std::collections::VecDeque;
use std::fmt;
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use posthaste_transport::{TokenOwner, TokenStore};

/// Tokens kept; the oldest go first.
const MAX_TOKENS: usize = 512;

/// Tokens kept for one server.
const MAX_TOKENS_EACH: usize = 4;

/// Bytes of a token that is kept.
const MAX_LENGTH: usize = 512;

/// Tokens in memory, oldest first. Each is given out once.
#[derive(Default)]
pub struct TokenCache(Mutex<VecDeque<Kept>>);

struct Kept {
    server_name: Box<str>,
    port: u16,
    version: u32,
    token: Bytes,
}

impl Kept {
    fn is_of(&self, owner: &TokenOwner<'_>) -> bool {
        *self.server_name == *owner.server_name && (self.port, self.version) == (owner.port, owner.version)
    }
}

impl TokenCache {
    /// An empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many tokens are kept.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// True if no token is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All tokens as lines of text, for [`Self::import`] in a later process: server name, port, version and token in
    /// hexadecimal.
    pub fn export(&self) -> String {
        let mut text = String::new();
        for Kept { server_name, port, version, token } in self.lock().iter() {
            let _ = write!(text, "{server_name} {port} {version} ");
            for byte in token {
                let _ = write!(text, "{byte:02x}");
            }
            text.push('\n');
        }
        text
    }

    /// Adds the tokens of [`Self::export`]'s text; how many. Lines that are none are skipped.
    pub fn import(&self, text: &str) -> usize {
        let mut count = 0;
        for line in text.lines() {
            let mut words = line.split_ascii_whitespace();
            let Some(server_name) = words.next() else { continue };
            let port = words.next().and_then(|word| word.parse().ok());
            let version = words.next().and_then(|word| word.parse().ok());
            let token = words.next().and_then(from_hex);
            if let (Some(port), Some(version), Some(token), None) = (port, version, token, words.next()) {
                self.put(&TokenOwner { server_name, port, version }, token.into());
                count += 1;
            }
        }
        count
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn from_hex(word: &str) -> Option<Vec<u8>> {
    let (pairs, odd) = word.as_bytes().as_chunks::<2>();
    if !odd.is_empty() || pairs.is_empty() {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    pairs.iter().map(|[high, low]| Some((digit(*high)? * 16 + digit(*low)?) as u8)).collect()
}

impl TokenStore for TokenCache {
    fn take(&self, owner: &TokenOwner<'_>) -> Option<Bytes> {
        let mut tokens = self.lock();
        // The newest: it is good for longest.
        let index = tokens.iter().rposition(|kept| kept.is_of(owner))?;
        tokens.remove(index).map(|kept| kept.token)
    }

    fn put(&self, owner: &TokenOwner<'_>, token: Bytes) {
        if token.is_empty() || token.len() > MAX_LENGTH {
            return;
        }
        let mut tokens = self.lock();
        if tokens.iter().filter(|kept| kept.is_of(owner)).count() >= MAX_TOKENS_EACH
            && let Some(index) = tokens.iter().position(|kept| kept.is_of(owner))
        {
            tokens.remove(index);
        }
        if tokens.len() >= MAX_TOKENS {
            tokens.pop_front();
        }
        let TokenOwner { server_name, port, version } = *owner;
        tokens.push_back(Kept { server_name: server_name.into(), port, version, token });
    }
}

impl fmt::Debug for TokenCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenCache").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(server_name: &str, port: u16) -> TokenOwner<'_> {
        TokenOwner { server_name, port, version: 1 }
    }

    #[test]
    fn tokens_are_given_out_once_the_newest_first_and_to_their_server_alone() {
        let cache = TokenCache::new();
        cache.put(&owner("a", 443), Bytes::from_static(b"old"));
        cache.put(&owner("a", 443), Bytes::from_static(b"new"));
        assert_eq!(cache.take(&owner("b", 443)), None);
        assert_eq!(cache.take(&owner("a", 444)), None);
        assert_eq!(cache.take(&TokenOwner { version: 2, ..owner("a", 443) }), None);
        assert_eq!(cache.take(&owner("a", 443)), Some(Bytes::from_static(b"new")));
        assert_eq!(cache.take(&owner("a", 443)), Some(Bytes::from_static(b"old")));
        assert_eq!(cache.take(&owner("a", 443)), None);
    }

    #[test]
    fn no_server_fills_the_cache_and_all_together_do_not_grow_it() {
        let cache = TokenCache::new();
        cache.put(&owner("first", 1), Bytes::from_static(b"token"));
        for _ in 0..10_000 {
            cache.put(&owner("greedy", 1), Bytes::from_static(b"token"));
        }
        assert_eq!(cache.len(), 1 + MAX_TOKENS_EACH);
        for port in 0..10_000 {
            cache.put(&owner("many", port), Bytes::from_static(b"token"));
        }
        assert_eq!(cache.len(), MAX_TOKENS);
        cache.put(&owner("long", 1), vec![1; MAX_LENGTH + 1].into());
        assert_eq!(cache.take(&owner("long", 1)), None);
    }

    #[test]
    fn tokens_survive_as_text_and_damaged_text_does_no_harm() {
        let cache = TokenCache::new();
        cache.put(&owner("example.org", 443), Bytes::from_static(&[0, 255, 7]));
        let text = cache.export();
        assert_eq!(text, "example.org 443 1 00ff07\n");
        let other = TokenCache::new();
        let damaged = ["", "x", "x 1 1", "x 1 1 0", "x 1 1 0g", "x 99999 1 00", "x 1 1 00 more", "x 1 1 €€"];
        assert_eq!(other.import(&damaged.join("\n")), 0);
        assert_eq!(other.import(&text), 1);
        assert_eq!(other.take(&owner("example.org", 443)), Some(Bytes::from_static(&[0, 255, 7])));
    }
}
