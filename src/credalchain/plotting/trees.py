"""The tree of a chain for one row: what was explored, answered, left open and pruned."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from credalchain._utils.text import for_figure
from credalchain._utils.validation import check_choice, check_int
from credalchain.chains.interface import CredalClassifier
from credalchain.chains.search import METHODS, ChainTree, Node, check_is_chain, search_chain
from credalchain.chains.strategies import STRATEGIES
from credalchain.explanation.explainer import as_single_row
from credalchain.labels import ABSTAIN, and_more
from credalchain.plotting.predictions import (
    LOOKS,
    MAX_INCHES,
    NO_COLOUR,
    OPEN_COLOUR,
    YES_COLOUR,
    new_axes,
)
from credalchain.typing import MatrixLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_NAME = 12  # characters of a label's name
_MAX_LEAVES = 64  # of a tree with what was explored in vain
_FAINT = "#B8B8B8"
_COLUMN = 1.5  # inches


@dataclass(frozen=True)
class _Found:
    """Result of a method: paths that are left, and the answer to each label."""

    tree: ChainTree
    paths: list[Node]  # the likeliest first, in the chain's order
    n_paths: int
    answers: Sequence[int]
    bounds: Sequence[Any]  # of each label, where the method has them
    title: str


def plot_chain_tree(
    chain: CredalClassifier,
    x: MatrixLike,
    method: str = "branching",
    *,
    s: float | None = None,
    epsilon: float = 0.25,
    width: int = 4,
    max_paths: int | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw the tree of a chain for one row, in the manner of the paper's figures.

    Each edge is a value of a label, with its probability given the labels before it, or the
    interval of it. Thick edges are answers, or open labels, whose values are both possible; thin
    ones were explored; dotted ones were pruned, so nothing below them was explored. The answers are
    shown at the top, with the bounds by which a strategy decides them.

    Parameters
    ----------
    chain : fitted chain or binary relevance classifier
        In a fixed order of the labels.
    x : one row: a vector, a table or data frame with a single row
        Features.
    method : str, default="branching"
        One of "branching", "marginalization", "tree-marginalization", or a method of
        :func:`credalchain.search_chain`.
    s : float, default=None
        Degree of caution. None means the chain's own for branching and marginalization, 0 for a
        search.
    epsilon : float, default=0.25
        As in :func:`credalchain.search_chain`.
    width : int, default=4
        As in :func:`credalchain.search_chain`.
    max_paths : int, default=None
        Maximum number of paths to draw, the likeliest first. None means all paths for up to six
        labels, and eight otherwise.
    ax : matplotlib axes, default=None
        Axes to draw on. None makes new ones.

    Returns
    -------
    matplotlib axes
        Axes with the tree.

    See Also
    --------
    credalchain.search_chain : Search the tree.

    Examples
    --------
    >>> from credalchain import CredalChainClassifier
    >>> from credalchain.plotting import plot_chain_tree
    >>> X, Y = [["sun"], ["rain"], ["fog"]] * 5, [[1, 0], [0, 1], [1, 1]] * 5
    >>> chain = CredalChainClassifier(order="given", s=4.0).fit(X, Y)
    >>> ax = plot_chain_tree(chain, [["sun"]])
    """
    check_choice("method", method, (*STRATEGIES, *METHODS))
    check_is_chain(chain)
    m = chain.n_labels_
    if max_paths is None:
        max_paths = _MAX_LEAVES if m <= 6 else 8
    check_int("max_paths", max_paths)
    x = as_single_row(x, chain)
    encoded = chain.encode(x)
    if method in STRATEGIES:
        found = _follow_strategy(chain, x, encoded, method, chain.s if s is None else s, max_paths)
    else:
        options = {"s": 0.0 if s is None else s, "epsilon": epsilon, "width": width}
        found = _search(chain, x, method, max_paths, options)
    drawn = _drawn_nodes(found)
    return _draw(found, drawn, [*map(str, chain.label_names_)], ax)


