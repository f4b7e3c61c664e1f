"""Open the verification reports and the documentation in Chromium: `python .ci/browsers.py CHROMIUM SITE`.

A page may log no error, load nothing from elsewhere, be no wider than the window, link to no missing anchor, and print
no texts of a chart over each other.
The search of the documentation finds a rule by the name of a setting, code can be copied, and the table of all rules
has filters that work.
Reports are laid out for print, too.
"""

import functools
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

REPORTS = Path(__file__).resolve().parents[1] / "docs/verification"
WIDTHS = (390, 1400)
SCREEN = (("screen", "light"), ("screen", "dark"))
PRINT = (("print", "light"),)
"""Media and colour schemes."""
OPTIONS = [
    # As root, and without the lookups that a desktop browser makes at start.
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
MISSING_ANCHORS = """() => [...document.querySelectorAll('a[href^="#"]')]
    .map(link => link.getAttribute("href").slice(1))
    .filter(name => name && !document.getElementById(decodeURIComponent(name)))"""

OVERLAPS = """() => {
    const boxes = part => {
        const range = document.createRange();
        range.selectNodeContents(part);
        return [...range.getClientRects()].filter(box => box.width && box.height);
    };
    const apart = (one, other) => one.right <= other.left + 1 || other.right <= one.left + 1 ||
        one.bottom <= other.top + 1 || other.bottom <= one.top + 1;
    const found = [];
    for (const chart of document.querySelectorAll("svg, .bars")) {
        const parts = [...chart.querySelectorAll("text, li > span")].map(part => [part.textContent, boxes(part)]);
        parts.forEach(([text, own], place) => {
            const over = parts.slice(place + 1).find(([, others]) =>
                own.some(one => others.some(other => !apart(one, other))));
            if (over) found.push(`"${text}" and "${over[0]}"`);
        });
    }
    return found;
}"""
"""Texts of a chart that are printed over each other."""


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and says nothing of it."""

    def log_message(self, format: str, *args: object) -> None:
        """Drop the line."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine while the block runs; yield the URL of its root."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


def problems(page: Page, url: str, root: str, looks: Sequence[tuple[str, str]]) -> list[str]:
    """Return what is wrong with a page in each look, in narrow and wide windows."""
    result: list[str] = []
    own = (root, "data:")
    page.on("console", lambda message: result.append(f"console: {message.text}") if message.type == "error" else None)
    page.on("pageerror", lambda error: result.append(f"script: {error}"))
    page.on("request", lambda request: None if request.url.startswith(own) else result.append(f"loads {request.url}"))
    # Narrow first: a theme may take its time to lay a wide page out again.
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        if width == WIDTHS[0]:
            page.goto(url)
        for media, scheme in looks:
            page.emulate_media(media=media, color_scheme=scheme)
            content = page.evaluate("document.documentElement.scrollWidth")
            if content > width:
                result.append(f"{content} px wide in a window of {width} px ({media}, {scheme})")
            over = page.evaluate(OVERLAPS)
            result += [f"{texts} overlap in a window of {width} px ({media}, {scheme})" for texts in over]
    if not page.title() or page.locator("h1").count() == 0:
        result.append("no title or no heading")
    return result + [f"no anchor #{name}" for name in page.evaluate(MISSING_ANCHORS)]


def failures(browser: Browser, folder: Path, looks: Sequence[tuple[str, str]]) -> int:
    """Print the problems of each page of a folder; return how many pages have some, -1 without pages."""
    paths = sorted(folder.rglob("*.html"))
    failed = 0
    with served(folder) as root:
        for path in paths:
            page = browser.new_page()
            name = path.relative_to(folder).as_posix()
            wrong = problems(page, root + name, root, looks)
            page.close()
            failed += bool(wrong)
            for problem in wrong:
                print(f"{name}: {problem}")
    print(f"{folder.name}: {len(paths)} pages in Chromium {browser.version}, {failed} with problems", flush=True)
    return failed if paths else -1


def search_finds(page: Page, root: str, words: str, expected: str) -> bool:
    """Whether the first result of a search is a page."""
    page.goto(f"{root}index.html")
    page.get_by_role("button", name="Search").first.click()
    page.keyboard.type(words, delay=20)
    first = page.locator("a[href*='?h=']:visible").first
    first.wait_for()
    return expected in (first.get_attribute("href") or "")


def shown_rules(page: Page, root: str, text: str = "", **chosen: str) -> int:
    """How many rules are shown with some choices of the filters; the count that the page shows has to agree."""
    page.goto(f"{root}rules/index.html")
    page.fill("input[name=text]", text)
    for name, value in chosen.items():
        page.select_option(f"select[name={name}]", value)
    rows = page.locator("article tbody tr:visible").count()
    assert page.locator("#filters output").inner_text().split()[0] == str(rows)
    return rows


def uses(browser: Browser, site: Path) -> list[str]:
    """Return what a reader of the documentation cannot do."""
    wrong = []
    with served(site) as root:
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        for words, expected in (("external_cuda_graph", "rules/CG102"), ("cuda_graph_scope", "rules/CG106")):
            if not search_finds(page, root, words, expected):
                wrong.append(f"a search for {words} does not find {expected} first")
        every, old = shown_rules(page, root), shown_rules(page, root, release="0.12")
        deprecated = shown_rules(page, root, text="deprecated", family="CG1")
        if not 0 < deprecated < every or not 0 < old < every:
            wrong.append(f"filters show {deprecated} and {old} of {every} rules")
        page.goto(f"{root}gates.html")
        if page.locator("pre").count() > page.locator("button[title='Copy to clipboard']").count():
            wrong.append("code without a button that copies it")
        page.close()
    for problem in wrong:
        print(f"documentation: {problem}")
    return wrong


def main() -> int:
    """Return 1 if a page has a problem."""
    chromium, site = sys.argv[1], Path(sys.argv[2])
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=OPTIONS)
        counts = [failures(browser, REPORTS, SCREEN + PRINT), failures(browser, site, SCREEN)]
        counts.append(len(uses(browser, site)))
    return 1 if any(counts) else 0


if __name__ == "__main__":
    sys.exit(main())
