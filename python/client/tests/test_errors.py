"""Bad input and bad servers: a clear exception each, the command line's words where it has them."""

import asyncio
import socket
import subprocess

import posthaste
import pytest
from conftest import binary


def run(main):
    return asyncio.run(main)


def command_says(*arguments):
    done = subprocess.run([binary(), "get", *arguments], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    return done.stderr


@pytest.mark.parametrize(
    "url",
    ["", "example.com", "http://example.com/", "https://", "https://a:0/", "https://user@a/", "https://mañana.com/"],
)
def test_bad_urls_have_the_message_of_the_command_line(url):
    async def main():
        async with posthaste.Client(verify=False) as client:
            with pytest.raises(posthaste.InvalidRequest) as caught:
                await client.get(url)
            assert str(caught.value) in command_says("--", url)

    run(main())


@pytest.mark.parametrize(
    "profile", ["nonsense", "mobile@nonsense=1", "mobile@code=maybe", "mobile@", "./no/such/profile.toml", "\0"]
)
def test_bad_profiles_have_the_message_of_the_command_line(profile):
    with pytest.raises(posthaste.ConfigError) as caught:
        posthaste.Client(profile=profile)
    if profile != "\0":
        said = " ".join(command_says("--profile", profile, "https://localhost/").split())
        assert " ".join(str(caught.value).split()) in said


def test_bad_certificates(tmp_path):
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    broken = tmp_path / "broken.pem"
    broken.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    for path in [tmp_path / "missing.pem", empty, broken, tmp_path]:
        with pytest.raises(posthaste.ConfigError, match="cannot read certificates from .*\n.*PEM"):
            posthaste.Client(verify=path)
    assert "it contains no certificate" in command_says("--ca", str(empty), "https://localhost/")


@pytest.mark.parametrize(
    "settings",
    [
        {"timeout": 0},
        {"timeout": -1.0},
        {"timeout": float("nan")},
        {"timeout": 1e300},
        {"keep_alive": 0},
        {"max_redirects": -1},
        {"max_redirects": 1 << 80},
        {"quic_version": 3},
        {"quic_version": 300},
        {"state": "/dev/null/state"},
        {"qlog": "/dev/null/traces"},
    ],
)
def test_bad_settings(settings):
    with pytest.raises(posthaste.ConfigError, match=next(iter(settings)) if "/" not in str(settings) else "cannot"):
        posthaste.Client(verify=False, **settings)


def test_settings_of_wrong_types():
    with pytest.raises(TypeError):
        posthaste.Client(verify=3)
    with pytest.raises(TypeError):
        posthaste.Client(verify=False, profile=3)
    with pytest.raises(TypeError, match="history"):
        posthaste.Client(history="file")


@pytest.mark.parametrize(
    "headers",
    [
        {"bad name": "1"},
        {"": "1"},
        {"x": "a\nb"},
        {"x": "a\0"},
        {"x": "€"},
        {"Connection": "close"},
        {":path": "/"},
        [("x",)],
        [1],
        7,
    ],
)
def test_bad_header_fields(headers):
    async def main():
        async with posthaste.Client(verify=False) as client:
            with pytest.raises(posthaste.InvalidRequest):
                await client.get("https://localhost/", headers=headers)

    run(main())


def test_bad_methods_and_contents():
    async def main():
        async with posthaste.Client(verify=False) as client:
            for method in ["", "GET /", "CONNECT", "\ud800"]:
                with pytest.raises(posthaste.InvalidRequest):
                    await client.request(method, "https://localhost/")
            for content in [3, object(), "\ud800"]:
                with pytest.raises(posthaste.InvalidRequest):
                    await client.post("https://localhost/", content=content)
            with pytest.raises(posthaste.InvalidRequest):
                await client.get("https://localhost/\ud800")

    run(main())


def test_nobody_answers():
    async def main():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
            silent.bind(("127.0.0.1", 0))
            url = f"https://127.0.0.1:{silent.getsockname()[1]}/"
            async with posthaste.Client(verify=False, timeout=0.3) as client:
                with pytest.raises(posthaste.ConnectTimeout, match="nothing answered on UDP") as caught:
                    await client.get(url)
                assert isinstance(caught.value, (TimeoutError, ConnectionError)) and isinstance(
                    caught.value, posthaste.Error
                )

    run(main())


def test_a_certificate_is_refused(server):
    async def main():
        async with posthaste.Client() as client:
            with pytest.raises(posthaste.CertificateError, match="verify=FILE"):
                await client.get(f"{server.url}/hello.txt")
        async with posthaste.Client(verify=False) as client:
            assert (await client.get(f"{server.url}/hello.txt")).status == 200

    run(main())


def test_a_response_that_does_not_come_in_time(edge):
    async def main():
        async with posthaste.Client(verify=edge.certificate, timeout=0.5) as client:
            with pytest.raises(posthaste.TimeoutError, match="no response within 0.5 s"):
                await client.get(f"{edge.url}/hang")
            response = await client.get(f"{edge.url}/hold")
            with pytest.raises(TimeoutError):
                await response.read()

    run(main())


def test_a_response_that_is_cut_off(tmp_path, server):
    """A server that ends with the second signal resets what it has not sent."""
    from conftest import serve

    async def main():
        other = serve(server.root, tmp_path / "state", "--grace", "0.001")
        async with posthaste.Client(verify=other.certificate) as client:
            response = await client.get(f"{other.url}/large.bin")
            other.stop()
            with pytest.raises(posthaste.TransferError):
                await response.read()

    run(main())
