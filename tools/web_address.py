"""Web addresses: their one canonical form, which of them a step may open, and which networks are never reached.

A step may open what the objective names and what tool results contain. An address that only a model wrote could carry
away, in its own letters, what the model has read.
"""

import html
import ipaddress
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from urllib.parse import SplitResult, urljoin, urlsplit

from langchain_core.tools import ToolException

MAX_URL_CHARS = 4_000
MAX_HOST_CHARS = 253
_PORTS = {"http": 80, "https": 443}
# An address ends at white space, quotes, angle brackets, backticks and the punctuation of Chinese text.
_RUN = r"[^\s<>\"'`\\^{}|，。；：！？、（）【】《》「」『』“”‘’…]"
_URL = re.compile(rf"https?://{_RUN}+", re.IGNORECASE)
_BARE = re.compile(
    rf"(?<![\w@./:%-])(?:[a-z0-9-]{{1,63}}\.)+[a-z]{{2,24}}(?::\d+)?(?:/{_RUN}*)?(?![\w@-])", re.IGNORECASE
)
_HOST = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
_NOT_ASCII = re.compile(r"[^\x21-\x7e]")
_TRAILING = ".,;:!?*_~"
_CLOSING = {")": "(", "]": "["}
_MAX_CLOSING = 4
_MAX_READINGS = 50_000
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_SAFE = frozenset(b"!#$&'()*+,/:;=?@[]%") | _UNRESERVED
_METADATA = frozenset(
    {
        ipaddress.ip_address("168.63.129.16")  # a cloud's metadata service on a global address
    }
)
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_COMPATIBLE = ipaddress.ip_network("::/96")

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True)
class Address:
    """A web address in its canonical form.

    Attributes:
        host: lower-case ASCII (punycode), without a trailing dot; an IPv6 address without its brackets.
        target: path and query, as they stand in the request.
    """

    scheme: str
    host: str
    port: int
    target: str

    @property
    def authority(self) -> str:
        """Host and port as in a Host header: the scheme's own port is left out."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def read_address(url: str) -> Address:
    """Return the canonical form of an http or https URL; the fragment is dropped.

    Raises:
        ToolException: it is no such URL, or has a form that servers and programs read differently.
    """
    url = url.strip()
    try:
        parts = urlsplit(url)
        scheme, host, port = parts.scheme.lower(), parts.hostname or "", parts.port
    except ValueError:
        raise _refused(url, "it is not a URL") from None
    fault = _fault(url, parts)
    if fault:
        raise _refused(url, fault)
    name = _host(url, host)
    target = _escaped(parts.path or "/") + (f"?{_escaped(parts.query)}" if parts.query else "")
    return Address(scheme, name, _PORTS[scheme] if port is None else port, target)


def _fault(url: str, parts: SplitResult) -> str:
    if len(url) > MAX_URL_CHARS:
        return f"it is longer than {MAX_URL_CHARS} characters"
    if parts.scheme.lower() not in _PORTS:
        return "only http and https addresses are opened"
    if "\\" in url or any(ord(char) < 33 or ord(char) == 127 for char in url):
        return "it holds white space, a backslash or a control character"
    if "@" in parts.netloc:
        return "a user name or password in an address is not sent"
    return "" if parts.hostname else "it names no host"


def _refused(url: str, fault: str) -> ToolException:
    return ToolException(f"address {url[:200]!r} is refused: {fault}")


def _host(url: str, host: str) -> str:
    if ":" in host:  # only an IPv6 address in brackets has colons
        try:
            return ipaddress.IPv6Address(host).compressed if "%" not in host else _no_host(url)
        except ValueError:
            return _no_host(url)
    # Names with an underscore are no host names by the standard, but are in use.
    name = (host if host.isascii() else _ascii_name(url, host)).lower().removesuffix(".")
    if not _HOST.fullmatch(name) or len(name) > MAX_HOST_CHARS:
        return _no_host(url)
    last = name.rpartition(".")[2]
    if last.isdigit() or re.fullmatch(r"0x[0-9a-f]*", last):
        try:
            return ipaddress.IPv4Address(name).compressed
        except ValueError:
            raise _refused(url, "an IP address is written as four decimal numbers") from None
    return name


def _ascii_name(url: str, host: str) -> str:
    import idna

    try:
        return idna.encode(host, uts46=True).decode("ascii")
    except (idna.IDNAError, UnicodeError):
        return _no_host(url)


def _no_host(url: str) -> str:
    raise _refused(url, "its host is not a host name")


def _escaped(text: str) -> str:
    """Return text with the same percent escapes however it was written: capital hex, and only where needed."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    plain = _ESCAPE.sub(lambda m: chr(byte) if (byte := int(m[1], 16)) in _UNRESERVED else m[0].upper(), text)
    return "".join(chr(byte) if byte in _SAFE else f"%{byte:02X}" for byte in plain.encode())


