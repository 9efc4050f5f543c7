"""``make bench``: what is as fast as it should be, in ratios of one run on one machine.

    python benchmarks/run.py [--quick] [--only PART ...]

Parts: sklearn (fit, infer and predict_path against scikit-learn), probe (the machine's own speed),
fresh (first calls, one row at a time), forest (chains of forests), joint (the recommended model
against scikit-learn's forest), large (the same on large tables), promise (thresholds against
MAPIE), scale (large data), dask (data beyond memory, on workers), review (how long reviewers wait),
study (the paper's study against NumPy). Results go to benchmarks/results: results.json, table.md,
ratios.png and scaling.png.
"""

import argparse
import json
import platform
from pathlib import Path
from typing import Any

import against_sklearn
import beyond_memory
import forests
import fresh
import joint_forests
import large_tables
import numpy as np
import probe
import report
import review_load
import scale
import sklearn
import thresholds
import whole_study
from splits import DENSE, TEXT, load_split
from timing import Comparison

import credalchain

RESULTS = Path(__file__).parent / "results"
PARTS = (
    "sklearn",
    "probe",
    "fresh",
    "forest",
    "joint",
    "large",
    "promise",
    "scale",
    "dask",
    "review",
    "study",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller data, one repetition")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART")
    options = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    file = RESULTS / "results.json"
    results = json.loads(file.read_text()) if file.exists() else {}
    results["machine"] = describe_machine()
    for part in options.only:
        print(f"-- {part}", flush=True)
        results[part] = globals()[f"run_{part}"](options.quick)
        file.write_text(json.dumps(results, indent=2) + "\n")
    report.write(results, RESULTS)
    print((RESULTS / "table.md").read_text())


