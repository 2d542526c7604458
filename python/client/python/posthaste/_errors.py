"""The exceptions of the package. All are `posthaste.Error`."""

from __future__ import annotations

import builtins


class Error(Exception):
    """The base of all exceptions of this package."""


class ConfigError(Error, ValueError):
    """A setting of the client cannot be used: profile, certificates, timeouts, state directory."""


class InvalidRequest(Error, ValueError):
    """A request cannot be sent as it is: its URL, method, header fields or content."""


class ConnectError(Error, ConnectionError):
    """No connection to the server came about."""


class ConnectTimeout(ConnectError, builtins.TimeoutError):
    """Nothing answered in time."""


class CertificateError(ConnectError):
    """The server's certificate is not accepted."""


class TransferError(Error, ConnectionError):
    """A response does not come, or not whole: it was reset, cut short, or the connection was lost."""


class ProtocolError(TransferError):
    """The server broke HTTP/3."""


class RedirectError(TransferError):
    """A redirect leads nowhere, or there are too many."""


class TimeoutError(Error, builtins.TimeoutError):
    """A response, or its next bytes, did not come in time."""


class BodyTooLarge(Error):
    """A body has more bytes than the caller permits."""


class StateError(Error, RuntimeError):
    """The client, or the response, cannot be used here or now."""


class ClosedError(StateError):
    """The client or the response is closed."""


class WrongLoopError(StateError):
    """The client belongs to another event loop, or no event loop of asyncio is running."""


class ForkError(StateError):
    """The client was made before the process was forked."""
