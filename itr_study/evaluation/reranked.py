"""What re-ranking makes of a test split: recall and hubness after it, and what it costs.

`fast`, `reciprocal` and `multi` see all queries of the test split at once, which no query could be
given alone; `fast_bank` is FR with the queries of the dev split in their place.
"""

from time import process_time

from itr_study.evaluation.scored import Scored
from itr_study.evaluation.table import retrieval_table
from itr_study.metrics import Ranks, hubness, ranks
from itr_study.metrics.recall import KS
from itr_study.metrics.scores import AnyScores, Scores
from itr_study.metrics.truth import DIRECTIONS
from itr_study.rerank import RERANKERS

HUBNESS = tuple(f"{direction}_hubness" for direction in DIRECTIONS)
RECALLS = (*(f"{direction}_r{k}" for direction in DIRECTIONS for k in KS), "rsum")
SECONDS = tuple(f"seconds_{method}" for method in RERANKERS)


def reranked_columns(dataset: str, split: str) -> tuple[str, ...]:
    """Of the test split of every data set: i2t_hubness, t2i_hubness as the model scores, then
    <method>_i2t_r1 ... <method>_rsum, <method>_i2t_hubness, <method>_t2i_hubness."""
    if split != "test":
        return ()
    return HUBNESS + tuple(f"{method}_{name}" for method in (*RERANKERS, "fast_bank")
                           for name in RECALLS + HUBNESS)


def reranked(scored: Scored) -> dict[str, float]:
    """Hubness, and of each re-ranking method recall in percent, hubness and seconds.

    Hubness is a skewness, no share, and so not in percent. seconds_<method>: what it takes to
    re-rank and count the ranks in both directions, beyond counting the ranks of the scores as they
    are: seconds of a core, whatever else the machine does; 0 where they are less than the clock's
    noise. As it takes seconds, nothing is re-ranked unless a bank is given, as it is of every run.

    `multi` takes cosines: scores of another scale are divided by the largest for it.

    Raises:  as the re-rankers.
    """
    scores, owner, bank = scored.scores, scored.split.image_of_text, scored.bank
    table = hubness(scores)
    if bank is None:
        return table
    start = process_time()
    ranks(scores, owner)
    plain = process_time() - start
    taken = {"multi": as_cosines(scores)}
    for method, rerank in RERANKERS.items():
        start = process_time()
        after = rerank(taken.get(method, scores))
        best = ranks(after, owner)
        table[f"seconds_{method}"] = max(0.0, process_time() - start - plain)
        table |= _after(method, after, best)
    after = RERANKERS["fast"](scores, bank=bank)
    return table | _after("fast_bank", after, ranks(after, owner))


def as_cosines(scores: AnyScores) -> AnyScores:
    """The scores, where they lie beyond [-1, 1] divided by the largest: no list is ordered anew."""
    pair = Scores.of(scores)
    largest = max(max(float(matrix.max()), -float(matrix.min())) for matrix in pair)
    if largest <= 1:
        return scores
    i2t = pair.i2t / largest
    return Scores(i2t, i2t if pair.single else pair.t2i / largest)


def _after(method: str, scores: AnyScores, best: Ranks) -> dict[str, float]:
    """The columns of one method from its scores and the ranks that they give."""
    recalls = retrieval_table(best)
    values = {name: recalls[name] for name in RECALLS} | hubness(scores)
    return {f"{method}_{name}": value for name, value in values.items()}
