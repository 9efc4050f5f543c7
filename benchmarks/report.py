"""Results as tables and two pictures."""

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from joint_forests import MOST

GOOD, SHORT, MARK = "#2a6f97", "#c1666b", "#444444"


def write(results: dict[str, Any], folder: Path) -> None:
    """table.md, ratios.png and scaling.png, from whatever parts there are."""
    lines = _comparisons(results)
    parts = [*_head(results), *_table(lines), *_joint_table(results), *_notes(results)]
    (folder / "table.md").write_text("\n".join(parts))
    if lines:
        _draw_ratios(lines, folder / "ratios.png")
    if "scale" in results:
        _draw_scaling(results["scale"]["sparse"], folder / "scaling.png")


def _comparisons(results: dict[str, Any]) -> list[dict[str, Any]]:
    lines = list(results.get("sklearn", []))
    if "scale" in results:
        lines.append(results["scale"]["dense"])
    if "study" in results:
        lines.append(results["study"])
    return lines


def _head(results: dict[str, Any]) -> list[str]:
    machine = results["machine"]
    return [
        f"{machine['cpu']}, {machine['cores']} cores, {machine['second_level_cache']} of "
        f"second-level cache each; {machine['system']}, Python {machine['python']}, "
        f"numpy {machine['numpy']}, scikit-learn {machine['scikit-learn']}, "
        f"numba {machine['numba']}, credalchain {machine['credalchain']}.",
        "",
    ]


