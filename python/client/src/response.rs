//! Responses for Python.

use std::sync::Arc;

use posthaste_endpoint::EarlyData;
use posthaste_http::ConnectionReport;
use posthaste_http::client::Response;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::completions::Completions;
use crate::fault::Fault;
use crate::inbox::{Available, Inbox};
use crate::outbox::Outbox;
use crate::process::Owned;
use crate::request::{self, Field};

/// A response whose body is arriving. Dropped before that is complete, it gives the rest up.
pub(crate) struct Started {
    status: u16,
    url: String,
    headers: posthaste_http::http::HeaderMap,
    content_length: Option<u64>,
    first_byte: f64,
    connection: ConnectionReport,
    inbox: Arc<Inbox>,
    filling: AbortHandle,
}

impl Started {
    /// Begins to read the body. `upload` is the request's, which goes on when the response is complete.
    pub(crate) fn new(
        response: Response,
        upload: Option<Arc<Outbox>>,
        completions: &Arc<Completions>,
        runtime: &Handle,
    ) -> Self {
        let inbox = Arc::new(Inbox::new(Arc::clone(completions)));
        Self {
            status: response.status().as_u16(),
            url: response.uri().to_string(),
            headers: response.headers().clone(),
            content_length: response.content_length(),
            first_byte: response.first_byte().as_secs_f64(),
            connection: response.connection(),
            filling: runtime.spawn(fill(response, upload, Arc::clone(&inbox))).abort_handle(),
            inbox,
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // Behind a whole response, the rest of the request still goes its way.
        if !self.inbox.is_whole() {
            self.filling.abort();
        }
    }
}

/// Reads a body as fast as the program takes it.
async fn fill(mut response: Response, upload: Option<Arc<Outbox>>, inbox: Arc<Inbox>) {
    loop {
        inbox.room().await;
        match response.chunk().await {
            Ok(Some(piece)) => inbox.push(piece),
            Ok(None) => break inbox.end(Ok(response.trailers().cloned())),
            Err(error) => return inbox.end(Err(error.into())),
        }
    }
    // To drop the response would give the upload up.
    if let Some(upload) = upload {
        upload.gone().await;
    }
}

/// A response of which the head has arrived.
#[pyclass(frozen, module = "posthaste._native")]
pub(crate) struct Incoming(pub(crate) Owned<Started>);

#[pymethods]
impl Incoming {
    /// The status, 200 to 599.
    #[getter]
    fn status(&self) -> Result<u16, Fault> {
        Ok(self.0.get()?.status)
    }

    /// Where the response came from, behind redirects.
    #[getter]
    fn url(&self) -> Result<&str, Fault> {
        Ok(&self.0.get()?.url)
    }

    /// Names and values of the header fields.
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Vec<Field<'py>>> {
        Ok(request::fields(py, &self.0.get()?.headers))
    }

    /// Names and values of the trailers, behind the body.
    #[getter]
    fn trailers<'py>(&self, py: Python<'py>) -> PyResult<Vec<Field<'py>>> {
        let trailers = self.0.get()?.inbox.trailers().unwrap_or_default();
        Ok(request::fields(py, &trailers))
    }

    /// Bytes of the body, if announced.
    #[getter]
    fn content_length(&self) -> Result<Option<u64>, Fault> {
        Ok(self.0.get()?.content_length)
    }

    /// Seconds from the request to the response's head.
    #[getter]
    fn first_byte(&self) -> Result<f64, Fault> {
        Ok(self.0.get()?.first_byte)
    }

    /// The connection, as it was when the head arrived.
    #[getter]
    fn connection<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        report(py, &self.0.get()?.connection)
    }

    /// The next bytes, at most `max`; `None` at the end; else the operation to wait for.
    fn read<'py>(&self, py: Python<'py>, max: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        to_python(py, self.0.get()?.inbox.read(max)?)
    }

    /// All bytes that are not yet read, if there are at most `limit`; else the operation to wait for.
    fn read_all<'py>(&self, py: Python<'py>, limit: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        to_python(py, self.0.get()?.inbox.read_all(limit)?)
    }

    /// Reads no further ahead than `read` does, after a `read_all` that was given up.
    fn restrain(&self) -> Result<(), Fault> {
        self.0.get()?.inbox.restrain();
        Ok(())
    }

    /// Gives the rest up.
    fn give_up(&self) -> Result<(), Fault> {
        let started = self.0.get()?;
        if !started.inbox.is_whole() {
            started.filling.abort();
            started.inbox.end(Err(Fault::closed("the response was closed before its body was read")));
        }
        Ok(())
    }
}

fn to_python(py: Python<'_>, available: Available) -> PyResult<Option<Bound<'_, PyAny>>> {
    Ok(match available {
        Available::End => None,
        Available::Wait(operation) => Some(operation.into_pyobject(py)?.into_any()),
        Available::Bytes(mut pieces) => {
            let length = pieces.iter().map(posthaste_endpoint::Bytes::len).sum();
            let bytes = PyBytes::new_with(py, length, |buffer| {
                let mut rest = buffer;
                // Each piece is freed as soon as it is copied.
                while let Some(piece) = pieces.pop_front() {
                    let (place, behind) = rest.split_at_mut(piece.len());
                    place.copy_from_slice(&piece);
                    rest = behind;
                }
                Ok(())
            })?;
            Some(bytes.into_any())
        }
    })
}

/// A connection as a dictionary; `posthaste.Connection` describes its keys.
pub(crate) fn report<'py>(py: Python<'py>, report: &ConnectionReport) -> PyResult<Bound<'py, PyDict>> {
    let ConnectionReport {
        index,
        origin,
        remote,
        resolution,
        handshake,
        is_resumed,
        early_data,
        takes_requests: _,
        stats,
    } = report;
    let early_data = early_data.map(|early_data| match early_data {
        EarlyData::None => "none",
        EarlyData::Accepted => "accepted",
        EarlyData::Rejected => "rejected",
    });
    let to_seconds =
        |time: posthaste_endpoint::units::Duration| std::time::Duration::from(time).as_secs_f64();
    let rtt = stats.rtt.is_measured.then_some(stats.rtt);
    let all = PyDict::new(py);
    all.set_item("index", index)?;
    all.set_item("origin", origin.to_string())?;
    all.set_item("remote", remote.to_string())?;
    all.set_item("resolution", resolution.as_secs_f64())?;
    all.set_item("handshake", handshake.map(|time| time.as_secs_f64()))?;
    all.set_item("is_resumed", is_resumed)?;
    all.set_item("early_data", early_data)?;
    all.set_item("rtt", rtt.map(|rtt| to_seconds(rtt.smoothed)))?;
    all.set_item("min_rtt", rtt.map(|rtt| to_seconds(rtt.min)))?;
    all.set_item("bytes_sent", stats.sent.bytes.get())?;
    all.set_item("bytes_received", stats.received.bytes.get())?;
    all.set_item("packets_sent", stats.packets_sent)?;
    all.set_item("packets_lost", stats.packets_lost)?;
    all.set_item("moves", stats.moves)?;
    Ok(all)
}
