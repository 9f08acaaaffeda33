"""R-Precision: hand-worked values and the loop."""

from tests.oracles.sets import both_directions, query_r_precision

HAND = [  # scores, image_of_text, arguments, value worked by hand
    # image 0 has one of two texts among its first two, image 1 its only one first
    ([[0.9, 0.1, 0.5], [0.4, 0.3, 0.6]], [0, 0, 1], {},
     {"i2t_r_precision": (1 / 2 + 1) / 2, "t2i_r_precision": 2 / 3}),
    ([[0.8, 0.7, 0.1, 0.9], [0.4, 0.3, 0.1, 0.2]], [0, 0, 0, 1], {},
     {"i2t_r_precision": (2 / 3 + 0) / 2, "t2i_r_precision": 2 / 4}),
    ([[0.5] * 3] * 2, [0, 0, 1], {}, {"i2t_r_precision": (1 / 2 + 0) / 2, "t2i_r_precision": 0.0}),
    ([[0.1, 0.1]], [0, 0], {}, {"i2t_r_precision": 1.0, "t2i_r_precision": 1.0}),
]
oracle = both_directions(query_r_precision, "r_precision")
