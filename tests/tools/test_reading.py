import zipfile
from pathlib import Path

import pytest

from tools.reading import Document, Unreadable, installed_converter, read_document_file


def read(folder: Path, name: str, content: str | bytes) -> Document:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_document_file(path, name, installed_converter())


def headings(document: Document) -> list[tuple[int, str]]:
    return [
        (line.level, text)
        for line, text in zip([n for n in document.lines if n.level], document.headings, strict=True)
    ]


def test_markdown_headings_are_found_and_those_in_code_are_not(tmp_path):
    text = "Intro\n\n# One #\n\n```sh\n# comment\n```\n\nTwo\n---\n\n~~~\n# no\n```\n# no\n~~~\n#notone\n## Three"
    document = read(tmp_path, "a.md", text)
    assert headings(document) == [(1, "One"), (2, "Two"), (2, "Three")]
    assert document.title == "One"
    assert document.text == text


def test_the_title_of_front_matter_is_the_title(tmp_path):
    document = read(tmp_path, "a.md", '---\ntitle: "定价 {x}"\ndate: 2024-01-01\n---\n# Other\ntext')
    assert document.title == "定价 {x}"
    assert document.headings == ["Other"]


def test_restructured_text_headings(tmp_path):
    document = read(
        tmp_path, "a.rst", "=====\nTitle\n=====\n\nText\n\nPart\n----\n\nSub\n~~~\n\nPart 2\n------\n"
    )
    assert headings(document) == [(1, "Title"), (2, "Part"), (3, "Sub"), (2, "Part 2")]


def test_plain_text_has_no_headings_and_is_named_after_its_file(tmp_path):
    document = read(tmp_path, "反馈.txt", "# not a heading\n\ntext")
    assert (document.title, document.headings) == ("反馈", [])


def test_html_keeps_blocks_tables_and_lines_and_drops_scripts(tmp_path):
    page = """<?xml version="1.0"?>
<html><head><title>Acme &amp; Co</title><style>p {color: red}</style></head>
<body><nav>Home</nav><h1>Prices</h1>
<p>The <b>team</b> plan
costs 12.</p><script>alert(1)</script>
<table><tr><th>Plan</th><th>Price</th></tr>
<tr><td>Team</td><td>12</td></tr></table>
<pre>a
  b</pre><ul><li>one</li><li>two</li></ul>tail<br>end<!-- gone --></body></html>"""
    document = read(tmp_path, "a.html", page)
    assert document.title == "Acme & Co"
    assert [(line.text, line.place, line.level) for line in document.lines if line.text] == [
        ("Prices", "L3", 1),
        ("The team plan costs 12.", "L4", 0),
        ("Plan | Price", "L6", 0),
        ("Team | 12", "L7", 0),
        ("a", "L8", 0),
        ("  b", "L9", 0),
        ("one", "L9", 0),
        ("two", "L9", 0),
        ("tail", "L9", 0),
        ("end", "L9", 0),
    ]


@pytest.mark.parametrize(
    "page",
    [
        "no tags",
        "",
        "a.html",
        "https://example.org/x",
        "<p>" * 20_000 + "deep",
        "<![CDATA[x]]>",
        "<?xml?><rss/>",
    ],
)
def test_strange_html_is_read_without_a_warning(tmp_path, page):
    read(tmp_path, "a.html", page)


PAGE = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents {} 0 R /Resources << /Font << /F1 3 0 R >> >> >>"


def pdf(*pages: str) -> bytes:
    """A minimal PDF with one line of text on each page."""
    first = 4
    kids = " ".join(f"{first + 2 * n} 0 R" for n in range(len(pages)))
    bodies = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 50 700 Td ({text}) Tj ET"
        bodies += [
            PAGE.format(first + 2 * number + 1),
            f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        ]
    data, offsets = "%PDF-1.4\n", []
    for number, body in enumerate(bodies, start=1):
        offsets.append(len(data))
        data += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    size = len(bodies) + 1
    return f"{data}xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{len(data)}\n%%EOF".encode()


def docx(folder: Path) -> bytes:
    path = folder / "made.zip"
    main = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{package}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-'
            'package.relationships+xml"/><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-'
            'officedocument.wordprocessingml.document.main+xml"/></Types>',
        )
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" Type="{office}/officeDocument" '
            'Target="word/document.xml"/></Relationships>',
        )
        archive.writestr(
            "word/document.xml",
            f'<w:document xmlns:w="{main}"><w:body><w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>合同</w:t></w:r>'
            "</w:p><w:p><w:r><w:t>定价为四十五元</w:t></w:r></w:p></w:body></w:document>",
        )
    return path.read_bytes()


def test_a_pdf_is_read_with_its_page_numbers(tmp_path):
    document = read(tmp_path, "report.pdf", pdf("Alpha costs twelve", "Beta costs ninety"))
    places = {line.text.strip(): line.place for line in document.lines if line.text.strip()}
    assert places == {"Alpha costs twelve": "p1", "Beta costs ninety": "p2"}
    assert document.locator("p2") == "report.pdf#p2"


def test_a_docx_is_read(tmp_path):
    document = read(tmp_path, "a.docx", docx(tmp_path))
    assert "定价为四十五元" in document.text
    assert document.locator(document.lines[0].place) == "a.docx"


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.pdf", b"not a pdf", "damaged"),
        ("a.docx", b"PK not a zip", "damaged"),
        ("a.txt", b"\x89\0\0", "not text"),
        ("a.md", b"x" * 20_000_001, "larger than 20 MB"),
    ],
)
def test_what_cannot_be_read_is_named_with_the_reason(tmp_path, name, content, reason):
    with pytest.raises(Unreadable, match=reason):
        read(tmp_path, name, content)


def test_without_the_extra_the_reason_is_the_extra(tmp_path):
    (tmp_path / "a.pdf").write_bytes(b"%PDF")
    with pytest.raises(Unreadable, match=r"install the \[docs\] extra"):
        read_document_file(tmp_path / "a.pdf", "a.pdf", None)
