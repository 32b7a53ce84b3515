import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.tools import ToolException

from tools.web_address import allowed_urls, is_public, read_address, redirected, unechoed


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("HTTP://Example.COM:80/a#part", "http://example.com/a"),
        ("https://example.com", "https://example.com/"),
        ("https://example.com.:443/", "https://example.com/"),
        (
            "https://例子.测试/路径?q=价格",
            "https://xn--fsqu00a.xn--0zwm56d/%E8%B7%AF%E5%BE%84?q=%E4%BB%B7%E6%A0%BC",
        ),
        ("https://e.test/%7ea/%2f%c3%a4", "https://e.test/~a/%2F%C3%A4"),
        ("http://１２７.0.0.1/", "http://127.0.0.1/"),
        ("http://127.0.0.1./", "http://127.0.0.1/"),
        ("http://[0:0:0:0:0:0:0:1]:8080/x", "http://[::1]:8080/x"),
        ("http://a_b.example.com/", "http://a_b.example.com/"),
    ],
)
def test_one_address_has_one_form(written, canonical):
    assert str(read_address(written)) == canonical
    assert str(read_address(canonical)) == canonical


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("file:///etc/passwd", "only http and https"),
        ("gopher://example.com/", "only http and https"),
        ("javascript:alert(1)", "only http and https"),
        ("example.com", "only http and https"),
        ("http://user:pw@example.com/", "user name or password"),
        ("http://example.com@127.0.0.1/", "user name or password"),
        ("http://", "names no host"),
        ("http://2130706433/", "four decimal numbers"),
        ("http://0177.0.0.1/", "four decimal numbers"),
        ("http://0x7f.0.0.1/", "four decimal numbers"),
        ("http://0x7f000001/", "four decimal numbers"),
        ("http://127.1/", "four decimal numbers"),
        ("http://[fe80::1%25eth0]/", "not a host name"),
        ("http://[::g]/", "is refused"),
        ("http://a..b/", "not a host name"),
        ("http://example.com\\@evil.test/", "white space"),
        ("http://example.com/a b", "white space"),
        ("http://example.com:99999/", "not a URL"),
        ("http://" + "a" * 5000 + ".test/", "longer than"),
    ],
)
def test_what_programs_read_differently_is_refused(written, why):
    with pytest.raises(ToolException, match=why):
        read_address(written)


@given(st.text(max_size=60) | st.from_regex(r"https?://[^/]{0,30}/?.{0,30}", fullmatch=True))
def test_no_text_breaks_the_reading_of_an_address(text):
    try:
        address = read_address(text)
    except ToolException:
        return
    assert str(address).isascii()
    assert read_address(str(address)) == address


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("see https://e.test/a, or (https://e.test/b_(c)).", ["https://e.test/a", "https://e.test/b_(c)"]),
        ("[title](https://e.test/a?x=1&amp;y=2)", ["https://e.test/a?x=1&y=2"]),
        ('{"url": "https:\\/\\/e.test\\/a"}', ["https://e.test/a"]),
        ("请看https://e.test/价格。然后", ["https://e.test/%E4%BB%B7%E6%A0%BC"]),
        ("见https://e.test/a然后", ["https://e.test/a"]),
        (
            "compare example.com/pricing with https://e.test.",
            ["https://example.com/pricing", "https://e.test/"],
        ),
        ("<a href='http://e.test/x'>", ["http://e.test/x", "https://e.test/x"]),
    ],
)
def test_the_addresses_of_a_text_are_found(text, urls):
    assert set(urls) <= allowed_urls([text])


def test_an_address_is_not_allowed_by_its_host_alone():
    allowed = allowed_urls(["https://e.test/a"])
    for other in ("https://e.test/", "https://e.test/a/b", "https://e.test/a?leak=1", "http://e.test/a"):
        assert str(read_address(other)) not in allowed


def test_a_mail_address_and_a_version_are_no_web_addresses():
    assert allowed_urls(["write to anna@example.com about 3.10.2 and e.g. this"]) == set()


def test_hostile_text_takes_no_time_and_breaks_nothing():
    for text in ("http://a/" + "(" * 200_000, "a." * 100_000, "http://\ud800.test/\0", "https://[" * 1000):
        allowed_urls([text])


def test_what_a_call_said_itself_is_no_finding():
    assert unechoed(
        "rows: https://evil.test/?d=1 and https://e.test/", "SELECT 'https://evil.test/?d=1'"
    ) == ("https://e.test/")


@pytest.mark.parametrize(
    "text",
    [
        *(
            "127.0.0.1",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.100.100.200",
        ),
        *("0.0.0.0", "224.0.0.1", "255.255.255.255", "168.63.129.16", "192.0.2.1", "198.18.0.1"),
        *("::", "::1", "fe80::1", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254"),
        *("::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:db8::1"),
    ],
)
def test_private_networks_are_known(text):
    assert not is_public(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_the_public_internet_is_known(text):
    assert is_public(ipaddress.ip_address(text))


def test_a_redirect_may_be_relative():
    base = read_address("https://e.test/a/b?c")
    assert str(redirected(base, "../d")) == "https://e.test/d"
    assert str(redirected(base, "//f.test/")) == "https://f.test/"
