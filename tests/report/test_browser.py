"""The reports of real runs in a real browser: wide and narrow, light and dark, on paper."""

from pathlib import Path

import pytest

from cli.report_page import page
from cli.texts import Texts
from tests.report import browser as chromium
from tests.report.hostile import facts

pytestmark = pytest.mark.skipif(chromium.program() is None, reason="no Chromium is installed")
PAGES = ["competitors", "churn", "hostile"]
TOO_WIDE = """[...document.querySelectorAll('body *')]
  .filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('.scroll'))
  .map(e => e.tagName + ' ' + e.textContent.slice(0, 40))"""
DEAD_LINKS = """[...document.querySelectorAll('a[href^="#"]')].map(a => a.getAttribute('href'))
  .filter(h => !document.getElementById(h.slice(1)))"""
LUMINANCE = """(() => { const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number);
  return (r + g + b) / 3; })()"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium.browser(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture(scope="module")
def pages(runs, tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    told = [*((n, f, "zh" if n == "churn" else "en") for n, f in runs.items()), ("hostile", facts(), "en")]
    for name, found, language in told:
        (folder / f"{name}.html").write_text(page(found, Texts(language)), encoding="utf-8")
    return {name: folder / f"{name}.html" for name, _, _ in told}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_quiet_and_fits(browser, pages, name, width, scheme):
    browser.open(pages[name], width=width, scheme=scheme)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate(TOO_WIDE) == []
    assert browser.console == []
    assert browser.requested == [pages[name].as_uri()]
    assert (browser.evaluate(LUMINANCE) < 128) == (scheme == "dark")


@pytest.mark.parametrize("name", PAGES)
def test_links_work(browser, pages, name):
    browser.open(pages[name], width=390)
    assert browser.evaluate(DEAD_LINKS) == []
    assert browser.evaluate("document.querySelectorAll('#answer a.cite').length") > 0
    browser.evaluate("document.querySelector('#answer a.cite').click()")
    top = browser.evaluate("document.querySelector(location.hash).getBoundingClientRect().top")
    assert browser.evaluate("location.hash").startswith("#source-")
    assert -1 < top < 844


def test_a_link_to_a_source_that_is_folded_away_opens_it(browser, pages):
    browser.open(pages["competitors"], width=390)
    folded = "[...document.querySelectorAll('#evidence a.cite')].find(a => document.querySelector(a.hash).closest('details'))"
    height = "document.querySelector(location.hash).getBoundingClientRect().height"
    browser.evaluate(f"{folded}.click()")
    assert browser.evaluate(height) > 0


@pytest.mark.parametrize(("width", "shown"), [(1280, "wide"), (390, "narrow")])
def test_the_plan_is_drawn_to_fit_the_page(browser, pages, width, shown):
    browser.open(pages["competitors"], width=width)
    visible = (
        "[...document.querySelectorAll('#plan .graph')].filter(g => g.offsetHeight > 0).map(g => g.className)"
    )
    assert browser.evaluate(visible) == [f"graph {shown}"]
    smallest = "Math.min(...[...document.querySelectorAll('#plan text')].filter(t => t.getBoundingClientRect().height > 0)"
    assert browser.evaluate(f"{smallest}.map(t => t.getBoundingClientRect().height))") > 10


@pytest.mark.parametrize("name", PAGES)
def test_paper_is_white_and_wide_enough(browser, pages, name):
    # 698 pixels: A4 between margins of 12 mm. A dark screen prints black on white all the same.
    browser.open(pages[name], width=698, scheme="dark", media="print")
    assert browser.evaluate("document.documentElement.scrollWidth") <= 698
    assert browser.evaluate(LUMINANCE) == 255
