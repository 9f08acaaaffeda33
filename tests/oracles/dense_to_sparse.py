"""The triplets of joined texts and the cosines of single ones, each by itself."""

from tests.oracles.heads import cosine
from tests.oracles.triplet_hardest import oracle as hardest

# two images; the first has two texts, (3, 4) and (0, 2); the joined ones are (1, 0) and (0, -3)
GIVEN = dict(joined_scores=[[0.5, 0.5, 0.4], [0.6, 0.6, 0.9]],
             text_vectors=[[3.0, 4.0], [0.0, 2.0], [0.0, 1.0]],
             joined_vectors=[[1.0, 0.0], [1.0, 0.0], [0.0, -3.0]])
MATCH = [[1, 1, 0], [0, 0, 1]]
APART = (0.4 + 1.0 + 2.0) / 3  # 1 - 0.6, 1 - 0 and 1 + 1
HINGES = ((0.1 + 0.3) + (0.1 + 0.3) + (0.0 + 0.0)) / 3  # [0.2 + 0.4 - 0.5]+, [0.2 + 0.6 - 0.5]+
HAND = [
    (dict(), GIVEN, MATCH, HINGES + APART),
    (dict(align=0.5), GIVEN, MATCH, 0.5 * HINGES + APART),
    (dict(align=0.0), GIVEN, MATCH, APART),
    (dict(margin=0.0), GIVEN, MATCH, (0.1 + 0.1) / 3 + APART),
    (dict(), GIVEN | {"joined_vectors": GIVEN["text_vectors"]}, MATCH, HINGES),
    (dict(), GIVEN, [[1, 1, 1], [1, 1, 1]], APART),  # matches alone
]


def from_output(output, relevance, margin=0.2, align=1.0):
    pairs = [*zip(output.text_vectors.tolist(), output.joined_vectors.tolist(), strict=True)]
    return align * hardest(output.joined_scores.tolist(), relevance.tolist(), margin) + sum(
        1 - cosine(text, joined) for text, joined in pairs) / len(pairs)
