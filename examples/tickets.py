"""The tickets of the tutorial, made up, and somebody who answers questions about them.

python examples/tickets.py write           tickets.csv, new.csv, audit.csv and relaunch.csv
python examples/tickets.py answer MODEL    play the reviewer of new.csv: answers.sqlite
"""

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

PHRASES = {
    "billing": ["I was charged twice", "the invoice is wrong", "you debited my card again"],
    "refund": ["I want my money back", "please refund the order", "I sent it back weeks ago"],
    "app": ["the app crashes on start", "since the update the screen is white", "the app is slow"],
    "login": ["my password is rejected", "my account is locked", "I cannot sign in"],
    "delivery": ["the parcel is late", "the courier never came", "it went to the wrong address"],
    "damaged": ["the box was crushed", "a part is broken", "it arrived with a crack"],
}
TAGS = list(PHRASES)
VAGUE = ["it is not working", "something is wrong with my order", "nobody answers", "please help"]
RELAUNCHED = ["the checkout is slow", "my card is rejected", "tracking crashes since the update"]
GREETINGS = ["Hello,", "Hi,", "Good morning,", "To whom it may concern,", "Once more:"]


def draw_tags(rng: np.random.Generator) -> dict[str, bool]:
    """Draw the tags of a ticket. Some go together: a damaged parcel often means a refund."""
    has = dict(zip(TAGS, rng.random(len(TAGS)) < [0.2, 0.1, 0.25, 0.1, 0.25, 0.15], strict=True))
    has["refund"] |= has["damaged"] and rng.random() < 0.8
    has["billing"] |= has["refund"] and rng.random() < 0.7
    has["app"] |= has["login"] and rng.random() < 0.7
    return has


def draw_ticket(rng: np.random.Generator, number: int, *, relaunched: bool) -> dict[str, str]:
    """Draw a ticket as people export it: words, units, holes. The last column has the tags."""
    has = draw_tags(rng)
    said = []
    for tag in filter(has.get, TAGS):
        if relaunched and rng.random() < 0.7:
            said.append(RELAUNCHED[TAGS.index(tag) // 2])
        elif rng.random() < 0.85:  # else the text does not say it
            said.append(rng.choice(PHRASES[tag]))
    if len(said) < 2:
        said.append(rng.choice(VAGUE))
    is_mobile = rng.random() < (0.7 if has["app"] else 0.3)
    has_amount = has["billing"] or has["refund"] or rng.random() < 0.3
    amount, spent = (
        f"{euros:,.2f} €".translate(str.maketrans(".,", ",.")) for euros in rng.gamma(2, [30, 900])
    )
    day = pd.Timestamp("2026-03-02") + pd.Timedelta(hours=0.4 * number)
    return {
        "ticket": f"T-{10000 + number}",
        "received": day.strftime("%d.%m.%Y %H:%M"),
        "channel": "mobile" if is_mobile else str(rng.choice(["web", "mail", "phone"])),
        "spent": spent,
        "amount": amount if has_amount else "n/a",
        "message": f"{rng.choice(GREETINGS)} {', and '.join(rng.permutation(said))}.",
        "tags": ", ".join(filter(has.get, TAGS)),
    }


def draw_tickets() -> dict[str, pd.DataFrame]:
    """Draw all files of the tutorial."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame([draw_ticket(rng, i, relaunched=i >= 2600) for i in range(2900)])
    parts = {"tickets": table[:2000], "new": table[2000:2300], "audit": table[2300:2600]}
    parts["relaunch"] = pd.concat([parts["audit"], table[2600:]])
    parts["tickets"] = parts["tickets"].copy()
    parts["tickets"].loc[rng.random(2000) < 0.03, "tags"] = "?"  # nobody has looked
    return parts


def write(folder: Path) -> None:
    """Write the files: semicolons between cells, commas in numbers and between tags."""
    for name, table in draw_tickets().items():
        known = table.drop(columns="tags") if name == "new" else table
        known.to_csv(folder / f"{name}.csv", sep=";", index=False)


def answer(model: str, folder: Path) -> None:
    """Answer every question about ``new.csv`` as the review page would ask it."""
    from credalchain.cli.review import read_session

    warnings.simplefilter("ignore", UserWarning)  # the commands have shown them

    truth = draw_tickets()["new"]["tags"].str.split(", ")
    files = (str(folder / name) for name in (model, "new.csv", "answers.sqlite"))
    session = read_session(*files, blind=0.2)
    names: list[str] = session.rows.label_names
    view: dict[str, Any] = session.next_row("Kim", "least sure")
    while view["row"] is not None:
        while view["asked"]:
            row, label = view["row"], view["asked"][0]
            value = int(names[label] in truth.iloc[row])
            view = session.answer(row, label, value, "Kim", f"{row}-{label}")
        view = session.next_row("Kim", "least sure", after=view["row"])
    done, blind = session.progress(), session.blind_result()
    print(f"{done['answers']} answers, {done['labels_left']} labels left")
    print(f"asked without a suggestion: {blind['asked']}, disagreed: {blind['disagree']}")
    print(blind["check"])
    session.rows.store.close()


if __name__ == "__main__":
    if sys.argv[1:] == ["write"]:
        write(Path())
    elif sys.argv[1:2] == ["answer"] and len(sys.argv) == 3:
        answer(sys.argv[2], Path())
    else:
        sys.exit(__doc__)
