"""What notebooks show: escaped, of many labels the telling ones, in the colours around it."""

from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from credalchain import CredalChainClassifier, explain
from credalchain._utils import notebook

HOSTILE = ["<script>alert(1)</script>", '" onmouseover="x', "a\nb \x1b[31m", "&amp; <b>", "x" * 300]


class Tags(HTMLParser):
    """All tags, texts and attributes of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.texts, self.titles, self.attributes = [], [], [], set()
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.titles += [value for name, value in attrs if name == "title"]

    def handle_data(self, data):
        self.texts.append(data)


def fitted(m, names=None):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    Y = (X @ rng.normal(size=(3, m)) + rng.normal(size=(60, m)) > 0.5).astype(int)
    columns = [f"label {j}" for j in range(m)] if names is None else names
    return CredalChainClassifier(s=1.0, random_state=0).fit(X, pd.DataFrame(Y, columns=columns)), X


@pytest.mark.parametrize("m", [2, 20, 1000])
def test_predictions_of_few_and_many_labels(m):
    chain, X = fitted(m)
    prediction = chain.infer(X)
    page = Tags(prediction._repr_html_())
    shown = min(m, 20)
    assert page.tags.count("th") == shown + 1
    assert page.tags.count("svg") == shown * 10
    head = next(text for text in page.texts if " rows, " in text)
    assert ("20 labels shown, and 980 more" in head) == (m == 1000)
    assert "10 rows shown, and 50 more" in head


@pytest.mark.parametrize("m", [2, pytest.param(1000, marks=pytest.mark.slow)])
def test_explanations_of_few_and_many_labels(m):
    chain, X = fitted(m)
    for limit in (20, None):
        page = Tags(explain(chain, X[0], max_labels=limit)._repr_html_())
        assert page.tags.count("svg") == min(m, 20)
        assert ("and 980 more labels" in page.texts) == (m == 1000)


def test_names_are_text_and_long_ones_are_cut():
    chain, X = fitted(len(HOSTILE), HOSTILE)
    rows = pd.DataFrame(X[:5], index=HOSTILE)
    for shown in (chain.infer(rows.to_numpy()), explain(chain, X[0])):
        page = Tags(shown._repr_html_())
        assert not {"script", "b", "img"} & set(page.tags)
        assert page.attributes <= {
            "class", "title", "viewbox", "preserveaspectratio", "role", "x", "y", "width", "height",
            "x1", "x2", "y1", "y2",
        }  # fmt: skip
        assert "x" * 300 in page.titles
        assert "x" * 23 + "…" in page.texts
        assert all("\x1b" not in text for text in page.texts)
    frame = CredalChainClassifier(random_state=0).fit(
        rows.reset_index(drop=True).rename(columns=str), [[0], [1], [0], [1], [1]]
    )
    page = Tags(frame.infer(rows.rename(columns=str))._repr_html_())
    assert "x" * 300 in page.titles


def test_colours_follow_the_text_around():
    """No question is asked about the page's theme: a light text makes light colours."""
    assert "currentColor" in notebook.page()
    assert "prefers-color-scheme" not in notebook.page()
