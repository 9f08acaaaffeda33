"""The gallery shows every figure with its summary, and is the same for the same figures."""

import pytest

from itr_study.plots.figures import save_figure
from itr_study.plots.gallery import NOT_MEASURED, build_gallery
from tests.plots.test_figures import TABLE, common, save


def test_gallery_shows_every_figure_in_order(tmp_path):
    save(tmp_path, dataset="scenes", summary="Peaks [at small k].")
    save(tmp_path, dataset="flickr8k", name="02_pairwise_losses__collapse", seeds=[])
    save(tmp_path, dataset="flickr8k", seeds=[0])
    text = build_gallery(tmp_path).read_text()
    order = ["## flickr8k", "### 02_pairwise_losses", "### 03_topk", "## scenes", "### 03_topk"]
    assert [line for line in text.splitlines() if line.startswith(("## ", "### "))] == order
    assert "![Peaks (at small k).](scenes/03_topk__k_sweep.png)" in text
    assert "Peaks [at small k]." in text
    assert "*03_topk, profile quick, 1 seed*" in text and "nothing random" in text
    for ending in ("csv", "json"):
        assert f"(flickr8k/02_pairwise_losses__collapse.{ending})" in text


def test_what_is_drawn_stands_beside_the_seeds_of_the_title(tmp_path):
    save(tmp_path, seeds=[0, 1, 2], drawn=1)
    assert "3 seeds; drawn: 1*" in build_gallery(tmp_path).read_text()


def test_gallery_is_deterministic_and_holds_for_no_figures(tmp_path):
    save(tmp_path)
    first = build_gallery(tmp_path).read_bytes()
    assert build_gallery(tmp_path).read_bytes() == first
    empty = tmp_path / "none"
    assert "No figures yet" in build_gallery(empty).read_text()


def test_a_figure_without_its_files_is_named(tmp_path):
    save(tmp_path).unlink()
    with pytest.raises(ValueError, match="scenes/03_topk__k_sweep.png"):
        build_gallery(tmp_path)


def test_what_is_common_stands_once_under_its_own_heading(tmp_path):
    common(tmp_path)
    text = build_gallery(tmp_path).read_text()
    assert "## common" in text and "*03_topk, nothing trained or measured*" in text
    common(tmp_path, made_from="three trainings on generated scenes")
    text = build_gallery(tmp_path).read_text()
    assert "*03_topk, three trainings on generated scenes*" in text and NOT_MEASURED not in text
    save(tmp_path, name="03_topk__drawn", dataset="flickr8k")
    with pytest.raises(ValueError, match="filed twice: flickr8k/03_topk__drawn"):
        build_gallery(tmp_path)


def test_a_table_alone_is_linked_and_not_shown(tmp_path):
    save_figure(None, TABLE, "03_topk__table_2", "scenes", "As printed.",
                {"profile": "quick", "seeds": []}, tmp_path)
    text = build_gallery(tmp_path).read_text()
    assert "As printed." in text and "(scenes/03_topk__table_2.csv)" in text and "![" not in text
