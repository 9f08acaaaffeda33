"""What a search in words found, as pictures."""

from collections.abc import Sequence
from html import escape

from itr_study.digits import number
from itr_study.evaluation.search import Hit, Searcher
from itr_study.explorers.thumbnails import thumbnail_uri
from itr_study.plots.tables import Page

SIDE = 150  # pixels of a picture, at most


def picture_hits(searcher: Searcher, hits: Sequence[Hit]) -> Page:
    """Pictures found, side by side, each with its rank, its score and the text of its hit; a
    known match has a ✓.

    Args:    hits: what `searcher.search_text` gave, at least one.
    """
    if not hits:
        raise ValueError("picture_hits needs what search_text found, got no hits")
    cells = [f"<figure style='display:inline-block;vertical-align:top;width:{SIDE}px;"
             "margin:0 12px 12px 0'>"
             f"<img alt='{escape(hit.text, quote=True)}' title='{escape(hit.id, quote=True)}' "
             f"src='{thumbnail_uri(searcher.dataset.open_image(hit.id), SIDE)}'>"
             f"<figcaption style='font-size:12px'><b>{hit.rank}{' ✓' * (hit.match is True)}</b> "
             f"score {number(hit.score, 2)}<br>{escape(hit.text)}</figcaption></figure>"
             for hit in hits]
    return Page("".join(cells))
