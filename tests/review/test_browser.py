"""The page in a real browser: by keyboard alone, narrow and wide, light and dark."""

import re
import shutil
import sqlite3

import numpy as np
import pandas as pd
import pytest

from conftest import LABELS
from credalchain import CredalChainClassifier, save_model
from credalchain.review.store import AnswerStore

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.xdist_group("browser"),
]


@pytest.fixture(autouse=True, scope="module")
def _playwright():
    """Import it only where tests of this file run: every worker reads all files."""
    global playwright
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")


@pytest.fixture
def visit(browser):
    """Open a page; in the end it must have had no error and asked nobody else."""
    contexts, problems, elsewhere = [], [], []

    def open_page(server, *, width=1280, height=900, scheme="light", who=None, **options):
        view = {"width": width, "height": height}
        context = browser.new_context(viewport=view, color_scheme=scheme, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith(server.url) else elsewhere.append(request.url)
            ),
        )
        page.goto(server.address)
        page.wait_for_selector("li.label")
        if who is not None:
            page.evaluate("document.getElementById('live').textContent = ''")
            page.fill("#who", who)
            page.press("#who", "Enter")
            playwright.expect(page.locator("#live")).to_have_text(re.compile("^Row"))
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []
    assert elsewhere == []


def answers_in(path):
    return AnswerStore(path).events()


def press(page, key):
    """A key, and wait until the page has said what came of it."""
    page.evaluate("document.getElementById('live').textContent = ''")
    page.keyboard.press(key)
    playwright.expect(page.locator("#live")).not_to_have_text("")
    return page.text_content("#live")


def test_a_whole_review_by_keyboard_alone(serve, visit, tmp_path):
    page = visit(serve())
    rng = np.random.default_rng(0)
    for _ in range(400):
        said = page.text_content("#said")
        if said.startswith("All rows"):
            break
        press(page, "Enter" if said.startswith("Nothing") else "yn"[rng.integers(2)])
    assert page.text_content("#row-title") == "Nothing is left to answer."
    assert re.search(r"rows left\s*0 of 60", page.inner_text("#numbers"))
    stored = answers_in(tmp_path / "answers.sqlite")
    assert {event.kind for event in stored} == {"answer"}
    assert len({(event.row, event.label) for event in stored}) == len(stored)


def test_undo_skip_why_and_moving(serve, visit, tmp_path):
    page = visit(serve())
    first = page.inner_text("li.current .name")
    row = page.text_content("#row-title")
    page.keyboard.press("w")
    page.wait_for_selector("#why")
    assert "adds to the log-odds" in page.inner_text("#why")
    assert "yes" in press(page, "y")
    assert "Undone in row" in press(page, "u")
    assert page.text_content("#row-title") == row
    assert page.inner_text("li.current .name") == first
    assert "skipped" in press(page, "s")
    assert "Undone in row" in press(page, "u")
    press(page, "ArrowDown")
    second = page.inner_text("li.current .name")
    assert second != first
    press(page, "1")
    assert page.inner_text("li.current .name") == first
    kinds = [event.kind for event in answers_in(tmp_path / "answers.sqlite")]
    assert kinds == ["answer", "undo", "skip", "undo"]


def test_reconditioning_is_seen(serve, visit):
    page = visit(serve())
    for _ in range(40):
        left = not page.text_content("#said").startswith("Nothing")
        said = press(page, "y" if left else "Enter")
        if "Changed:" in said:
            break
    assert page.locator("li.label.changed").count() > 0
    assert "just changed" in page.inner_text("li.label.changed")


def names_and_keys(page):
    """The labels of the row in the order of the page, with their digits."""
    return page.locator("#labels .name").all_inner_texts()


def test_labels_keep_their_places_and_digits_while_a_row_is_open(serve, visit):
    page = visit(serve())
    for number in range(60):
        before = names_and_keys(page)
        current = page.inner_text("li.current .name")
        press(page, "yn"[number % 2])
        after = names_and_keys(page)
        assert after[: len(before)] == before
        words = page.locator("#labels .word").all_inner_texts()
        assert words[before.index(current)] == ("yes", "no")[number % 2]
        start = after.index(current)
        later = [*after[start + 1 :], *after[:start]]
        still_open = [name for name in later if words[after.index(name)] == "open"]
        focus = "document.activeElement.innerText"
        if still_open:
            assert page.evaluate(focus) == page.inner_text("li.current .name") == still_open[0]
        else:
            assert page.evaluate(focus).startswith("Next row")
            press(page, "Enter")
    assert "0 of" not in page.inner_text("#numbers")


