"""The page of a study in a real browser: sorting, downloads, narrow and wide, light and dark."""

import re

import pytest

from credalchain.studies.study_page import write_report
from study_results import a_study, results_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.xdist_group("browser"),
]

LONG = "a method whose name is rather long, as names of methods in studies are, " * 2
HOSTILE = "<script>document.title='owned'</script>"


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """Three studies: many data sets and methods, damage, and one curve."""
    folder = tmp_path_factory.mktemp("reports")
    studies = {
        "many": a_study([f"data set {i}" for i in range(4)], [LONG, HOSTILE, "c", "x" * 120]),
        "damaged": a_study(["x"], ["a", "b"], levels=(0.0, 0.25, 0.5), folds=10),
        "one": a_study(["x"], ["a"]),
    }
    for name, study in studies.items():
        store = results_of(study, folder / f"{name}-results", lambda m, d: len(m) / 1000)
        write_report(study, store, folder / name)
    return folder


@pytest.fixture
def visit(browser, reports):
    """Open a page; in the end nothing must have gone wrong, and nobody been asked."""
    contexts, problems = [], []

    def open_page(name="many", *, width=1280, scheme="light", script=True):
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            java_script_enabled=script,
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda said: problems.append(said.text))  # what the policy forbids, too
        page.on(
            "request",
            lambda request: (
                None
                if request.url.startswith((reports.as_uri(), "data:"))
                else problems.append(request.url)
            ),
        )
        page.goto((reports / name / "report.html").as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []


def open_all(page):
    page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")


def column(page, table, place):
    """The cells of a column."""
    return table.locator(f"tbody tr:visible > :nth-child({place})").all_inner_texts()


@pytest.mark.parametrize(
    ("width", "scheme", "name"),
    [(390, "dark", "many"), (1600, "light", "damaged"), (390, "dark", "one")],
)
def test_narrow_and_wide_light_and_dark(visit, name, width, scheme, tmp_path):
    """No scrolling sideways, no violation of accessibility, and charts as wide as there is room."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = visit(name, width=width, scheme=scheme)
    open_all(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = axe.run(page)
    assert found.violations_count == 0, found.generate_report()
    widths = [chart.bounding_box()["width"] for chart in page.locator(".chart:visible").all()]
    assert widths
    assert min(widths) > 300  # text in them is 10 units high, of 302
    row = page.locator("#curves .panels").first.bounding_box()["width"]
    assert row > width - 50


def test_charts_follow_the_colours_of_the_page(visit):
    inks = []
    for scheme in ("light", "dark"):
        page = visit(scheme=scheme)
        assert page.locator("body").evaluate("e => getComputedStyle(e).color") == page.locator(
            ".chart text"
        ).first.evaluate("e => getComputedStyle(e).fill")
        inks.append(page.locator(".chart text").first.evaluate("e => getComputedStyle(e).fill"))
    assert inks[0] != inks[1]


def test_sorting_by_mouse_and_by_keyboard(visit):
    page = visit()
    page.click("text=measures (176 rows)")
    details = page.locator("details", has_text="measures (176 rows)")
    table = details.locator("table")
    before = column(page, table, 5)
    numbers = [float(cell.split()[0]) for cell in before]
    assert numbers != sorted(numbers)
    head = table.locator("thead th").nth(4)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    after = [float(cell.split()[0]) for cell in column(page, table, 5)]
    assert after == sorted(numbers)
    head.locator("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    after = [float(cell.split()[0]) for cell in column(page, table, 5)]
    assert after == sorted(numbers, reverse=True)
    by_s = table.locator("thead th").nth(3)
    by_s.locator("button").press("Space")
    assert head.get_attribute("aria-sort") is None
    values = [float(cell) for cell in column(page, table, 4)]
    assert values == sorted(values)
    assert values[-1] == 10  # as a number: as text it would come after 1
    details.locator("input").fill("XXX relevance")
    assert column(page, table, 1) == []
    details.locator("input").fill("set XXX")
    assert set(column(page, table, 2)) == {"x" * 120}


def test_a_p_value_that_is_small_is_sorted_as_a_number(visit):
    page = visit()
    page.click("text=/^tests/")
    table = page.locator("details", has_text=re.compile(r"^\s*tests \(")).locator("table")
    names = table.locator("thead th").all_inner_texts()
    place = next(at for at, name in enumerate(names, start=1) if name.startswith("p"))
    table.locator("thead th button").nth(place - 1).click()
    cells = column(page, table, place)
    assert cells[0] == "< 0.001"
    values = [float(cell.removeprefix("< ")) for cell in cells]
    assert values == sorted(values)


def test_tables_are_downloaded_from_the_page(visit, reports):
    page = visit()
    page.click("text=measures (176 rows)")
    with page.expect_download() as waiting:
        page.locator("details[open] a[download]").first.click()
    download = waiting.value
    assert download.suggested_filename == "measures.csv"
    saved = (reports / "many" / "measures.csv").read_bytes()
    assert open(download.path(), "rb").read() == saved  # noqa: SIM115


def test_without_a_script_tables_are_plain(visit):
    page = visit(script=False)
    assert page.locator("thead button").count() == 0
    assert page.locator("#findings tbody tr").count() == 4
    assert page.locator(".lead").inner_text().startswith("Best where")


def test_a_hostile_name_is_text(visit):
    page = visit()
    assert page.title() == "Study: made"
    assert HOSTILE in page.inner_text("#findings table")
