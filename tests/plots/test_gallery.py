"""Pages show every figure with its summary, and are the same for the same figures."""

from html.parser import HTMLParser

import pytest
from PIL import Image

from itr_study.plots import figures
from itr_study.plots.figures import (
    COMMON,
    EXAMPLES,
    LARGEST,
    NOT_MEASURED,
    SHOWN,
    build_gallery,
    inside,
    save_figure,
)
from tests.plots.test_figures import TABLE, common, read, save


def page(folder, name="README.md") -> str:
    return build_gallery(folder / name, inside(folder)).read_text()


def test_gallery_shows_every_figure_in_order(tmp_path):
    save(tmp_path, dataset="scenes", summary="Peaks [at small k].")
    save(tmp_path, dataset="flickr8k", name="02_pairwise_losses__collapse", seeds=[])
    save(tmp_path, dataset="flickr8k", seeds=[0])
    text = page(tmp_path)
    order = ["## flickr8k", "### 02_pairwise_losses", "### 03_topk", "## scenes", "### 03_topk"]
    assert [line for line in text.splitlines() if line.startswith(("## ", "### "))] == order
    assert "![Peaks (at small k).](scenes/03_topk__k_sweep.png)" in text
    assert "Peaks [at small k]." in text
    hidden = "only generated data have: confusable, image to text, text to image."
    assert text.count(hidden) == 1 and text.index(hidden) < text.index("## scenes")
    assert "*03_topk, profile quick, 1 seed*" in text and "nothing random" in text
    for ending in ("csv", "json"):
        assert f"(flickr8k/02_pairwise_losses__collapse.{ending})" in text


class Read(HTMLParser):
    """The addresses that a page names, and its tags."""

    def __init__(self, text: str):
        super().__init__()
        self.addresses, self.tags = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.addresses += [value for name, value in attributes if name in ("src", "href")]


def test_the_page_of_your_own_figures_opens_without_a_network(tmp_path):
    """Its pictures and tables are found beside it, and those of another folder too."""
    own, other = tmp_path / "figures" / "scenes", tmp_path / "my" / "figures"
    save(tmp_path / "figures", dataset="scenes", summary='Peaks at k < 5 & "falls".')
    common(other)
    save_figure(None, TABLE, "03_topk__table_2", COMMON, "As printed.", {"seeds": []}, other)
    text = build_gallery(own / "index.html", [own, other / COMMON]).read_text()
    found = Read(text)
    assert not {"script", "link", "iframe"} & set(found.tags) and "://" not in text
    assert found.tags.count("img") == 2 and found.tags.count("figure") == 3
    assert 'alt="Peaks at k &lt; 5 &amp; &quot;falls&quot;."' in text
    files = [address for address in found.addresses if not address.startswith("#")]
    assert "../../my/figures/common/03_topk__table_2.csv" in files and len(files) == 2 * 4 + 2
    assert all((own / address).is_file() for address in files)
    anchors = [address for address in found.addresses if address.startswith("#")]
    assert anchors == ["#scenes-03_topk", "#common-03_topk"]
    assert all(f'id="{anchor[1:]}"' in text for anchor in anchors)
    assert "loading=" in text and "width=device-width" in text and "light dark" in text


def test_what_is_drawn_stands_beside_the_seeds_of_the_title(tmp_path):
    save(tmp_path, seeds=[0, 1, 2], drawn=1)
    assert "3 seeds; drawn: 1*" in page(tmp_path)


def test_a_gallery_is_deterministic_and_holds_for_no_figures(tmp_path):
    for name in ("README.md", "index.html"):
        assert "No figures yet" in page(tmp_path / "none", name)
        save(tmp_path)
        assert page(tmp_path, name) == page(tmp_path, name)


def test_a_figure_without_its_files_is_named(tmp_path):
    save(tmp_path).unlink()
    with pytest.raises(ValueError, match="scenes/03_topk__k_sweep.png"):
        page(tmp_path)


def test_what_is_common_stands_once_under_its_own_heading(tmp_path):
    common(tmp_path)
    text = page(tmp_path)
    assert "## common" in text and "*03_topk, nothing trained or measured*" in text
    common(tmp_path, made_from="three trainings on generated scenes")
    text = page(tmp_path)
    assert "*03_topk, three trainings on generated scenes*" in text and NOT_MEASURED not in text
    save(tmp_path, name="03_topk__drawn", dataset="flickr8k")
    with pytest.raises(ValueError, match="filed twice: flickr8k/03_topk__drawn"):
        page(tmp_path)


def test_a_table_alone_is_linked_and_not_shown(tmp_path):
    save_figure(None, TABLE, "03_topk__table_2", "scenes", "As printed.",
                {"profile": "quick", "seeds": []}, tmp_path)
    text = page(tmp_path)
    assert "As printed." in text and "(scenes/03_topk__table_2.csv)" in text and "![" not in text


def test_the_published_page_has_examples_of_generated_data_and_no_more(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "figures_folder", lambda folder=None: folder or tmp_path)
    for name in (SHOWN[0], "03_topk__dimension"):
        save(tmp_path, dataset="scenes", name=name)
    save(tmp_path, dataset="flickr8k")
    text = figures.publish("scenes").read_text()
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        f"## {EXAMPLES}", "## flickr8k"] and "(scenes/" not in text
    kept = list(read(tmp_path / EXAMPLES))
    assert kept == [f"{SHOWN[0]}.{ending}" for ending in ("csv", "json", "png")]


def test_an_example_is_replaced_only_by_another_table_that_is_no_worse(tmp_path):
    source, target = tmp_path / "scenes", tmp_path / EXAMPLES
    picture = save(tmp_path, name=SHOWN[0])
    assert figures.publish_examples(source, target) == [SHOWN[0]]
    Image.effect_noise((500, 500), 90).save(picture)
    assert figures.publish_examples(source, target) == []
    save(tmp_path, "full", name=SHOWN[0], table=TABLE.assign(loss=2.0))
    Image.effect_noise((500, 500), 90).save(picture)
    assert figures.publish_examples(source, target) == [SHOWN[0]]
    assert (target / picture.name).stat().st_size <= LARGEST < picture.stat().st_size
    picture.with_suffix(".json").unlink()
    save(tmp_path, "quick", name=SHOWN[0])
    assert figures.publish_examples(source, target) == []


@pytest.mark.evidence
def test_the_published_examples_are_those_shown_and_small():
    folder = figures.figures_folder() / EXAMPLES
    pictures = sorted(folder.glob("*.png"))
    assert [path.stem for path in pictures] == list(SHOWN) and len(SHOWN) <= 12
    assert all(path.stat().st_size <= LARGEST for path in pictures)
