"""
From a messy table to answers
=============================

Tables that people keep have semicolons and decimal commas, "yes", "no" and "?" for labels, a
column of row names, and holes. All of it can be read as it is, from the shell or in Python.
"""

# %%
# Let us make up such a table: songs, of which people have said whether they are rock, pop or folk,
# or "?" where they were not sure.

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
n = 600
mood = rng.normal(size=n)
noise = rng.normal(size=(n, 3))
songs = pd.DataFrame(
    {
        "song": [f"S{number:04}" for number in range(n)],
        "tempo": (110 + 20 * mood + 8 * noise[:, 0]).round(1),
        "loudness": (-9 + 3 * mood + 2 * noise[:, 1]).round(2),
        "key": rng.choice(["major", "minor"], size=n),
    }
)
songs["instrument"] = np.where(
    mood + noise[:, 2] > 0.5, "guitar", np.where(noise[:, 0] > 0, "voice", "piano")
)
truth = pd.DataFrame(
    {
        "rock": mood + 0.4 * rng.normal(size=n) > 0.4,
        "pop": (songs["key"] == "major") & (mood + 0.5 * rng.normal(size=n) > -0.5),
        "folk": (songs["instrument"] != "guitar") & (mood + 0.5 * rng.normal(size=n) < 0.3),
    }
)
words = pd.DataFrame(np.where(truth, "yes", "no"), columns=truth.columns)
words = words.mask(rng.random(words.shape) < 0.1, "?")
songs.loc[rng.random(n) < 0.08, "tempo"] = np.nan
songs.loc[rng.random(n) < 0.05, "instrument"] = None

folder = Path(tempfile.mkdtemp())
pd.concat([songs, words], axis=1)[:500].to_csv(
    folder / "songs.csv", sep=";", decimal=",", index=False
)
songs[500:].to_csv(folder / "new.csv", sep=";", decimal=",", index=False)
print("".join((folder / "songs.csv").read_text().splitlines(keepends=True)[:6]))

# %%
# From the shell
# --------------
#
# ``credalchain describe`` shows what is understood of each column, before anything is learned.

import subprocess
import sys


def run(command: str) -> None:
    """Run a command as a shell would, and show what it says."""
    print("$", command)
    program, *arguments = command.split()
    done = subprocess.run(
        [sys.executable, "-m", program, *arguments],
        cwd=folder,
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    print(done.stdout)


run("credalchain describe songs.csv --labels rock,pop,folk")

# %%
# The separator, the decimal comma and the words of the labels were found. The column ``song`` has
# another value in each row, from which nothing can be learned, so it is dropped. The model is as
# cautious as it must be to answer four labels in five.

run("credalchain fit songs.csv --labels rock,pop,folk --drop song --answered 0.8 --out my.model")
run("credalchain predict my.model new.csv --keep song --out answers.csv")
print("".join((folder / "answers.csv").read_text().splitlines(keepends=True)[:6]))

# %%
# In Python
# ---------
#
# pandas reads the file; what is left to do is to say what the words mean, here for a chain.
# Missing features stay missing, text becomes categories, and a label that nobody knows is ``NaN``.

from credalchain import CredalChainClassifier, choose_caution

table = pd.read_csv(folder / "songs.csv", sep=";", decimal=",", na_values="?", index_col="song")
new = pd.read_csv(folder / "new.csv", sep=";", decimal=",", index_col="song")
labels = ["rock", "pop", "folk"]
X = table.drop(columns=labels)
Y = table[labels].apply(lambda column: column.map({"yes": 1.0, "no": 0.0}))

chain = CredalChainClassifier(random_state=0)
chosen = choose_caution(chain, X, Y, completeness=0.8, random_state=0)
print(chosen)
prediction = chain.set_params(s=chosen.value).fit(X, Y).infer(new)

# %%
# The rows have the names of the songs.

from credalchain.plotting import plot_predictions

ax = plot_predictions(prediction, Y_true=truth[500:].astype(int), max_rows=3)

# %%
# The same as a table, with the bounds of each label:

prediction.to_frame(intervals=True).head().round(2)
