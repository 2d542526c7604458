"""The examples of the README run."""

import asyncio
import contextlib
import io
import re
from pathlib import Path

import posthaste

README = Path(__file__).resolve().parents[1] / "README.md"


def test_the_examples(server):
    first, *others = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    (server.root / "README.md").write_text("read me\n")
    printed = io.StringIO()
    program = first.replace("https://localhost:4433", server.url).replace(
        "/tmp/posthaste/localhost-certificate.pem", server.certificate
    )
    names = {}
    with contextlib.redirect_stdout(printed):
        exec(program, names)  # noqa: S102
        for other in others:
            exec(other, names)  # noqa: S102

        async def main():
            async with posthaste.Client(verify=server.certificate) as client:
                await names["requests"](client, server.url)
            await names["with_httpx"](f"{server.url}/hello.txt", server.certificate)

        asyncio.run(main())
    assert printed.getvalue().startswith("200 text/")
    assert "read me" in printed.getvalue() and "HTTP/3 hello" in printed.getvalue()
