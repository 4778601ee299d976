"""The page of `pmlab report`, opened in a headless Chromium: on a phone and on a desk, light and dark, nothing
overflows, and links and charts are there. Skipped (77) where there is no browser."""
import os
import pathlib
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
import browser  # noqa: E402
from program import ProgramTest, main  # noqa: E402

EXPERIMENTS = ("hybrid", "placement", "cache", "ordered", "counted", "memory", "block_writes", "kv_insert",
               "which_index")
PHONE, DESK = 390, 1280
SKIPPED = 77

# What is not wholly on the screen, of a page with all its parts open: [what, text].
OVERFLOWS = """(() => {
  document.querySelectorAll("details").forEach(part => part.open = true);
  const width = document.documentElement.clientWidth, found = [];
  const tell = (why, e) => found.push(
    why + ": " + e.tagName + " " + (e.closest("[id]")?.id ?? "") + " " + e.textContent.slice(0, 60));
  if (document.documentElement.scrollWidth > width) found.push("the page is wider than the screen");
  for (const e of document.querySelectorAll("body *")) {
    const box = e.getBoundingClientRect();
    if (e.closest("svg.shared") || !box.width) continue;
    if (box.right > width + 1 || box.left < -1) tell("beyond the screen", e);
    if (e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX != "visible") tell("cut or scrolled", e);
    if (e.tagName == "text") {
      const around = e.closest("svg").getBoundingClientRect();
      if (box.right > around.right + 1 || box.left < around.left - 1) tell("cut by its drawing", e);
    }
  }
  return found;
})()"""

EMPTY_CHARTS = """[...document.querySelectorAll("figure")].filter(figure => {
  const drawings = [...figure.querySelectorAll(".drawing svg")];
  return !drawings.length || drawings.some(d => d.getBoundingClientRect().height < 10 || !d.querySelector("path,use"));
}).map(figure => figure.id)"""

LINKS = """[...document.querySelectorAll("a")].map(a => a.getAttribute("href"))"""
LACKING = """[...document.querySelectorAll('a[href^="#"]')].map(a => a.getAttribute("href").slice(1))
  .filter(id => !document.getElementById(id))"""
# The contrast of the page and of the letters in its charts: the ratio of their luminances.
CONTRAST = """(() => {
  const light = colour => colour.match(/[0-9.]+/g).slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const paper = light(getComputedStyle(document.body).backgroundColor);
  const ratio = colour => {
    const ink = light(colour);
    return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
  };
  return Math.min(ratio(getComputedStyle(document.body).color),
                  ...[...document.querySelectorAll("figure text")].map(t => ratio(getComputedStyle(t).fill)));
})()"""
READABLE = 4.5


class Page(ProgramTest):
    """One run for all tests: its page, and the published one."""

    def setUp(self):
        super().setUp()
        self.out, self.published = (pathlib.Path(self.file(name)) for name in ("out", "published"))
        self.assert_works("run", *EXPERIMENTS, "--scale", "smoke", "--out", str(self.out), "--quiet")
        self.assert_works("report", str(self.out), "--publish", str(self.published))
        self.browser = browser.Browser()
        self.addCleanup(self.browser.close)

    def check_links(self, page):
        self.assertEqual(self.browser.value(LACKING), [])
        files = {link.partition("#")[0] for link in self.browser.value(LINKS)} - {""}
        self.assertEqual([f for f in files if "://" not in f and not (page.parent / f).is_file()], [])

    def test_nothing_overflows_and_links_and_charts_resolve(self):
        for page in (self.out / "index.html", self.published / "index.html"):
            for width in (PHONE, DESK):
                for dark in (False, True):
                    with self.subTest(page=page.parent.name, width=width, dark=dark):
                        self.browser.open(page, width, dark)
                        self.assertEqual("\n".join(self.browser.value(OVERFLOWS)[:20]), "")
                        self.assertEqual(self.browser.value(EMPTY_CHARTS), [])
                        self.assertGreater(self.browser.value(CONTRAST), READABLE)
                        self.check_links(page)


if __name__ == "__main__":
    if browser.program() is None:
        print(f"no {' or '.join(browser.PROGRAMS)} here: scripts/setup.sh --with-browser installs it")
        sys.exit(SKIPPED)
    main()