def test_an_answer_is_marked_on_its_scale(serve, visit):
    page = visit(serve())

    def make_certain(route):  # as joint models are of labels that are known
        view = route.fetch().json()
        for label in view["labels"]:
            label["lower"] = label["upper"] = label["answer"] if label["answer"] is not None else 1
        route.fulfill(json=view)

    page.route("**/answers", make_certain)
    for key, end in (("y", 1), ("n", 0)):
        name = page.inner_text("li.current .name").partition(" ")[2]
        press(page, key)
        item = page.locator("#labels li", has=page.get_by_role("button", name=f"Yes: {name}"))
        scale = item.locator("svg").bounding_box()
        assert item.locator(".bar").count() == 2  # the model's bounds, and the answer
        for bar in (one.bounding_box() for one in item.locator(".bar").all()):
            assert bar["width"] > 1
            assert scale["x"] - 0.5 <= bar["x"]
            assert bar["x"] + bar["width"] <= scale["x"] + scale["width"] + 0.5
            middle = (bar["x"] + bar["width"] / 2 - scale["x"]) / scale["width"]
            assert middle == pytest.approx(end, abs=0.05)
        press(page, "u")


@pytest.mark.parametrize("size", [(1440, 500), (390, 844)])
def test_why_opens_under_its_label_and_leaves_the_row_in_sight(serve, visit, size):
    page = visit(serve(), width=size[0], height=size[1])
    if page.locator("#labels li").count() > 1:
        press(page, "ArrowDown")
    name = page.inner_text("li.current .name")
    assert name.partition(" ")[2] in press(page, "w")
    (label, box) = (page.locator(one).bounding_box() for one in ("li.current", "#why"))
    assert page.locator("li.current #why").count() == 1
    assert box["y"] < label["y"] + label["height"]
    assert label["y"] >= 0
    if size[0] > 800:
        title = page.locator("#row-title").bounding_box()
        assert 0 <= title["y"] < size[1] - title["height"]
    assert page.locator("li.current [aria-expanded=true]").count() == 1
    page.keyboard.press("w")
    playwright.expect(page.locator("#why")).to_have_count(0)


def test_on_a_phone_the_page_starts_at_its_top_without_keys(serve, visit):
    page = visit(serve(), width=390, height=600, is_mobile=True, has_touch=True)
    assert page.evaluate("scrollY") == 0
    assert page.locator("kbd:visible, footer:visible, #letters:visible").count() == 0
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    assert page.evaluate("scrollY") > 0
    row = page.text_content("#row-title")
    page.evaluate("document.getElementById('next').click()")  # without scrolling to it
    playwright.expect(page.locator("#row-title")).not_to_have_text(row)
    playwright.expect(page.locator("#row-title")).to_be_in_viewport()