def _table(lines: list[dict[str, Any]]) -> list[str]:
    rows = [
        "| work | data | ours | no checks | theirs | ratio | no checks | at least | aim |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for line in lines:
        asked = _is_asked(line)
        rows.append(
            f"| {line['work']} | {line['data']} | {_time(line['ours'])} | {_time(line['net'])} | "
            f"{_time(line['theirs'])} | **{line['ratio']:.1f}x** | {line['net_ratio']:.1f}x | "
            + (f"{line['at_least']:.0f}x | {line['aim']:.0f}x |" if asked else "| |")
        )
    return [*rows, ""]


def _joint_table(results: dict[str, Any]) -> list[str]:
    """How many times as long as scikit-learn's forest of the same size."""
    if "joint" not in results:
        return []
    rows = [
        "The recommended model, and how many times as long it takes as scikit-learn's multi-output "
        "forest of the same size (one core):",
        "",
        "| data | labels | fit | of theirs | at most | one reward | of theirs | at most | "
        "40 rewards | of theirs | at most |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, found in results["joint"].items():
        cells = [
            f"{_time(found[work]['ours'])} | "
            f"**{found[work]['ours'] / found[work]['theirs']:.1f}x** | {most:.0f}x"
            for work, most in MOST.items()
        ]
        rows.append(f"| {name} | {found['labels']} | {' | '.join(cells)} |")
    return [*rows, ""]


def _notes(results: dict[str, Any]) -> list[str]:
    notes = []
    if "probe" in results:
        found = results["probe"]
        speeds = ", ".join(f"{what} {speed:.1f}" for what, speed in found.items())
        notes.append(f"- 64-bit additions per nanosecond on one core: {speeds}.")
    for name, both in results.get("large", {}).items():
        ours, theirs = both["ours"], both.get("theirs", {})
        ratios = [
            f"{work} {ours[work] / theirs[work]:.2f}" for work in ("fit", "predict") if theirs
        ]
        notes.append(
            f"- The recommended model, {name}, two cores: fit {_time(ours['fit'])}, peak "
            f"{ours['peak'] / 2**30:.2f} GiB, file {ours['file'] / 1e6:.0f} MB"
            + (f"; times scikit-learn's: {', '.join(ratios)}." if ratios else ".")
        )
    for name, found in results.get("promise", {}).items():
        notes.append(
            f"- A threshold that keeps recall, {name}: {_time(found['ours'])}, MAPIE "
            f"{_time(found['theirs'])}: {found['ratio']:.0f}x."
        )
    if "fresh" in results:
        found = results["fresh"]
        notes.append(
            f"- A fresh process, beyond importing scikit-learn: import, fit and infer take "
            f"{found['cold']:.1f} s with nothing compiled and {found['cached']:.2f} s with the "
            "compilation cache."
        )
        for name, row in found["one row"].items():
            beyond = row["call"] - row["checks"]
            notes.append(
                f"- One row of {name} at a time: {1e3 * row['call']:.3f} ms a call, "
                f"{1e3 * beyond:.3f} ms beyond the checks of its input."
            )
    if "forest" in results:
        notes += _forest_notes(results["forest"])
    if "scale" in results:
        notes += _scale_notes(results["scale"])
    if "review" in results:
        notes += _review_notes(results["review"])
    if "dask" in results:
        notes += _dask_notes(results["dask"])
    if "study" in results:
        study = results["study"]
        notes.append(
            f"- The study: {study['ours']:.1f} s, {study['cpu']:.1f} s of CPU; once more in one "
            f"session, with workers that have read the data, {study['again']:.1f} s; with the "
            f"settings of the paper's text {study['paper_settings']:.1f} s. Largest difference of "
            f"any measure in any fold between our way and NumPy's: "
            f"{study['largest_difference']:g}."
        )
    return [*notes, ""]


def _forest_notes(found: dict[str, Any]) -> list[str]:
    ours, theirs = found["traversal"]["ours"], found["traversal"]["theirs"]
    folds = "; ".join(
        f"{name}, {fold['labels']} labels: fit {fold['fit']:.1f} s, predict {fold['predict']:.1f} s"
        for name, fold in found["one fold"].items()
    )
    return [
        f"- A forest of 100 trees, all rows of yeast, nothing open: bounds in {_time(ours)}, "
        f"scikit-learn's predict_proba {_time(theirs)} ({ours / theirs:.1f} times as long).",
        f"- A chain of forests of 100 trees, one of ten folds, ten values of s: {folds}.",
    ]


def _scale_notes(found: dict[str, Any]) -> list[str]:
    dense, largest = found["dense"], found["sparse"][-1]
    share = dense["peak_increase"] / dense["codes_and_outputs"]
    return [
        f"- {dense['rows']:,} rows x {dense['features']} x {dense['labels']}: fit "
        f"{dense['fit']:.2f} s, predict {dense['predict']:.2f} s, peak memory grew by "
        f"{share:.2f} times the codes and outputs.",
        f"- {largest['rows']:,} sparse rows x {largest['features']:,} x {largest['labels']}: fit "
        f"{largest['fit']:.1f} s, predict {largest['predict']:.1f} s, peak memory "
        f"{largest['peak'] / 2**30:.1f} GiB.",
    ]


def _dask_notes(found: dict[str, Any]) -> list[str]:
    one, two = found["1 workers"], found["2 workers"]
    return [
        f"- {found['rows']:,} rows x 50 x 20 in Parquet ({found['bytes'] / 1e9:.1f} GB) on Dask: "
        f"fit {one['fit']:.1f} s with 1 worker and {two['fit']:.1f} s with 2, predict to Parquet "
        f"{one['predict']:.1f} s and {two['predict']:.1f} s; largest memory of a worker "
        f"{max(one['peak'], two['peak']) / 1e9:.2f} GB (at most 1.5). Speed per core "
        f"against one memory, reading and writing included: fit "
        f"{found['ratio']['fit']:.2f}, predict {found['ratio']['predict']:.2f} (at least 0.7).",
    ]


def _review_notes(found: dict[str, Any]) -> list[str]:
    notes = []
    for name, one in found.items():
        times = "; ".join(
            f"{what} {one[kind]['50']:.0f} / {one[kind]['95']:.0f} / {one[kind]['99']:.0f} ms"
            for kind, what in (("next", "next row"), ("answer", "answer"))
        )
        notes.append(
            f"- Review of {one['rows']:,} rows x 20 labels, {name} (half / 95 % / 99 % are "
            f"faster): {times}; {one['answers']} answers, {one['lost']} lost, "
            f"{one['errors']} errors."
        )
    return notes


def _is_asked(line: dict[str, Any]) -> bool:
    """Whether there is a mark to reach; other lines tell more of the same."""
    return not any(more in line["work"] for more in ("plain test fold", "a new s"))


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{1e3 * seconds:.2f} ms"


def _draw_ratios(lines: list[dict[str, Any]], path: Path) -> None:
    lines = [line for line in lines if _is_asked(line)][::-1]
    figure, axes = plt.subplots(figsize=(9, 0.32 * len(lines) + 1.4), layout="constrained")
    colours = [GOOD if line["ratio"] >= line["at_least"] else SHORT for line in lines]
    axes.barh(range(len(lines)), [line["ratio"] for line in lines], color=colours)
    for at, line in enumerate(lines):
        axes.plot([line["at_least"]] * 2, [at - 0.4, at + 0.4], color=MARK, lw=2)
        axes.plot([line["aim"]] * 2, [at - 0.4, at + 0.4], color=MARK, lw=1, ls=":")
        axes.annotate(f"{line['ratio']:.0f}x", (line["ratio"], at), (4, 0), va="center",
                      textcoords="offset points", fontsize=8)  # fmt: skip
    axes.set_yticks(range(len(lines)), [f"{line['work']}, {line['data']}" for line in lines])
    axes.set_xscale("log")
    axes.set_xlabel("times as fast as the other way (bold mark: at least; dotted: aim)")
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _draw_scaling(found: list[dict[str, Any]], path: Path) -> None:
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    by_rows = [one for one in found if one["labels"] == 100]
    by_labels = [one for one in found if one["rows"] == by_rows[0]["rows"]]
    for axes, some, what in (
        (panels[0], by_rows, "rows"),
        (panels[1], sorted(by_labels, key=lambda one: one["labels"]), "labels"),
    ):
        sizes = [one[what] for one in some]
        for part, colour in (("fit", GOOD), ("predict", SHORT)):
            seconds = [one[part] for one in some]
            axes.plot(sizes, seconds, "o-", color=colour, label=part)
            axes.plot(sizes, [seconds[0] * size / sizes[0] for size in sizes], ":", color=colour)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(f"{what} (dotted: proportional)")
        axes.set_ylabel("seconds")
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_title("10,000 sparse features, 100 labels", fontsize=10)
    panels[1].set_title("10,000 sparse rows and features", fontsize=10)
    figure.savefig(path, dpi=130)
    plt.close(figure)