def redirected(base: Address, location: str) -> Address:
    """Return where a redirect leads.

    Raises:
        ToolException: to no http or https address.
    """
    return read_address(urljoin(str(base), location.strip()))


def allowed_urls(texts: Iterable[str]) -> set[str]:
    """Return the addresses that stand in the texts, in canonical form.

    http:// stands for https:// too; a bare name such as example.com/page stands for both. Where the end of an address
    is not certain (a closing bracket, Chinese text right after it), each reading counts.
    """
    found: set[str] = set()
    for text in texts:
        for written in set(islice(_written(text), _MAX_READINGS)):
            try:
                address = read_address(written)
            except ToolException:
                continue
            found.add(str(address))
            if address.scheme == "http" and address.port == _PORTS["http"]:
                found.add(str(Address("https", address.host, _PORTS["https"], address.target)))
    return found


def _written(text: str) -> Iterator[str]:
    # JSON may escape slashes, and HTML ampersands.
    text = text.replace("\\/", "/")
    for version in {text, html.unescape(text)}:
        for match in _URL.finditer(version):
            yield from _readings(match[0])
        for match in _BARE.finditer(version):
            yield from (f"http://{reading}" for reading in _readings(match[0]))


def _readings(run: str) -> Iterator[str]:
    """Yield the addresses that a run of characters may stand for, the longest first."""
    run = run[: MAX_URL_CHARS + 1]
    for candidate in (run, _NOT_ASCII.split(run, maxsplit=1)[0]):
        yield candidate
        yield from (candidate.partition(closing)[0].rstrip(_TRAILING) for closing in _CLOSING)
        shorter = candidate.rstrip(_TRAILING)
        for _ in range(_MAX_CLOSING):
            yield shorter
            if not _unbalanced(shorter):
                break
            shorter = shorter[:-1].rstrip(_TRAILING)


def _unbalanced(run: str) -> bool:
    opening = _CLOSING.get(run[-1:])
    return opening is not None and run.count(run[-1]) > run.count(opening)


def unechoed(result: str, arguments: str) -> str:
    """Return the addresses of a tool's result, one a line, without those that its call's arguments already held.

    A tool that repeats its arguments (SQL with a literal, a command that prints) would otherwise make any address
    that a model writes look like a finding.
    """
    return "\n".join(sorted(allowed_urls([result]) - allowed_urls([arguments])))


def is_public(address: IPAddress) -> bool:
    """Return whether an address is on the public internet: not private, loopback, link-local, shared, multicast, ...

    Addresses that carry an IPv4 address inside (mapped, compatible, NAT64, 6to4, Teredo) count as that one.
    """
    if isinstance(address, ipaddress.IPv6Address):
        inner = _embedded(address)
        if inner is not None:
            return is_public(inner)
    return address.is_global and not address.is_multicast and address not in _METADATA


def _embedded(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if address in _NAT64 or (address in _COMPATIBLE and int(address) > 1):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
