"""The facts planted in the example folders, on which the demo and its tests rely."""

import csv
import re
from collections import Counter
from datetime import date
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
COMPETITORS = EXAMPLES / "competitors"
CHURN = EXAMPLES / "churn"
VENDORS = ["brindlepath", "kelvermoor-field", "ostrevo", "quorvane", "tarnwick"]
WITHOUT_PRICE = "ostrevo"
MONEY = re.compile(
    r"[$€£¥]\s*\d|\b(?:USD|EUR|GBP)\s*\d|\d[\d,.]*\s*(?:USD|EUR|GBP|dollars?|euros?|cents?|pounds?)\b",
    re.IGNORECASE,
)
EMAIL = re.compile(r"[\w.+-]+@[\w-]+\.\w+")
# Mainland mobile numbers, and any run of ten or more digits that separators hold together; dates are removed first.
PHONE = re.compile(r"(?<!\d)1[3-9]\d{9}(?!\d)|\+?\d(?:[\s().-]?\d){9,}")
DATE = re.compile(r"\b(20\d\d)-(\d\d)-(\d\d)\b")


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _text(folder: Path) -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in _files(folder))


def _rows(name: str) -> list[dict[str, str]]:
    with (CHURN / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _months(start: date, end: date) -> int:
    return (end.year - start.year) * 12 + end.month - start.month - (end.day < start.day)


def test_there_are_five_vendors_and_nothing_beside_them():
    assert sorted(path.name for path in COMPETITORS.iterdir()) == VENDORS


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_vendor_has_two_dated_releases_prices_and_reviews(vendor: str):
    folder = COMPETITORS / vendor
    releases = sorted(folder.glob("release-*.md"))
    assert len(releases) == 2
    assert all(
        re.search(r"^Released 2026-\d\d-\d\d\.", path.read_text("utf-8"), re.MULTILINE) for path in releases
    )
    assert len(list(folder.glob("pricing.*"))) == 1
    ratings = [
        int(r)
        for r in re.findall(r"^\*\*([1-5])/5, ", (folder / "reviews.md").read_text("utf-8"), re.MULTILINE)
    ]
    assert 8 <= len(ratings) <= 12
    stated = re.search(r"Average of these \w+: (\d\.\d) out of 5", (folder / "reviews.md").read_text("utf-8"))
    assert stated is not None
    assert stated[1] == f"{sum(ratings) / len(ratings):.1f}"


def test_nothing_is_published_after_october_2026():
    text = _text(COMPETITORS)
    published = re.findall(r"^Released (\S+)\.|^\*\*[1-5]/5, .*, (\S+)\.\*\*", text, re.MULTILINE)
    dates = [released or reviewed for released, reviewed in published]
    assert len(dates) == text.count("/5, ") + 2 * len(VENDORS)
    assert all("2026-01-01" <= day <= "2026-10-31" for day in dates)


def test_exactly_one_vendor_states_no_amount_of_money_anywhere():
    silent = [vendor for vendor in VENDORS if not MONEY.search(_text(COMPETITORS / vendor))]
    assert silent == [WITHOUT_PRICE]
    assert "Contact sales for a quote" in (COMPETITORS / WITHOUT_PRICE / "pricing.md").read_text("utf-8")


@pytest.mark.parametrize("vendor", [vendor for vendor in VENDORS if vendor != WITHOUT_PRICE])
def test_the_other_vendors_state_amounts_on_their_pricing_page(vendor: str):
    (page,) = (COMPETITORS / vendor).glob("pricing.*")
    assert len(MONEY.findall(page.read_text("utf-8"))) >= 3


def test_nobody_else_states_an_amount_for_the_vendor_without_a_price():
    for path in _files(COMPETITORS):
        lines = path.read_text("utf-8").splitlines()
        assert not [line for line in lines if WITHOUT_PRICE in line.lower() and MONEY.search(line)], path


def test_every_cancellation_belongs_to_one_customer_and_agrees_with_it():
    customers = {row["客户编号"]: row for row in _rows("customers.csv")}
    gone = _rows("cancellations.csv")
    assert len(customers) == len(_rows("customers.csv")) == 240
    assert len({row["客户编号"] for row in gone}) == len(gone) == 60
    for row in gone:
        signed = date.fromisoformat(customers[row["客户编号"]]["签约日期"])
        ended = date.fromisoformat(row["取消日期"])
        assert date(2026, 7, 1) <= ended <= date(2026, 9, 30)
        assert int(row["使用月数"]) == _months(signed, ended)


def test_three_reasons_explain_most_of_the_churn():
    reasons = Counter(row["取消原因"] for row in _rows("cancellations.csv"))
    top = reasons.most_common(3)
    assert top == [("数据导入慢", 21), ("价格调整", 16), ("客服响应慢", 11)]
    assert sum(count for _, count in top) >= 0.6 * sum(reasons.values())


def test_fees_in_the_table_are_those_before_the_price_change():
    notice = (CHURN / "notice-price-change.md").read_text("utf-8")
    old = {
        plan: fee.replace(",", "")
        for plan, fee in re.findall(r"^\| (\S+版) \| ([\d,]+) \|", notice, re.MULTILINE)
    }
    assert {(row["套餐"], row["月费"]) for row in _rows("customers.csv")} == set(old.items())


def test_the_texts_tell_the_same_causes_as_the_table():
    tickets = (CHURN / "tickets.md").read_text("utf-8")
    categories = Counter(
        re.findall(r"^\*\*T\d{4}\*\* 2026-\d\d-\d\d · C\d{4} · (\S+) · \S+$", tickets, re.MULTILINE)
    )
    assert 40 <= sum(categories.values()) <= 60
    assert [name for name, _ in categories.most_common(3)] == ["数据导入", "价格与续费", "客服响应"]
    feedback = (CHURN / "feedback.md").read_text("utf-8")
    assert all(word in feedback for word in ("数据导入慢", "涨价", "代理商"))


def test_tickets_fit_the_tables():
    tickets = (CHURN / "tickets.md").read_text("utf-8")
    entries = re.findall(r"^\*\*(T\d{4})\*\* (\S+) · (C\d{4}) · \S+ · (\S+)$", tickets, re.MULTILINE)
    signed = {row["客户编号"]: row["签约日期"] for row in _rows("customers.csv")}
    gone = {row["客户编号"]: row for row in _rows("cancellations.csv")}
    assert len({ticket for ticket, *_ in entries}) == len(entries)
    assert all(signed[customer] < day for _, day, customer, _ in entries)
    assert all(day < gone[customer]["取消日期"] for _, day, customer, _ in entries if customer in gone)
    still_open = Counter(customer for *_, customer, state in entries if state != "已解决")
    assert all(count <= int(gone[c]["未解决工单数"]) for c, count in still_open.items() if c in gone)


def test_customers_named_in_the_feedback_are_as_the_tables_say():
    feedback = (CHURN / "feedback.md").read_text("utf-8")
    heads = re.findall(r"^### (C\d{4})，(\S+?)，(\S+?)，(\S+)(?: 停用)?$", feedback, re.MULTILINE)
    customers = {row["客户编号"]: row for row in _rows("customers.csv")}
    ended = {row["客户编号"]: row["取消日期"] for row in _rows("cancellations.csv")}
    assert len(heads) == 10
    for customer, industry, plan, end in heads:
        assert (customers[customer]["行业"], customers[customer]["套餐"]) == (industry, plan)
        assert ended.get(customer, "留存") == end


@pytest.mark.parametrize("folder", [COMPETITORS, CHURN], ids=lambda path: path.name)
def test_a_folder_is_small_utf8_and_reaches_nobody(folder: Path):
    assert sum(path.stat().st_size for path in _files(folder)) < 200_000
    for path in _files(folder):
        text = path.read_bytes().decode("utf-8")
        assert "\ufffd" not in text
        assert not EMAIL.search(text), path
        assert not PHONE.search(DATE.sub("", text)), path
