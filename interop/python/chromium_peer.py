"""Chromium, driven by Playwright: fetches from a page of the same origin and proves HTTP/3 by Resource Timing."""

import base64
import shutil
import sys
import tempfile
import urllib.parse

from playwright.sync_api import sync_playwright

import contract

# What it calls HTTP/3 over version 2, which it has as the last draft left it: the same on the wire as RFC 9369.
PROTOCOLS = {"h3/quic2draft08": "h3"}

# Fetches all URLs, at most `parallel` at once. Bodies travel to Python as data URLs.
FETCH_ALL = """
async ([urls, parallel, asks]) => {
  performance.setResourceTimingBufferSize(urls.length + 100);
  const results = [];
  const asDataUrl = (blob) => new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
  const waiting = [...urls];
  const worker = async () => {
    while (waiting.length > 0) {
      const url = waiting.shift();
      const response = await fetch(url, { cache: "no-store" });
      const body = await asDataUrl(await response.blob());
      results.push({ url, status: response.status, body });
    }
  };
  // Who only receives does not notice that nothing arrives: requests do.
  const asking = asks && setInterval(() => fetch("/page.html", { cache: "no-store" }), 200);
  await Promise.all(Array.from({ length: parallel }, worker));
  clearInterval(asking);
  // An entry may be queued a little after its body was read.
  for (let tries = 0; tries < 100; tries += 1) {
    for (const result of results) {
      result.protocol = performance.getEntriesByName(result.url).at(-1)?.nextHopProtocol;
    }
    if (results.every((result) => result.protocol !== undefined)) break;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return results;
}
"""


# Its library's flags are set by way of a field trial; this one says how many packets a key is for.
UPDATE_KEYS = [
    "--force-fieldtrials=QUIC/Interop",
    "--force-fieldtrial-params=QUIC.Interop:set_quic_flags/FLAGS_quic_key_update_confidentiality_limit%3D100",
]


def switches(args, authority, address):
    return [
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        # The servers listen on one family only.
        f"--host-resolver-rules=MAP localhost {address}",
        f"--origin-to-force-quic-on={authority}",
        # `--ignore-certificate-errors` alone does not reach QUIC.
        f"--ignore-certificate-errors-spki-list={args.spki}",
        *(["--quic-version=RFCv2"] if args.quic_version == 2 else []),
        *(UPDATE_KEYS if args.update_keys else []),
    ]


def fetch_all(args):
    origin = urllib.parse.urlsplit(args.urls[0])
    executable = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if executable is None:
        sys.exit("chromium is not installed: apt-get install chromium")
    # The switch that forces QUIC takes names only.
    address = "127.0.0.1" if origin.hostname == "localhost" else f"[{origin.hostname}]"
    authority = f"localhost:{origin.port}"
    urls = {f"https://{authority}{urllib.parse.urlsplit(url).path}": url for url in args.urls}
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as profile:
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=executable, headless=True, args=switches(args, authority, address)
        )
        page = context.new_page()
        for number in range(2 if args.again else 1):
            if number > 0:
                close_connections(context)
            yield from fetch_once(args, page, authority, urls)
        context.close()


def fetch_once(args, page, authority, urls):
    """Fetches all URLs from a page of their origin."""
    connections = {}
    events = page.context.new_cdp_session(page)
    events.send("Network.enable")
    events.on(
        "Network.responseReceived",
        lambda event: connections.setdefault(event["response"]["url"], event["response"].get("connectionId")),
    )
    page.goto(f"https://{authority}/page.html")
    for result in page.evaluate(FETCH_ALL, [list(urls), args.parallel, args.move_after is not None]):
        body = base64.b64decode(result["body"].partition(",")[2])
        connection = connections.get(result["url"], "unknown")
        url = urls[result["url"]]
        protocol = PROTOCOLS.get(result["protocol"], result["protocol"])
        yield contract.report(args.output_dir, url, protocol, result["status"], body, connection)


def close_connections(context):
    """What the button on Chromium's page about its sockets does: connections end, sessions are kept."""
    page = context.new_page()
    page.goto("chrome://net-internals/#sockets")
    page.click("#sockets-view-flush-button")
    page.close()


if __name__ == "__main__":
    contract.finish(fetch_all(contract.parse(__doc__, browser=True)))
