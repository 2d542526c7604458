"""The application behind `posthaste edge` for uploads: answers with the length of what it was sent."""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Sink(BaseHTTPRequestHandler):
    """Reads contents of known length, and those in chunks."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        count = 0
        if "content-length" in self.headers:
            left = int(self.headers["content-length"])
            while left and (piece := self.rfile.read(min(left, 1 << 16))):
                count += len(piece)
                left -= len(piece)
        else:
            while size := int(self.rfile.readline(), 16):
                count += len(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
        answer = str(count).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *arguments: object) -> None:
        """Says nothing."""


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Sink).serve_forever()
