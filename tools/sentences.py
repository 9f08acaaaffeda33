"""Print the average words a sentence of README, docs and notebooks: python -m tools.sentences.

Needs `pip install textstat`. Tables, code and formulas are left out.
"""

import json
import re
from pathlib import Path

import textstat

from itr_study.files.paths import project_root

LEFT_OUT = re.compile(r"```.*?```|\$\$.*?\$\$|^\|.*?$|^#.*?$", re.S | re.M)
LINE = re.compile(r"^- (.*?)(?<![.?!:])$", re.M)  # an item of a list is a sentence


def prose(path: Path) -> str:
    """Read the sentences of a page or of the Markdown of a notebook."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        text = "\n\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"]
                           if cell["cell_type"] == "markdown")
    return LINE.sub(r"- \1.", LEFT_OUT.sub("", text))


def main() -> None:
    """Print a line per page, and what CONTRIBUTING.md allows."""
    root = project_root()
    for most, pages in ((20, [root / "README.md", *sorted((root / "docs").glob("*.md"))]),
                        (25, sorted((root / "notebooks").glob("*.ipynb")))):
        for page in pages:
            words = textstat.words_per_sentence(prose(page))
            print(f"{page.relative_to(root)}: {words:.1f}{f', above {most}' * (words > most)}")


if __name__ == "__main__":
    main()
