//! What a service tells the server's log about a request.

use std::sync::{Arc, OnceLock};

/// An extension of a request, shared by the server and the service: what the service writes here stands in the
/// [`AccessRecord`](crate::AccessRecord), also when the client gives up before there is a response. The first value of
/// each kind stays. Servers add it only where somebody reads it.
#[derive(Debug, Clone, Default)]
pub struct Remarks(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    request_id: OnceLock<Arc<str>>,
    site: OnceLock<Arc<str>>,
}

impl Remarks {
    /// Says by which name this request is known in logs.
    pub fn set_request_id(&self, id: Arc<str>) {
        // The first one stays.
        let _ = self.0.request_id.set(id);
    }

    /// Says which of the configured sites answers.
    pub fn set_site(&self, name: Arc<str>) {
        let _ = self.0.site.set(name);
    }

    /// The name by which this request is known in logs.
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.get().map(AsRef::as_ref)
    }

    /// The configured site that answers.
    pub fn site(&self) -> Option<&Arc<str>> {
        self.0.site.get()
    }
}
