"""Trees of chains: what is drawn, for every method."""

import itertools

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

from credalchain import CredalChainClassifier, JointDecision, search_chain
from credalchain.chains.search import CERTIFICATES
from credalchain.plotting import plot_chain_tree
from credalchain.plotting.predictions import NO_COLOUR, OPEN_COLOUR, YES_COLOUR

LOOKS = {1: YES_COLOUR, 0: NO_COLOUR, -1: OPEN_COLOUR}
WORDS = {"yes": 1, "no": 0, "*": -1}


@pytest.fixture(scope="module")
def chain(yeast):
    X, Y = yeast[0][:300], yeast[1][:300, :6]
    return CredalChainClassifier(random_state=0, s=2.0).fit(X, Y), yeast[0][300:340]


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def drawn(ax):
    """Answers at the head, and the thick edges, each with its column and colour."""
    words = [WORDS[text.get_text()] for text in ax.texts if text.get_text() in WORDS]
    thick = [line for line in ax.lines if line.get_linewidth() > 2]
    edges = [
        (round(line.get_xdata()[0]), to_hex(line.get_color()).upper())
        for line in thick
        if len(line.get_xdata()) == 3
    ]
    return words, edges


def leaves(ax):
    """Label vectors that are written beside leaves."""
    texts = [text.get_text() for text in ax.texts if text.get_text().startswith("(")]
    return [tuple(map(int, text[1 : text.index(")")].split(", "))) for text in texts]


@pytest.mark.parametrize("strategy", ["branching", "marginalization"])
def test_a_strategy_follows_all_it_leaves_open(chain, strategy):
    model, X = chain
    labels = model.infer(X, strategy=strategy).labels
    row = int(np.argmax(((labels == -1).sum(axis=1) == 2) & (labels == 1).any(axis=1)))
    expected = labels[row, model.order_]
    words, edges = drawn(ax := plot_chain_tree(model, X[[row]], strategy))
    assert words == expected.tolist()
    values = [(0, 1) if y == -1 else (int(y),) for y in expected]
    assert set(leaves(ax)) == set(itertools.product(*values))
    for depth, y in enumerate(expected.tolist()):
        assert {colour for column, colour in edges if column == depth} == {LOOKS[y]}


@pytest.mark.parametrize(("method", "precise"), CERTIFICATES)
def test_a_search_shows_what_it_found(chain, method, precise):
    model, X = chain
    s = 0.0 if precise else 0.5
    found = search_chain(model, X[:1], method, s=s)
    words, _ = drawn(ax := plot_chain_tree(model, X[:1], method, s=s))
    assert words == found.labels[0, model.order_].tolist()
    assert set(leaves(ax)) == {tuple(v) for v in found.vectors[0][:, model.order_].tolist()}
    assert found.certificate in ax.get_title(loc="left")
    explored = set(found.trees[0].explored)
    kept = {leaf[:depth] for leaf in leaves(ax) for depth in range(7)}
    children = {(*node, y) for node in explored for y in (0, 1)}
    dotted = [line for line in ax.lines if line.get_linestyle() == ":"]
    assert len(dotted) == len(children - kept - explored)


def test_of_many_labels_the_likeliest_paths_are_drawn(yeast):
    X, Y = yeast[0][:300], yeast[1][:300]
    model = CredalChainClassifier(random_state=0, s=12.0).fit(X, Y)
    n_open = int((model.predict_partial(X[:1]) == -1).sum())
    assert n_open > 3
    ax = plot_chain_tree(model, X[:1])
    assert len(leaves(ax)) == 8
    assert ax.get_legend().get_title().get_text() == f"and {2**n_open - 8} more paths"
    assert len(leaves(plot_chain_tree(model, X[:1], max_paths=2))) == 2


def test_on_given_axes_and_with_names(chain):
    model, X = chain
    _, ax = plt.subplots()
    assert plot_chain_tree(model, X[:1], "greedy", ax=ax) is ax
    assert set(model.label_names_) <= {text.get_text() for text in ax.texts}


def test_a_vector_is_a_row(chain):
    model, X = chain
    texts = [
        [text.get_text() for text in plot_chain_tree(model, x, "greedy").texts]
        for x in (X[:1], X[0], X[0].tolist())
    ]
    assert texts[0] == texts[1] == texts[2]


@pytest.mark.parametrize("draw_or_search", [plot_chain_tree, search_chain])
def test_only_chains_have_a_tree(draw_or_search):
    with pytest.raises(TypeError, match=r"chain must be like .*got JointDecision\(\)"):
        draw_or_search(JointDecision(), [[0.0]])


@pytest.mark.parametrize(
    ("n_rows", "options", "message"),
    [
        (2, {}, "x must be one row, got 2"),
        (1, {"method": "wide"}, "method must be one of 'branching'.*got 'wide'"),
        (1, {"max_paths": 0}, "max_paths must be a whole number"),
    ],
)
def test_parameters_are_named(chain, n_rows, options, message):
    with pytest.raises(ValueError, match=message):
        plot_chain_tree(chain[0], chain[1][:n_rows], **options)
