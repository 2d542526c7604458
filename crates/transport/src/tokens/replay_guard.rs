//! `NEW_TOKEN` tokens are good once (RFC 9000 section 8.1.4): the guard remembers those that were used.

use std::collections::BTreeSet;

use posthaste_units::Duration;

use crate::limits;
use crate::tokens::address::TokenId;

/// Tokens that were used, in the order in which they were made. When there are too many, the oldest are forgotten,
/// and with them every token as old is refused: bounded memory costs clients their tokens, never a second use.
#[derive(Debug, Default)]
pub(crate) struct TokenGuard {
    used: BTreeSet<(Duration, TokenId)>,
    /// Tokens made up to then are refused.
    refused_until: Option<Duration>,
}

impl TokenGuard {
    /// Uses the token up; false if it was used before, or may have been.
    pub(crate) fn use_up(&mut self, made_at: Duration, id: TokenId) -> bool {
        // spec: rfc9000 8.1.4 replay-limited
        if self.refused_until.is_some_and(|until| made_at <= until) || !self.used.insert((made_at, id)) {
            return false;
        }
        if self.used.len() > limits::USED_TOKENS
            && let Some((oldest, _)) = self.used.pop_first()
        {
            self.refused_until = Some(oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(number: u64) -> (Duration, TokenId) {
        let mut id = TokenId::default();
        id[..8].copy_from_slice(&number.to_be_bytes());
        (Duration::from_secs(number / 8), id)
    }

    #[test]
    fn no_token_is_good_twice_however_many_are_used() {
        // spec: rfc9000 8.1.4 replay-limited
        let mut guard = TokenGuard::default();
        let count = limits::USED_TOKENS as u64 * 2;
        for number in 0..count {
            let (made_at, id) = token(number);
            assert!(guard.use_up(made_at, id), "new token {number}");
            assert!(guard.used.len() <= limits::USED_TOKENS);
        }
        for number in (0..count).rev() {
            let (made_at, id) = token(number);
            assert!(!guard.use_up(made_at, id), "used token {number}");
        }
    }
}
