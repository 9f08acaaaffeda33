"""mAP@R: hand-worked values and the loop."""

from tests.oracles.sets import both_directions, query_map_at_r

HAND = [  # scores, image_of_text, arguments, value worked by hand
    # image 0: its texts on ranks 1 and 3, R = 2: (1/1 + 0)/2; image 1: first. Text 1 is second
    ([[0.9, 0.1, 0.5], [0.4, 0.3, 0.6]], [0, 0, 1], {},
     {"i2t_map_at_r": (1 / 2 + 1) / 2, "t2i_map_at_r": 2 / 3}),
    # image 0: ranks 2 and 3, R = 3: (0 + 1/2 + 2/3)/3, its third text last; image 1 third of four
    ([[0.8, 0.7, 0.1, 0.9], [0.4, 0.3, 0.1, 0.2]], [0, 0, 0, 1], {},
     {"i2t_map_at_r": (1 / 2 + 2 / 3) / 3 / 2, "t2i_map_at_r": 2 / 4}),
    # constant scores: what matches comes last
    ([[0.5] * 3] * 2, [0, 0, 1], {}, {"i2t_map_at_r": (1 / 2 / 2 + 0) / 2, "t2i_map_at_r": 0.0}),
    ([[0.1, 0.1]], [0, 0], {}, {"i2t_map_at_r": 1.0, "t2i_map_at_r": 1.0}),  # nothing but matches
]
oracle = both_directions(query_map_at_r, "map_at_r")