def _follow_strategy(
    chain: CredalClassifier, x: Any, encoded: Any, strategy: str, s: float, max_paths: int
) -> _Found:
    """Return all ways to fill in what the strategy leaves open, the likeliest of them."""
    prediction = chain.infer(x, s=s, strategy=strategy)
    tree = ChainTree(chain, encoded, s)
    answers = [int(prediction.labels[0, j]) for j in tree.order]
    paths: list[Node] = [()]
    for answer in answers:
        tree.explore(paths)
        values = (1, 0) if answer == ABSTAIN else (answer,)
        paths = _likeliest(tree, [(*node, y) for node in paths for y in values], max_paths)
    bounds = [prediction.interval[0, j] for j in tree.order]
    return _Found(
        tree, paths, 2 ** answers.count(ABSTAIN), answers, bounds, f"{strategy}, s = {s:g}"
    )


def _search(
    chain: CredalClassifier, x: Any, method: str, max_paths: int, options: dict[str, Any]
) -> _Found:
    result = search_chain(chain, x, method, **options)
    (tree,), (vectors,) = result.trees, result.vectors
    paths = [tuple(map(int, vector)) for vector in vectors[:, tree.order]]
    answers = [int(result.labels[0, j]) for j in tree.order]
    title = f"{method}, s = {options['s']:g}; certified: {result.certificate}"
    likeliest = _likeliest(tree, paths, max_paths)
    return _Found(tree, likeliest, len(paths), answers, [None] * len(answers), title)


def _likeliest(tree: ChainTree, nodes: list[Node], n: int) -> list[Node]:
    return sorted(nodes, key=lambda node: -tree.path(node)[1])[:n]


def _drawn_nodes(found: _Found) -> set[Node]:
    """Return the paths and, as far as there is room, what was explored, the likeliest first.

    With a node all its children are drawn.
    """
    explored = set(found.tree.explored)
    inner = {path[:depth] for path in found.paths for depth in range(len(path))}
    others = [node for node in explored - inner if node]
    room = _MAX_LEAVES - len(inner)  # a node more is a leaf more
    for node in _likeliest(found.tree, sorted(others, key=len), len(others)):
        if room > 0 and node[:-1] in inner:
            inner.add(node)
            room -= 1
    return {(*node, y) for node in inner for y in (0, 1)} | {()}


def _positions(drawn: Collection[Node]) -> dict[Node, float]:
    """Place leaves one below the other, 1 above 0; parents in the middle of their children."""
    y: dict[Node, float] = {}
    n_leaves = 0

    def place(node: Node) -> float:
        nonlocal n_leaves
        children = [(*node, value) for value in (1, 0) if (*node, value) in drawn]
        if children:
            y[node] = float(np.mean([place(child) for child in children]))
        else:
            y[node] = float(n_leaves)
            n_leaves += 1
        return y[node]

    place(())
    return y


def _draw(found: _Found, drawn: set[Node], names: list[str], ax: Any) -> "Axes":
    tree, y = found.tree, _positions(drawn)
    n_rows, m = max(y.values()) + 1, tree.n_labels
    beyond, scale = 0.75 + 0.12 * m, 1.0  # labels of leaves stand beyond the last column
    if ax is None:
        wide, high = max(7.0, _COLUMN * (m + 0.15 + beyond)), 0.30 * n_rows + 1.9
        scale = min(1.0, MAX_INCHES / wide, MAX_INCHES / high)
        ax = new_axes(wide * scale, high * scale)
    kept = {path[:depth] for path in found.paths for depth in range(m + 1)}
    for node in sorted(drawn - {()}, key=lambda node: (node in kept, len(node))):
        _draw_edge(ax, tree, node, y, kept, scale)
    for path in found.paths:
        text = f"{_vector(path)}   {_as_text(tree.path(path))}"
        ax.text(m + 0.12, y[path], text, va="center", fontsize=8.5 * scale)
    for depth, j in enumerate(tree.order):
        _draw_head(ax, depth, names[j], found.answers[depth], found.bounds[depth], scale)
    top = -3.2 if found.bounds[0] is not None else -2.7
    ax.set(xlim=(-0.15, m + beyond), ylim=(n_rows - 0.3, top))
    ax.axis("off")
    ax.set_title(for_figure(found.title, 110), loc="left", fontsize=10 * scale)
    _draw_legend(ax, and_more(len(found.paths), found.n_paths, "path"), scale)
    return ax  # type: ignore[no-any-return]


