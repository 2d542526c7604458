//! A client's address tokens, from one connection of a run to the next.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use posthaste_transport::{TokenOwner, TokenStore};

/// Tokens that are kept; older ones go.
const MOST: usize = 16;

/// The tokens of the one server of a run.
#[derive(Debug, Default)]
pub struct Tokens(Mutex<Vec<Bytes>>);

impl TokenStore for Tokens {
    fn take(&self, _owner: &TokenOwner<'_>) -> Option<Bytes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn put(&self, _owner: &TokenOwner<'_>, token: Bytes) {
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tokens.len() == MOST {
            tokens.remove(0);
        }
        tokens.push(token);
    }
}
