"""Record what the live page shows: two small models of `scenes`, pairs to judge, a training."""

import hashlib
import json
import zlib
from base64 import b64encode
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor

import itr_study as itr
from itr_study.data.base import RetrievalDataset
from itr_study.digits import number
from itr_study.evaluation.evaluate import encode, evaluating
from itr_study.explorers.pictures import encode_thumbnail
from itr_study.explorers.push_pull import DOG, PushPull
from itr_study.explorers.rating_game import GRADES, LEAST, YouJudge
from itr_study.explorers.search import Search
from itr_study.explorers.who_moved import WhoMoved
from itr_study.features.texts import EncodedData
from itr_study.files.atomic import read_json, write_json
from itr_study.files.paths import home
from itr_study.plots.retrieval import relevance_colours
from itr_study.training.objective import Objective
from tools.site.graphs import write_losses

MODELS = {"Sum": "triplet_sum", "Top-k": "topk"}  # shown names and losses
SIDE, COLUMNS = 80, 20  # pixels of a small picture; in a row of the sheet
FIRST = 10  # results of a list; with as many as in the widget, a slider would not move smoothly
FOLLOWED, STEPS = 16, 60  # pictures whose vectors are recorded, steps


class Sizes(NamedTuple):
    """How much is made: pictures of each split, and epochs."""

    train: int = 800
    dev: int = 50
    test: int = 300
    epochs: int = 5


class Recorded(NamedTuple):
    """What the page reads, and what it was made of, for tests."""

    page: dict[str, Any]
    stills: dict[str, str]  # what stands there without JavaScript, HTML by explorer
    moved: WhoMoved
    judge: YouJudge


def record(sizes: Sizes) -> Recorded:
    """Train on `scenes` and write all that the page reads."""
    dataset = itr.load_dataset("scenes", train=sizes.train, dev=sizes.dev, test=sizes.test)
    data = itr.encode_dataset(dataset, images="detector", sentences="fisher", tokens=None)
    split, models, scores, searchers, learning = dataset.splits["test"], {}, {}, {}, {}
    for name, loss in MODELS.items():
        steps = Steps(data, loss)
        model = steps.train(sizes.epochs)
        vectors = [whole_numbers(one) for one in encode(model, data.splits["test"])]
        models[name] = [{"scale": scale, "size": values.shape[1], "data": text_of(values)}
                        for values, scale in vectors]
        images, texts = (values.astype(np.int32) for values, _ in vectors)
        scores[name] = images @ texts.T * (vectors[0][1] * vectors[1][1])  # as the page computes
        searchers[name] = itr.Searcher(model, dataset, data)
        learning = learning or steps.written(dataset)
    relevance = dataset.relevance(split)
    levels, codes = np.unique(relevance, return_inverse=True)
    judge = YouJudge.of(dataset, scores)
    moved = WhoMoved(*scores.values(), split.image_of_text, split.texts, tuple(scores), relevance,
                     lambda image: dataset.open_image(split.image_ids[image]))
    page = {
        "push_pull": {"items": [list(item) for item in DOG]},
        "gallery": {
            "texts": list(split.texts), "owner": split.image_of_text.tolist(), "top": FIRST,
            "ids": list(split.image_ids), "models": models,
            "levels": levels.astype(float).tolist(), "low": min(float(levels[0]), 0.9),
            "colours": relevance_colours(levels, min(float(levels[0]), 0.9)),
            "scale": relevance_colours(np.linspace(min(float(levels[0]), 0.9), 1, 9),
                                       min(float(levels[0]), 0.9)),
            "relevance": packed(codes.astype(np.uint8 if len(levels) < 256 else np.uint16)),
            "ndcg": {way: [text_of(one) for one in moved.moves.measure(way, "ndcg")]
                     for way in ("i2t", "t2i")},
            "wide": len(levels) >= 256, "sheet": sheet(dataset, split.image_ids),
            "side": SIDE, "columns": COLUMNS},
        "judge": {"pictures": [encode_thumbnail(judge.show(image), 224) for image in judge.images],
                  "texts": judge.texts, "raters": list(judge.raters), "judges": judge.judges,
                  "ratings": judge.ratings.tolist(), "grades": list(GRADES.items()),
                  "scores": {name: values.tolist() for name, values in judge.scores.items()},
                  "least": LEAST},
        "learning": learning}
    shown = {"push_pull": PushPull(), "who_moved": moved, "judge": judge,
             "search": Search(searchers)}
    stills = {name: explorer.make_still().data for name, explorer in shown.items()}
    first, last = (number(learning["losses"][place], 2) for place in (0, -1))
    stills["learning"] = f"<p>The loss falls from {first} to {last} in these steps.</p>"
    return Recorded(page, stills, moved, judge)


