"""Chromium, driven by Playwright: fetches from a page of the same origin and proves HTTP/3 by Resource Timing."""

import base64
import shutil
import sys
import tempfile
import urllib.parse

from playwright.sync_api import sync_playwright

import contract

# Fetches all URLs, at most `parallel` at once. Bodies travel to Python as data URLs.
FETCH_ALL = """
async ([urls, parallel]) => {
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
  await Promise.all(Array.from({ length: parallel }, worker));
  // An entry may be queued a little after its body was read.
  for (let tries = 0; tries < 100; tries += 1) {
    for (const result of results) {
      result.protocol = performance.getEntriesByName(result.url)[0]?.nextHopProtocol;
    }
    if (results.every((result) => result.protocol !== undefined)) break;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return results;
}
"""


def arguments(authority, spki):
    return [
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        # The servers listen on IPv4 only.
        "--host-resolver-rules=MAP localhost 127.0.0.1",
        f"--origin-to-force-quic-on={authority}",
        # `--ignore-certificate-errors` alone does not reach QUIC.
        f"--ignore-certificate-errors-spki-list={spki}",
    ]


def fetch_all(args):
    origin = urllib.parse.urlsplit(args.urls[0])
    executable = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if executable is None:
        sys.exit("chromium is not installed: apt-get install chromium")
    connections = {}
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as profile:
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=executable, headless=True, args=arguments(origin.netloc, args.spki)
        )
        page = context.new_page()
        events = context.new_cdp_session(page)
        events.send("Network.enable")
        events.on(
            "Network.responseReceived",
            lambda event: connections.setdefault(event["response"]["url"], event["response"].get("connectionId")),
        )
        page.goto(f"https://{origin.netloc}/page.html")
        results = page.evaluate(FETCH_ALL, [args.urls, args.parallel])
        context.close()
    for result in results:
        body = base64.b64decode(result["body"].partition(",")[2])
        connection = connections.get(result["url"], "unknown")
        yield contract.report(
            args.output_dir, result["url"], result["protocol"], result["status"], body, connection
        )


if __name__ == "__main__":
    contract.finish(fetch_all(contract.parse(__doc__, browser=True)))
