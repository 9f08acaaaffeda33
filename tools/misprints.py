"""Print docs/misprints.md: python -m tools.misprints > docs/misprints.md."""

from itr_study.lab.ledger.report import markdown_lines
from itr_study.lab.ledger.reported import load_claims

HEAD = """# Misprints

The four papers print some things that are not so: a sign, an index, a sum, a number in the text
that its table does not have. This page lists what we found. Such slips are common and do not change
what the papers propose. You need to know them if you write code from the equations. A test checks
each line. If we misread something, please tell us.

The command `python -m tools.misprints` prints this page from `claims.csv`. Do not edit it by hand.
"""
OURS = "Questions of ours"


def page() -> str:
    """Return the page: a table for each paper, then our own questions."""
    wrong = load_claims().query("kind == 'misprint'")
    wrong["test"] = wrong["test"].str.replace(";", "; ").map("`{}`".format)
    ours = wrong["statement"].str.startswith("Counter-check: ")
    parts = [HEAD]
    for heading, rows in [*wrong[~ours].groupby("paper", sort=False),
                          (OURS, wrong[ours])]:
        shown = rows[["place", "statement", "note", "test"]].assign(
            statement=rows["statement"].str.removeprefix("Counter-check: "))
        names = ["what we asked", "what we found"] if heading == OURS else [
            "the paper's statement", "what is wrong with it"]
        shown.columns = ["place", *names, "test"]
        parts += [f"## {heading}", "", *markdown_lines(shown), ""]
    return "\n".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    print(page(), end="")
