"""One GET over HTTP that reaches the public internet only: addresses checked after DNS, and connected to as checked.

A host's name is looked up once for each hop; every address it stands for has to be public; the connection goes to one
of those addresses, whatever the name stands for a moment later. Redirects are followed by hand, each checked anew.
Proxies of the environment are not used: behind one, no address could be checked.
"""

import asyncio
import ipaddress
import socket
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_core.tools import ToolException

from tools.web_address import Address, is_public, redirected

if TYPE_CHECKING:
    import ssl

    import httpx

Resolver = Callable[[str, int], Awaitable[list[str]]]
MAX_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PIECE_BYTES = 65_536
_LATER = frozenset({408, 425, 429})
_HEADERS = {
    "user-agent": "planweave (research agent)",
    "accept": "text/html,application/xhtml+xml,application/json,text/*;q=0.9,*/*;q=0.5",
    "accept-encoding": "gzip",
}


async def look_up(host: str, port: int) -> list[str]:
    """Return the addresses that a host's name stands for.

    Raises:
        ToolException: there is no such host. ConnectionError: the name server does not answer.
    """
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        if error.errno == socket.EAI_AGAIN:
            raise ConnectionError(f"the name {host} cannot be looked up now") from None
        raise ToolException(f"there is no host {host!r}") from None
    except UnicodeError:
        raise ToolException(f"there is no host {host[:100]!r}") from None
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


@dataclass(frozen=True)
class FetchSettings:
    """The bounds of one fetch.

    Attributes:
        max_bytes: of the body, unpacked.
        seconds: for everything: names, redirects, body.
        allow_private: endpoints such as "127.0.0.1:8000" that may be reached although they are not public. For tests
            against a server of their own: set in code, never from the environment.
        look_up: gives the addresses of a host and port.
    """

    max_bytes: int = 5_000_000
    seconds: float = 20
    allow_private: frozenset[str] = frozenset()
    look_up: Resolver = look_up


@dataclass(frozen=True)
class Fetched:
    """A body and where it came from.

    Attributes:
        address: after redirects.
        media_type: lower case, without parameters; "" if the server names none.
        charset: as the server names it, or "".
    """

    address: Address
    data: bytes
    media_type: str
    charset: str


async def fetch(address: Address, settings: FetchSettings) -> Fetched:
    """Get an address, following at most MAX_REDIRECTS redirects.

    Raises:
        ToolException: it is refused, too large, or not there. PermissionError: the server asks for a login.
        ConnectionError, TimeoutError: it may work later.
    """
    import httpx

    # The time for the whole is kept here; a host that does not answer leaves some for its next address.
    waits = httpx.Timeout(None, connect=settings.seconds / 3)
    try:
        async with (
            asyncio.timeout(settings.seconds),
            httpx.AsyncClient(verify=_tls(), trust_env=False, timeout=waits, headers=_HEADERS) as client,
        ):
            return await _follow(client, address, settings)
    except TimeoutError:
        raise TimeoutError(f"{address.host} took longer than {settings.seconds:g} s") from None
    except httpx.HTTPError as error:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            raise ToolException(f"{address.host} cannot be trusted: its certificate is not valid") from None
        raise ConnectionError(
            f"{address.host} cannot be reached: {str(error)[:200] or type(error).__name__}"
        ) from None


def _tls() -> "ssl.SSLContext":
    # Made once: it reads a file of 300 kB.
    if not _CONTEXTS:
        import httpx

        _CONTEXTS.append(httpx.create_ssl_context(trust_env=False))
    return _CONTEXTS[0]


_CONTEXTS: "list[ssl.SSLContext]" = []


async def _follow(client: "httpx.AsyncClient", address: Address, settings: FetchSettings) -> Fetched:
    for _ in range(MAX_REDIRECTS + 1):
        result = await _one_hop(client, address, settings)
        if isinstance(result, Fetched):
            return result
        address = result
    raise ToolException(f"more than {MAX_REDIRECTS} redirects, the last to {address}")


async def _one_hop(
    client: "httpx.AsyncClient", address: Address, settings: FetchSettings
) -> Fetched | Address:
    import httpx

    endpoints = await checked_endpoints(address, settings)
    for position, endpoint in enumerate(endpoints, start=1):
        try:
            response = await client.send(_request(client, address, endpoint), stream=True)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            if position == len(endpoints):
                raise
            continue
        try:
            return await _received(response, address, settings)
        finally:
            await response.aclose()
    raise ToolException(f"there is no host {address.host!r}")


def _request(client: "httpx.AsyncClient", address: Address, endpoint: str) -> "httpx.Request":
    import httpx

    target = address.target.encode("ascii")
    url = httpx.URL(scheme=address.scheme, host=endpoint, port=address.port, raw_path=target)
    # The certificate has to be the host's, not the IP address's.
    named = {} if _is_ip(address.host) else {"sni_hostname": address.host}
    return client.build_request("GET", url, headers={"host": address.authority}, extensions=named)


async def checked_endpoints(address: Address, settings: FetchSettings) -> list[str]:
    """Return the IP addresses to connect to.

    Raises:
        ToolException: one of them is not on the public internet.
    """
    found = [address.host] if _is_ip(address.host) else await settings.look_up(address.host, address.port)
    for text in found:
        if f"{text}:{address.port}" not in settings.allow_private and not is_public(
            ipaddress.ip_address(text)
        ):
            raise ToolException(f"address '{address}' is refused: it leads into a private network ({text})")
    return found


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


async def _received(
    response: "httpx.Response", address: Address, settings: FetchSettings
) -> Fetched | Address:
    location = response.headers.get("location")
    if response.status_code in _REDIRECTS and location:
        return redirected(address, location)
    _check_status(response.status_code, response.reason_phrase, address)
    data = await _body(response, address, settings.max_bytes)
    media_type, _, _ = response.headers.get("content-type", "").partition(";")
    return Fetched(address, data, media_type.strip().lower(), response.charset_encoding or "")


def _check_status(status: int, reason: str, address: Address) -> None:
    if status < 300:
        return
    line = f"{address} answered {status} {reason[:60]}".rstrip()
    if status in (401, 403):
        raise PermissionError(f"{line}: it cannot be read without a login")
    if status in _LATER or status >= 500:
        raise ConnectionError(line)
    raise ToolException(line)


async def _body(response: "httpx.Response", address: Address, most: int) -> bytes:
    too_large = ToolException(f"{address} is larger than {most / 1e6:g} MB and is not read")
    declared = response.headers.get("content-length", "")
    if declared.isdecimal() and len(declared) < 20 and int(declared) > most:
        raise too_large
    chunks: list[bytes] = []
    size = 0
    async for chunk in _unpacked(response, address):
        size += len(chunk)
        if size > most:
            raise too_large
        chunks.append(chunk)
    return b"".join(chunks)


async def _unpacked(response: "httpx.Response", address: Address) -> AsyncIterator[bytes]:
    """Yield the body in pieces of at most 64 kB, however much a few bytes of it unpack to."""
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    if coding in ("", "identity"):
        async for chunk in response.aiter_raw():
            yield chunk
        return
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise ToolException(f"{address} is packed as {coding[:40]!r}, which is not read")
    unpack = zlib.decompressobj(wbits=47)  # gzip and zlib, told apart by their first bytes
    try:
        async for packed in response.aiter_raw():
            while packed and not unpack.eof:
                yield unpack.decompress(packed, _PIECE_BYTES)
                packed = unpack.unconsumed_tail
    except zlib.error:
        raise ToolException(f"{address} is damaged: it cannot be unpacked") from None
