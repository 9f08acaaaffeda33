"""For lessons: explorers to touch, controls over pictures, queries to show, the code of a part."""

from itr_study.explorers.embedding_map import EmbeddingMap
from itr_study.explorers.explorer import Explorer, explore, show_source
from itr_study.explorers.looking import Looking
from itr_study.explorers.pictures import picture_hits
from itr_study.explorers.push_pull import Item, PushPull
from itr_study.explorers.ranked import (
    easy_to_hard,
    image_queries,
    obvious_errors,
    result_table,
    side_by_side,
    text_queries,
)
from itr_study.explorers.rating_game import YouJudge
from itr_study.explorers.search import Search
from itr_study.explorers.training import Training
from itr_study.explorers.who_moved import WhoMoved

__all__ = ["EmbeddingMap", "Explorer", "Item", "Looking", "PushPull", "Search", "Training",
           "WhoMoved", "YouJudge", "easy_to_hard", "explore", "image_queries", "obvious_errors",
           "picture_hits", "result_table", "show_source", "side_by_side", "text_queries"]
