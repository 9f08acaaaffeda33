"""For lessons: explorers to touch, controls over pictures, queries to show, the code of a part."""

from itr_study.explorers.controls import explore
from itr_study.explorers.embedding_map import EmbeddingMap
from itr_study.explorers.examples import easy_to_hard, obvious_errors, result_table, side_by_side
from itr_study.explorers.explorer import Explorer
from itr_study.explorers.hits import picture_hits
from itr_study.explorers.judge import YouJudge
from itr_study.explorers.looking import Looking
from itr_study.explorers.models import of_models
from itr_study.explorers.pane import Pane
from itr_study.explorers.push_pull import PushPull
from itr_study.explorers.pushes import Item
from itr_study.explorers.queries import image_queries, text_queries
from itr_study.explorers.search import Search
from itr_study.explorers.source import show_source
from itr_study.explorers.training import Training
from itr_study.explorers.who_moved import WhoMoved

__all__ = ["EmbeddingMap", "Explorer", "Item", "Looking", "Pane", "PushPull", "Search", "Training",
           "WhoMoved", "YouJudge", "easy_to_hard", "explore", "image_queries", "obvious_errors",
           "of_models", "picture_hits", "result_table", "show_source", "side_by_side",
           "text_queries"]
