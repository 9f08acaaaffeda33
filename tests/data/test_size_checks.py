from itr_study.data import load_dataset
from itr_study.data.folder import too_small


def test_a_split_that_measures_needs_a_hundred_images():
    dev, test = too_small(load_dataset("scenes", train=5, dev=1, test=40))
    assert dev.startswith("dev has 1 image: R@10 is 100 % by chance, and one image more or less "
                          "moves R@K by 100 points")
    assert test.startswith("test has 40 images: R@10 is 25 % by chance")
    assert too_small(load_dataset("scenes", train=5, dev=100, test=100)) == []