def _draw_edge(
    ax: Any, tree: ChainTree, node: Node, y: dict[Node, float], kept: set[Node], scale: float
) -> None:
    parent, value = node[:-1], node[-1]
    is_open = node in kept and (*parent, 1 - value) in kept
    if node in kept:
        look = {"color": OPEN_COLOUR if is_open else LOOKS[value][1], "lw": 2.6, "zorder": 3}
    elif node in tree.explored:
        look = {"color": "#8A8A8A", "lw": 0.9, "zorder": 2}
    else:
        look = {"color": _FAINT, "lw": 1.1, "linestyle": ":", "zorder": 1}
    depth = len(parent)
    bend = depth + 0.22
    ax.plot([depth, bend, depth + 1], [y[parent], y[node], y[node]], **look)
    ax.plot([depth + 1], [y[node]], "o", ms=4 * scale, color=look["color"], zorder=look["zorder"])
    ink = look["color"] if node in kept else "#7A7A7A"
    text = f"{value}:  {_as_text(tree.bounds(parent, value))}"
    font = {"fontsize": 7.5 * scale, "fontweight": "bold" if node in kept else "normal"}
    ax.text(bend + 0.04, y[node] - 0.08, text, va="bottom", color=ink, **font)


def _draw_head(ax: Any, depth: int, name: str, answer: int, bounds: Any, scale: float) -> None:
    word, colour = LOOKS[answer]
    middle, up = depth + 0.61, 0.0 if bounds is not None else 0.5
    centred = {"ha": "center", "va": "center"}
    ax.text(middle, up - 2.75, for_figure(name, _MAX_NAME), fontsize=9 * scale, **centred)
    face = "white" if answer == ABSTAIN else colour
    box = {"boxstyle": "round,pad=0.25", "facecolor": face, "edgecolor": colour, "linewidth": 1.4}
    ink = colour if answer == ABSTAIN else "white"
    look = {"color": ink, "fontsize": 8.5 * scale, "fontweight": "bold", **centred}
    ax.text(middle, up - 1.85, word, bbox=box, **look)
    if bounds is not None:
        ax.text(middle, -1.05, _as_text(bounds), fontsize=8 * scale, **centred)


def _draw_legend(ax: Any, note: str, scale: float) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=YES_COLOUR, lw=2.6, label="answered yes"),
        Line2D([], [], color=NO_COLOUR, lw=2.6, label="answered no"),
        Line2D([], [], color=OPEN_COLOUR, lw=2.6, label="left open"),
        Line2D([], [], color="#8A8A8A", lw=0.9, label="explored"),
        Line2D([], [], color=_FAINT, lw=1.1, linestyle=":", label="pruned"),
    ]
    ax.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0.0, 0.0),
        ncols=5,
        frameon=False,
        fontsize=8.5 * scale,
        title=note or None,
        columnspacing=1.2,
    )


def _vector(path: Node) -> str:
    return "(" + ", ".join(map(str, path)) + ")"


def _as_text(bounds: Any) -> str:
    """Return one number, or an interval if its ends differ as far as shown."""
    lower, upper = bounds
    ends = f"{lower:.2f}", f"{upper:.2f}"
    return ends[0] if ends[0] == ends[1] else f"[{ends[0]}, {ends[1]}]"
