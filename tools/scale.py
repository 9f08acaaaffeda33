"""Print what the study would take on COCO at the papers' sizes: python -m tools.scale.

A run takes epochs x ceil(pairs / batch) steps of its preset. Seconds of a step were measured on one
core (evidence/common/presets.csv, by benchmarks/presets.py), and on a card where somebody ran
benchmarks/gpu.py --save (figures/common/gpu.csv). Evaluation and reading are left out. The study:
each run published on Flickr8k, once more with the preset of its model.
"""

from math import ceil

import pandas as pd

from itr_study.files.paths import evidence_folder, project_root
from itr_study.lab.runs.published import rows
from itr_study.lab.studies.presets import preset_tables

PAIRS = 566_435  # captions of COCO's train split (113,287 images), as the papers use it
WORKERS = (1, 16, 256)


def table() -> pd.DataFrame:
    """Frame of model, preset, runs, steps (of a run), hours (a run on a core)."""
    measured = pd.read_csv(evidence_folder() / "common" / "presets.csv").set_index("preset")
    count, records = rows("flickr8k")["model"].value_counts(), []
    for name, preset in preset_tables().items():
        if preset["model"] in [model for model, *_ in records]:
            continue  # the first of a model
        given = preset["settings"]
        steps = given["epochs"] * ceil(PAIRS / given["batch_size"])
        hours = steps * measured["step_seconds"][name] / 3600
        records.append((preset["model"], name, count.get(preset["model"], 0), steps, hours))
    return pd.DataFrame(records, columns=["model", "preset", "runs", "steps", "hours"])


def main() -> None:
    """Print the table, and the days of the whole."""
    found = table()
    path = project_root() / "figures" / "common" / "gpu.csv"
    found["card"] = float("nan")
    if path.exists():
        fastest = pd.read_csv(path).groupby("preset")["step_milliseconds"].min()
        found["card"] = found["steps"] * found["preset"].map(fastest) / 3.6e6
    print("| model | preset | runs | steps a run | hours a run, one core | hours a run, one card |")
    print("|---|---|---|---|---|---|")
    for row in found.itertuples():
        card = "not measured" if pd.isna(row.card) else f"{row.card:.1f}"
        print(f"| {row.model} | {row.preset} | {row.runs:,} | {row.steps:,} | {row.hours:,.1f} | "
              f"{card} |")
    print()
    total = (found["runs"] * found["hours"]).sum()
    for workers in WORKERS:
        least = max(total / workers, found.loc[found["runs"] > 0, "hours"].max())
        print(f"- {workers} core{'s' * (workers > 1)}: {least / 24:,.0f} days")


if __name__ == "__main__":
    main()
