"""curl, as pycurl's wheels bring it (ngtcp2), restricted to HTTP/3."""

import io
import sys

import pycurl

import contract

# pycurl has no name for the value that CURLINFO_HTTP_VERSION gives for HTTP/3.
HTTP_VERSION_3 = 30
# Nor for CURLSSLOPT_EARLYDATA.
SSLOPT_EARLYDATA = 1 << 6


def transfer(url, ca, share, is_early):
    handle = pycurl.Curl()
    handle.url, handle.body = url, io.BytesIO()
    handle.setopt(pycurl.URL, url)
    handle.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_3ONLY)
    handle.setopt(pycurl.CAINFO, ca)
    handle.setopt(pycurl.IPRESOLVE, pycurl.IPRESOLVE_V4)
    # Wait for the first connection instead of opening another.
    handle.setopt(pycurl.PIPEWAIT, 1)
    handle.setopt(pycurl.WRITEDATA, handle.body)
    handle.setopt(pycurl.SHARE, share)
    if is_early:
        handle.setopt(pycurl.SSL_OPTIONS, SSLOPT_EARLYDATA)
    return handle


def fetch_all(args):
    share = pycurl.CurlShare()
    share.setopt(pycurl.SH_SHARE, pycurl.LOCK_DATA_SSL_SESSION)
    results = fetch_once(args, share)
    # A connection belongs to its multi handle: the next has one of its own, and the share's sessions.
    return results + fetch_once(args, share) if args.again else results


def fetch_once(args, share):
    """Fetches all URLs over a connection of its own."""
    multi = pycurl.CurlMulti()
    multi.setopt(pycurl.M_MAX_CONCURRENT_STREAMS, args.parallel)
    waiting = [transfer(url, args.ca, share, args.again == "early") for url in reversed(args.urls)]
    running, results = 0, []
    while waiting or running:
        while waiting and running < args.parallel:
            multi.add_handle(waiting.pop())
            running += 1
        multi.perform()
        _, succeeded, failed = multi.info_read()
        for handle in succeeded:
            results.append(finish(handle, args.output_dir))
        for handle, code, message in failed:
            results.append(False)
            print(f"{handle.url}: curl {code}: {message}", file=sys.stderr)
        for handle in [*succeeded, *(failure[0] for failure in failed)]:
            multi.remove_handle(handle)
            running -= 1
        multi.select(0.1)
    multi.close()
    return results


def finish(handle, output_dir):
    version = handle.getinfo(pycurl.INFO_HTTP_VERSION)
    return contract.report(
        output_dir,
        handle.url,
        "h3" if version == HTTP_VERSION_3 else f"HTTP version {version}",
        handle.getinfo(pycurl.RESPONSE_CODE),
        handle.body.getvalue(),
        handle.getinfo(pycurl.LOCAL_PORT),
    )


if __name__ == "__main__":
    contract.finish(fetch_all(contract.parse(__doc__)))