class Steps:
    """The first steps of a training, recorded while its loss is computed."""

    def __init__(self, data: EncodedData, loss: str) -> None:
        torch.manual_seed(0)
        self.data, self.losses, self.vectors = data, [], []
        self.model = itr.MODELS["two_branch"](data.inputs, size=64, hidden=128)
        self.split = data.splits["test"].head(FOLLOWED)
        self.first = np.unique(self.split.image_of_text, return_index=True)[1]
        self.loss = Objective(loss).losses[0]
        self.relevance_scale, self.name = self.loss.relevance_scale, loss

    def __call__(self, scores: Tensor, relevance: Tensor) -> Tensor:
        """Compute the loss of a step; before, look where the followed vectors are."""
        value = self.loss(scores, relevance)
        if len(self.losses) <= STEPS and self.model.training:
            with torch.no_grad(), evaluating(self.model):
                images, texts = encode(self.model, self.split)
            self.losses.append(float(value.detach()))
            self.vectors.append((images.numpy(), texts[self.first].numpy()))
        return value

    def train(self, epochs: int) -> torch.nn.Module:
        """Train the model by the ordinary loop."""
        itr.fit(self.model, self, self.data, itr.Settings(epochs=epochs, learning_rate=5e-3))
        return self.model

    def written(self, dataset: RetrievalDataset) -> dict[str, Any]:
        """Write the steps: places in the plane of the last step's two main directions."""
        last = np.concatenate(self.vectors[-1])
        _, sizes, ways = np.linalg.svd(last - last.mean(axis=0), full_matrices=False)
        plane = ways[:2].T
        images = [(one @ plane).round(3).tolist() for one, _ in self.vectors]
        texts = [(one @ plane).round(3).tolist() for _, one in self.vectors]
        found = [int(((one @ two.T).argmax(axis=1) == np.arange(len(one))).sum())
                 for one, two in self.vectors]
        return {"loss": self.name, "losses": self.losses, "images": images, "texts": texts,
                "first": found, "share": float((sizes[:2]**2).sum() / (sizes**2).sum()),
                "words": [self.split_text(dataset, place) for place in self.first],
                "pictures": [encode_thumbnail(dataset.open_image(image), 48)
                             for image in dataset.splits["test"].image_ids[:len(self.first)]]}

    @staticmethod
    def split_text(dataset: RetrievalDataset, place: int) -> str:
        """Return a text of the test split."""
        return dataset.splits["test"].texts[int(place)]


def whole_numbers(vectors: Tensor) -> tuple[np.ndarray, float]:
    """Round vectors (N, D) to whole numbers of a byte; return them and their scale."""
    values = vectors.numpy()
    scale = float(np.abs(values).max()) / 127
    return (values / scale).round().astype(np.int8), scale


def text_of(values: np.ndarray) -> str:
    """Write bytes as text."""
    return b64encode(values.tobytes()).decode()


def packed(values: np.ndarray) -> str:
    """Write bytes as text, deflated."""
    return b64encode(zlib.compress(values.tobytes(), 9)).decode()


def sheet(dataset: RetrievalDataset, ids: tuple[str, ...]) -> str:
    """Draw all pictures side by side, row by row, as a data URI."""
    whole = Image.new("RGB", (COLUMNS * SIDE, -(-len(ids) // COLUMNS) * SIDE))
    for place, image in enumerate(ids):
        small = dataset.open_image(image).convert("RGB").resize((SIDE, SIDE),
                                                                Image.Resampling.LANCZOS)
        whole.paste(small, (place % COLUMNS * SIDE, place // COLUMNS * SIDE))
    target = BytesIO()
    whole.save(target, "webp", quality=80)
    return f"data:image/webp;base64,{b64encode(target.getvalue()).decode()}"


def as_script(name: str, value: Any) -> str:
    """Write a value as a script, which a page without a server can read, as it cannot read JSON."""
    return f"const {name} = {json.dumps(value, ensure_ascii=False, separators=(',', ':'))};\n"


def live(sizes: Sizes, whole: bool = True) -> dict[str, dict[str, str]]:
    """Write the scripts of the live page, and what stands there without them; see `write_losses`.

    Returns: "scripts" by the name of their file, "stills" by explorer.
    """
    made = record(sizes)
    return {"scripts": {"data.js": as_script("ITR_DATA", made.page),
                        "losses.js": as_script("ITR_LOSSES", write_losses(whole=whole))},
            "stills": made.stills}


def kept_live() -> dict[str, dict[str, str]]:
    """Return `live`, written once for each state of the package and of torch."""
    digest = hashlib.sha256(torch.__version__.encode())
    folders = Path(__file__).parent, Path(itr.__file__).parent
    for path in (path for folder in folders for path in sorted(folder.rglob("*.py"))):
        digest.update(path.read_bytes())
    path = home() / "site" / f"{digest.hexdigest()[:16]}.json"
    if not path.is_file():
        write_json(path, live(Sizes()))
        for former in set(path.parent.glob("*.json")) - {path}:
            former.unlink()
    return read_json(path)
