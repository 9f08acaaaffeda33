"""R@1 and R-Precision by class: hand-worked values, and loops that sort lists in Python."""

from tests.oracles.sets import query_r_precision, query_recall_at

HAND = [  # scores, image_of_text, image_classes, value worked by hand
    # Image 0 finds a text of its class first, 2 of 3 among the first 3; image 1 one of another
    # class first, but 2 of 3; the one text of the class of image 2 ties with another: last.
    # Text 0 finds image 2 first, 1 of 2; text 1 image 0, 1 of 2; text 2 both; text 3 its own.
    ([[0.2, 0.9, 0.8, 0.5], [0.1, 0.3, 0.2, 0.4], [0.6, 0.5, 0.1, 0.6]], [0, 1, 1, 2], [7, 7, 3],
     {"i2t_class_r1": 1 / 3, "i2t_class_rp": (2 / 3 + 2 / 3 + 0) / 3,
      "t2i_class_r1": 3 / 4, "t2i_class_rp": (1 / 2 + 1 / 2 + 1 + 1) / 4}),
    # classes of one image each: matches are those of the image id
    ([[0.9, 0.1, 0.5], [0.4, 0.3, 0.6]], [0, 0, 1], [0, 1],
     {"i2t_class_r1": 1.0, "i2t_class_rp": (1 / 2 + 1) / 2,
      "t2i_class_r1": 2 / 3, "t2i_class_rp": 2 / 3}),
    # constant scores: what does not match comes first, and R of n results leave n - R of it
    ([[0.5] * 4] * 3, [0, 1, 2, 2], [1, 1, 0],
     {"i2t_class_r1": 0.0, "i2t_class_rp": 0.0, "t2i_class_r1": 0.0,
      "t2i_class_rp": (1 / 2 + 1 / 2 + 0 + 0) / 4}),
    ([[0.1, 0.2], [0.3, 0.1]], [0, 1], [5, 5],  # one class: nothing but matches
     {"i2t_class_r1": 1.0, "i2t_class_rp": 1.0, "t2i_class_r1": 1.0, "t2i_class_rp": 1.0}),
]


def oracle(scores, image_of_text, image_classes):
    text_classes = [image_classes[image] for image in image_of_text]
    ways = {"i2t": (scores, image_classes, text_classes),
            "t2i": (list(zip(*scores, strict=True)), text_classes, image_classes)}
    table = {}
    for direction, (rows, asking, found) in ways.items():
        lists = [(list(row), {j for j, other in enumerate(found) if other == own})
                 for row, own in zip(rows, asking, strict=True)]
        table[f"{direction}_class_r1"] = sum(
            query_recall_at(*one, 1) for one in lists) / len(lists)
        table[f"{direction}_class_rp"] = sum(query_r_precision(*one) for one in lists) / len(lists)
    return table