def test_an_answer_waits_for_a_locked_file(serve, visit, tmp_path):
    page = visit(serve())
    other = sqlite3.connect(tmp_path / "answers.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    page.keyboard.press("y")
    page.wait_for_selector("#trouble:not([hidden])", timeout=20_000)
    assert "cannot be used now: database is locked" in page.inner_text("#trouble")
    assert "tries again" in page.inner_text("#trouble")
    other.execute("ROLLBACK")
    playwright.expect(page.locator("#trouble")).to_be_hidden(timeout=20_000)
    assert [event.value for event in answers_in(tmp_path / "answers.sqlite")] == [1]


def test_two_people(serve, visit, tmp_path):
    server = serve()
    ann, bob = visit(server, who="ann"), visit(server, who="bob")
    assert ann.text_content("#row-title") != bob.text_content("#row-title")
    press(ann, "y")
    press(bob, "n")
    assert sorted(event.who for event in answers_in(tmp_path / "answers.sqlite")) == ["ann", "bob"]


def test_a_hostile_name_is_text(serve, visit):
    page = visit(serve())
    names = page.locator("li.label .name").all_inner_texts()
    assert any("<script>" in name for name in names) or page.locator("#settled").count()
    assert "owned" not in page.title()
    assert page.locator("main script, main b").count() == 0
    assert "<b>bold</b>" in page.inner_text("#content")


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (1600, "light")])
def test_narrow_and_wide_without_scrolling_sideways(serve, visit, width, scheme, tmp_path):
    page = visit(serve(), width=width, scheme=scheme)
    press(page, "y")
    page.click("#queue-box summary")
    page.click("#disagreements-box summary")
    page.wait_for_selector("#queue li")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.screenshot(path=tmp_path / "page.png", full_page=True)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessibility(serve, visit, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = visit(serve("--blind", "0.3"), scheme=scheme)
    page.keyboard.press("w")
    page.click("#queue-box summary")
    page.click("#disagreements-box summary")
    page.wait_for_selector("#queue li")
    for details in page.locator("details:not([open]) > summary:visible").all():
        details.click()
    found = axe.run(page)
    assert found.violations_count == 0, found.generate_report()


def test_a_server_that_is_gone_is_told_and_taken_up_again(serve, visit):
    server = serve()
    page = visit(server)
    server.kill()
    page.keyboard.press("y")
    page.wait_for_selector("#trouble:not([hidden])", timeout=20_000)
    assert "cannot be reached" in page.inner_text("#trouble")


def test_a_page_left_open_does_not_answer_another_row(serve, visit, folder, tmp_path):
    place = tmp_path / "data"
    shutil.copytree(folder, place)
    server = serve(place=place)
    page = visit(server)
    server.stop()
    pd.read_csv(place / "new.csv")[::-1].to_csv(place / "new.csv", index=False)
    serve("--port", server.url.rpartition(":")[2], place=place)
    with page.expect_navigation():
        page.keyboard.press("y")
    trouble = page.locator("#trouble")
    playwright.expect(trouble).to_contain_text("The answer was not taken")
    assert answers_in(tmp_path / "answers.sqlite") == []
    press(page, "y")
    playwright.expect(trouble).to_be_hidden()
    (event,) = answers_in(tmp_path / "answers.sqlite")
    row = int(page.text_content("#row-title").removeprefix("Row "))
    assert event.row_number == row


def test_many_labels_are_found_by_typing(serve, visit, tmp_path):
    rng = np.random.default_rng(0)
    names = [f"tag {j:02} {'abc'[j % 3]}" for j in range(30)]
    X = pd.DataFrame(rng.normal(size=(80, 2)), columns=["tempo", "year"])
    Y = pd.DataFrame((rng.random((80, 30)) < 0.3).astype(int), columns=names)
    place = tmp_path / "many"
    place.mkdir()
    save_model(CredalChainClassifier(s=1.0, random_state=0).fit(X, Y), place / "songs.model")
    X[:10].assign(title="a", cover="b").to_csv(place / "new.csv", index=False)
    page = visit(serve(place=place))
    page.keyboard.press("/")
    page.keyboard.type("tag 17")
    page.keyboard.press("Enter")
    assert "tag 17" in page.inner_text("li.current .name")
    assert "tag 17" in press(page, "y")
    (event,) = answers_in(tmp_path / "answers.sqlite")
    assert event.label.startswith("tag 17")


def test_a_key_after_the_last_answer_of_a_row_changes_nothing(serve, visit, tmp_path):
    page = visit(serve())
    for _ in range(len(LABELS)):
        if page.text_content("#said").startswith("Nothing"):
            break
        press(page, "y")
    n_answers = len(answers_in(tmp_path / "answers.sqlite"))
    assert "Nothing is left" in press(page, "n")
    assert len(answers_in(tmp_path / "answers.sqlite")) == n_answers


def test_keys_that_are_held_or_too_early_are_not_taken(serve, visit, tmp_path):
    page = visit(serve())
    page.evaluate(
        """() => {
          const fetched = window.fetch;
          window.fetch = async (...given) => {
            await new Promise((done) => setTimeout(done, 1500));
            return fetched(...given);
          };
        }"""
    )
    page.keyboard.press("y")
    page.wait_for_timeout(100)
    page.keyboard.press("n")
    playwright.expect(page.locator("#said")).to_have_text(re.compile("too early"))
    page.wait_for_timeout(3000)
    assert [event.value for event in answers_in(tmp_path / "answers.sqlite")] == [1]
    page.keyboard.down("y")
    for _ in range(5):
        page.keyboard.down("y")  # repeats
    page.keyboard.up("y")
    page.wait_for_timeout(3000)
    assert len(answers_in(tmp_path / "answers.sqlite")) <= 2


def test_people_without_a_name_are_different_people(serve, visit):
    server = serve()
    pages = visit(server), visit(server)
    assert pages[0].input_value("#who") != pages[1].input_value("#who")
    assert pages[0].text_content("#row-title") != pages[1].text_content("#row-title")


def test_undo_by_mouse_and_letters_switched_off(serve, visit, tmp_path):
    page = visit(serve())
    press(page, "y")
    page.click("#undo")
    playwright.expect(page.locator("#live")).to_have_text(re.compile("Undone in row"))
    page.uncheck("#letters")
    page.locator("li.current .name").focus()
    page.keyboard.press("y")
    page.wait_for_timeout(400)
    kinds = [event.kind for event in answers_in(tmp_path / "answers.sqlite")]
    assert kinds == ["answer", "undo"]
    assert page.locator("#search-box").is_hidden()
