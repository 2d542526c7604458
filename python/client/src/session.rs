//! A client for Python: begins operations, and hands out what has become of them.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use posthaste_endpoint::TokenCache;
use posthaste_http::client::Response;
use posthaste_http::http::Request;
use posthaste_http::{Body, Client, ClientError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyDict, PyList};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::completions::{Completions, Outcome};
use crate::fault::{Fault, lock};
use crate::options::Settings;
use crate::outbox::{Outbox, OutboxBody, Outgoing, Unfinished};
use crate::process::{self, Farewell, Owned};
use crate::request::Head;
use crate::response::{self, Incoming, Started};

/// A client of one event loop.
#[pyclass(frozen, module = "posthaste._native")]
pub(crate) struct Session(Owned<Arc<Inner>>);

struct Inner {
    client: Client,
    runtime: Handle,
    completions: Arc<Completions>,
    tokens: Arc<TokenCache>,
    /// Operations that have a task of their own.
    tasks: Mutex<HashMap<u64, AbortHandle>>,
}

impl Farewell for Inner {
    fn close(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        for (_, task) in lock(&self.tasks).drain() {
            task.abort();
        }
        let client = self.client.clone();
        Box::pin(async move { client.close().await })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Without a task when the runtime is over: then it has been closed before.
        let closing = Farewell::close(self);
        self.runtime.spawn(closing);
    }
}

#[pymethods]
impl Session {
    /// A client with the tokens in `tokens`, the text of an earlier [`Self::tokens`].
    #[new]
    fn new(settings: Settings, tokens: &str) -> Result<Self, Fault> {
        let runtime = process::runtime()?;
        let cache = Arc::new(TokenCache::new());
        cache.import(tokens);
        let options = settings.options(&cache)?;
        let inner = Arc::new(Inner {
            client: Client::new(options),
            runtime,
            completions: Arc::new(Completions::new()?),
            tokens: cache,
            tasks: Mutex::default(),
        });
        let weak = Arc::downgrade(&inner);
        process::register(weak);
        Ok(Self(Owned::new(inner)))
    }

    /// The descriptor that is readable while [`Self::completed`] has something.
    fn fileno(&self) -> Result<i32, Fault> {
        Ok(self.0.get()?.completions.descriptor())
    }

    /// What has completed since the last call: the operation, and `None`, a response or an exception.
    fn completed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let inner = self.0.get()?;
        let all = PyList::empty(py);
        for (operation, outcome) in inner.completions.take() {
            lock(&inner.tasks).remove(&operation);
            let value = match outcome {
                Outcome::Ready => py.None().into_bound(py),
                Outcome::Response(started) => Bound::new(py, Incoming(Owned::new(*started)))?.into_any(),
                Outcome::Failed(fault) => fault.to_exception(py)?,
            };
            all.append((operation, value))?;
        }
        Ok(all)
    }

    /// Begins a request with this body; the operation completes with a response.
    fn request(
        &self,
        method: &str,
        url: &str,
        headers: Vec<(PyBackedBytes, PyBackedBytes)>,
        content: Option<&[u8]>,
    ) -> Result<u64, Fault> {
        let inner = self.0.get()?;
        let head = Head::new(method, url, &headers)?;
        let content = content.map(|content| Outbox::full(Arc::clone(&inner.completions), content));
        Ok(inner.begin(head, content))
    }

    /// Begins a request whose body comes in pieces.
    fn upload(
        &self,
        method: &str,
        url: &str,
        headers: Vec<(PyBackedBytes, PyBackedBytes)>,
    ) -> Result<(u64, Outgoing), Fault> {
        let inner = self.0.get()?;
        let head = Head::new(method, url, &headers)?;
        let outbox = Outbox::new(Arc::clone(&inner.completions));
        let outgoing = Outgoing { outbox: Owned::new(Unfinished(Arc::clone(&outbox))) };
        Ok((inner.begin(head, Some(outbox)), outgoing))
    }

    /// Gives an operation up; it does not complete any more, or what it brings is dropped.
    fn cancel(&self, operation: u64) -> Result<(), Fault> {
        if let Some(task) = lock(&self.0.get()?.tasks).remove(&operation) {
            task.abort();
        }
        Ok(())
    }

    /// Closes the connections that are idle or not; later requests make new ones, which resume the sessions of these.
    fn hang_up(&self) -> Result<(), Fault> {
        self.0.get()?.client.hang_up();
        Ok(())
    }

    /// Gives everything up and closes all connections; the operation completes when that is said.
    fn close(&self) -> Result<u64, Fault> {
        let inner = self.0.get()?;
        let (closing, operation) = (Farewell::close(&**inner), inner.completions.begin());
        let completions = Arc::clone(&inner.completions);
        inner.runtime.spawn(async move {
            closing.await;
            completions.complete(operation, Outcome::Ready);
        });
        Ok(operation)
    }

    /// The address tokens as text.
    fn tokens(&self) -> Result<String, Fault> {
        Ok(self.0.get()?.tokens.export())
    }

    /// The open connections, and the last ones that are over.
    fn connections<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let reports = self.0.get()?.client.connections();
        reports.iter().map(|report| response::report(py, report)).collect()
    }
}

impl Inner {
    fn begin(&self, head: Head, content: Option<Arc<Outbox>>) -> u64 {
        let operation = self.completions.begin();
        let (client, completions) = (self.client.clone(), Arc::clone(&self.completions));
        let runtime = self.runtime.clone();
        let task = self.runtime.spawn(async move {
            let outcome = match send(&client, head, content.as_ref()).await {
                Ok(response) => {
                    let started = Started::new(response, content, &completions, &runtime);
                    Outcome::Response(Box::new(started))
                }
                Err(error) => Outcome::Failed(error.into()),
            };
            completions.complete(operation, outcome);
        });
        lock(&self.tasks).insert(operation, task.abort_handle());
        operation
    }
}

async fn send(client: &Client, head: Head, content: Option<&Arc<Outbox>>) -> Result<Response, ClientError> {
    let Head { method, uri, fields } = head;
    let Some(outbox) = content else { return client.request(&method, &uri, &fields).await };
    let mut request = Request::new(Body::new(OutboxBody(Arc::clone(outbox))));
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    *request.headers_mut() = fields;
    client.send(request).await
}
