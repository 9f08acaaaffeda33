"""How long an explorer takes to answer, in a real browser: from the press of a key or a button
until Python's answer is drawn.

    python benchmarks/explorers.py [--pictures 1000 --times 20]      needs Chromium and Playwright

Two small models search a test split of scenes of that size, with five texts a picture. Prints for
each explorer and action the median and the slowest of some answers in ms, after a first one that is
not counted (it builds the index), and what that first one took.
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from playwright.sync_api import Locator, sync_playwright  # noqa: E402

from tests.small_runs import SMALL  # noqa: E402
from tests.test_browser import server  # noqa: E402

MODELS = """
from itr_study import explorers
from itr_study.evaluation.search import Searcher
from itr_study.lab.runs.config import RunConfig
from itr_study.lab.runs.data import dataset_of, encoded_data
from itr_study.lab.runs.run import weights
config = RunConfig.model_validate({config!r})
def searcher(seed):
    one = config.with_(seed=seed)
    return Searcher(weights(one), dataset_of(one), encoded_data(one))
one, two = searcher(0), searcher(1)
"""
CELLS = {"push and pull": "explorers.PushPull()",
         "search": "explorers.Search({'one': one, 'two': two})",
         "who moved?": "explorers.WhoMoved.of({'one': one, 'two': two})",
         "you are the judge": "explorers.YouJudge.of(one.dataset, {'one': one})",
         "map": "explorers.EmbeddingMap.of({'one': one, 'two': two})"}
# ms from an action until nothing is on its way; the action is done inside the page.
ANSWER = """async ([node, selector, kind]) => {
  const target = node.querySelector(selector), start = performance.now();
  if (kind === "click") target.click();
  else if (kind === "change") {
    target.selectedIndex = (target.selectedIndex + 1) % target.options.length;
    target.dispatchEvent(new Event("change", { bubbles: true }));
  } else target.dispatchEvent(new KeyboardEvent("keydown", { key: kind, bubbles: true }));
  while (node.dataset.busy === "1") await new Promise(requestAnimationFrame);
  return performance.now() - start;
}"""
ACTIONS = {"push and pull": [("a mark moved", "[data-key=item-2]", "ArrowLeft"),
                             ("a step", "[data-key=control-step]", "click")],
           "search": [("the next query", "[data-key=control-next]", "click"),
                      ("another list", "[data-key=control-switch]", "change")],
           "who moved?": [("the next query", "[data-key=control-next]", "click"),
                          ("another measure", "[data-key=control-measure]", "change")],
           "you are the judge": [("a rating", "[data-key=grade-2]", "click")],
           "map": [("another colour", "[data-key=control-colour]", "change")]}


def timed(root: Locator, selector: str, kind: str, times: int) -> list[float]:
    """Milliseconds of the first answer and of so many more."""
    node = root.element_handle()
    return [root.page.evaluate(ANSWER, [node, selector, kind]) for _ in range(times + 1)]


def opened(page, address: str) -> Callable[[int], Locator]:
    """Run the notebook; gives the explorer in a place."""
    page.goto(f"{address}/lab/tree/explorers.ipynb")
    page.get_by_text("Python 3 | Idle").wait_for()
    page.locator(".lm-MenuBar-itemLabel", has_text="Run").first.click()
    page.get_by_text("Run All Cells", exact=True).click()
    page.locator(".itr-explorer").nth(len(CELLS) - 1).wait_for()
    return page.locator(".itr-explorer").nth


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", type=int, default=1000)
    parser.add_argument("--times", type=int, default=20)
    asked = parser.parse_args()
    config = SMALL.model_dump(mode="json")
    config["data_options"]["test"] = asked.pictures
    cells = [MODELS.format(config=config), *CELLS.values()]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        os.environ["ITR_STUDY_HOME"] = str(Path(folder) / "home")
        notebook = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
            metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})
        nbformat.write(notebook, Path(folder) / "explorers.ipynb")
        program = os.environ.get("CHROMIUM") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(600_000)
        print(f"{asked.pictures:,} pictures; ms     median  slowest    first")
        with server(Path(folder)) as address:
            at = opened(page, address)
            for place, name in enumerate(CELLS):
                for what, selector, kind in ACTIONS[name]:
                    first, *more = timed(at(place), selector, kind, asked.times)
                    print(f"{name + ': ' + what:<30}{statistics.median(more):8.0f} "
                          f"{max(more):8.0f} {first:8.0f}", flush=True)
            page.goto("about:blank")
        browser.close()


if __name__ == "__main__":
    main()