def describe_machine() -> dict[str, Any]:
    cpu = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    cache = Path("/sys/devices/system/cpu/cpu0/cache/index2/size")
    return {
        "cpu": cpu,
        "cores": len(__import__("os").sched_getaffinity(0)),
        "second_level_cache": cache.read_text().strip() if cache.exists() else "unknown",
        "system": platform.system(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
        "numba": __import__("numba").__version__,
        "credalchain": credalchain.__version__,
    }


def run_sklearn(quick: bool) -> list[dict[str, Any]]:
    records = []
    for name in ("emotions", "medical") if quick else (*DENSE, *TEXT):
        for line in against_sklearn.compare(load_split(name)):
            print(f"   {line.data:9} {line.work:45} {line.ratio:8.1f}x", flush=True)
            records.append(line.as_record())
    return records


def run_probe(quick: bool) -> dict[str, float]:
    names = ("yeast", "enron") if quick else (*DENSE, *TEXT)
    found = probe.machine()
    found.update({f"kernel on {name}": probe.feature_kernel(load_split(name)) for name in names})
    for what, speed in found.items():
        print(f"   {what:25} {speed:6.1f} additions per nanosecond", flush=True)
    return found


def run_fresh(quick: bool) -> dict[str, Any]:
    found: dict[str, Any] = fresh.first_calls()
    found["one row"] = {name: fresh.one_row(load_split(name)) for name in ("yeast", "medical")}
    print(f"   cold {found['cold']:.2f} s, with the cache {found['cached']:.2f} s", flush=True)
    for name, row in found["one row"].items():
        print(f"   one row of {name}: {1e3 * row['call']:.3f} ms", flush=True)
    return found


def run_forest(quick: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"traversal": forests.traversal()}
    names = ("yeast",) if quick else ("yeast", "medical", "enron")
    found["one fold"] = {name: forests.one_fold(name) for name in names}
    for name, fold in found["one fold"].items():
        print(f"   {name}: fit {fold['fit']:.1f} s, predict {fold['predict']:.1f} s", flush=True)
    return found


def run_joint(quick: bool) -> dict[str, Any]:
    names = ("emotions", "yeast") if quick else (*DENSE, *TEXT)
    found = {}
    for name in names:
        found[name] = joint_forests.compare(name)
        times = [
            f"{work} {found[name][work]['ours'] / found[name][work]['theirs']:.1f}"
            for work in joint_forests.MOST
        ]
        print(f"   {name:9} times as long as scikit-learn's: {', '.join(times)}", flush=True)
    return found


def run_large(quick: bool) -> dict[str, Any]:
    found = {}
    for name, both in large_tables.measure(quick):
        found[name] = both
        ours, theirs = both["ours"], both.get("theirs")
        ratios = (
            ""
            if theirs is None
            else ", times scikit-learn's: "
            + ", ".join(
                f"{work} {ours[work] / theirs[work]:.2f}" for work in ("fit", "predict", "one row")
            )
        )
        print(
            f"   {name}: fit {ours['fit']:.1f} s (forecast {ours['forecast']:.0f}), peak "
            f"{ours['peak'] / 2**30:.2f} GiB, file {ours['file'] / 1e6:.0f} MB{ratios}",
            flush=True,
        )
    return found


def run_promise(quick: bool) -> dict[str, Any]:
    sizes = ((1000, 6),) if quick else ((1000, 6), (10_000, 14))
    found = {}
    for n_rows, n_labels in sizes:
        name = f"{n_rows} rows x {n_labels} labels"
        found[name] = thresholds.compare(n_rows, n_labels)
        print(f"   {name}: {found[name]['ratio']:.0f}x MAPIE's speed", flush=True)
    return found


def run_scale(quick: bool) -> dict[str, Any]:
    rows = 100_000 if quick else 1_000_000
    dense = scale.measure("dense", rows, 100, 20)
    seconds = dense["fit"] + dense["predict"]
    line = Comparison(
        f"{rows:.0e} rows x 100 x 20, fit + predict", "made up", seconds, seconds,
        scale.theirs(rows), 60, 150,
    )  # fmt: skip
    print(f"   dense {seconds:.2f} s, {line.ratio:.0f}x", flush=True)
    sizes = scale.SPARSE_SIZES[:2] if quick else scale.SPARSE_SIZES
    found = []
    for size in sizes:
        found.append(scale.measure("sparse", *size))
        last = found[-1]
        print(
            f"   sparse {size}: fit {last['fit']:.2f} s, predict {last['predict']:.2f} s, "
            f"peak {last['peak'] / 2**30:.2f} GiB",
            flush=True,
        )
    return {"dense": {**dense, **line.as_record()}, "sparse": found}


def run_dask(quick: bool) -> dict[str, Any]:
    found = beyond_memory.measure(1_000_000 if quick else 10_000_000)
    for work, ratio in found["ratio"].items():
        print(f"   {work}: {ratio:.2f} of the speed in memory, on one core", flush=True)
    peak = max(found[f"{n} workers"]["peak"] for n in (1, 2))
    print(f"   largest memory of a worker {peak / 1e9:.2f} GB", flush=True)
    return found


def run_review(quick: bool) -> dict[str, Any]:
    found = review_load.measure(5.0 if quick else 60.0)
    for name, one in found.items():
        print(f"   {name}: next row {one['next']['50']} ms, lost {one['lost']}", flush=True)
    return found


def run_study(quick: bool) -> dict[str, Any]:
    repeats = 1 if quick else 10
    mine = whole_study.ours("published", repeats)
    print(f"   ours {mine['seconds']:.1f} s, {mine['cpu']:.1f} s of CPU", flush=True)
    again = whole_study.ours_again("published", repeats)
    print(f"   ours once more in the same session {again:.1f} s", flush=True)
    paper = whole_study.ours("paper", repeats)
    print(f"   ours, settings of the paper's text {paper['seconds']:.1f} s", flush=True)
    other = whole_study.yardstick(repeats)
    print(f"   NumPy {other['seconds']:.1f} s", flush=True)
    difference = whole_study.largest_difference(mine["results"], other["results"])
    line = Comparison(
        "the paper's study", f"{repeats} repetitions", mine["seconds"], mine["seconds"],
        other["seconds"], 6, other["seconds"] / 15,
    )  # fmt: skip
    return {
        **line.as_record(),
        "again": again,
        "cpu": mine["cpu"],
        "paper_settings": paper["seconds"],
        "failed": mine["failed"] + paper["failed"],
        "largest_difference": difference,
    }


if __name__ == "__main__":
    main()
