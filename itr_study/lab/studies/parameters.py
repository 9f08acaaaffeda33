"""What the parameters of a notebook may be: a class each, for three profiles.

A field of such a class is a variable of the notebook's parameters cell:

    class TopkParameters(Parameters, title="03_topk"):
        ks: list[PositiveInt] = by_profile("negatives in the mean", [1, 5], [1, 2, 5], [1, 2, 3])

    TopkParameters.of(profile="quick", ks=[7])      the numbers of `quick`, but for ks
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    ConfigDict,
    Field,
    JsonValue,
    NonNegativeInt,
    PositiveInt,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from itr_study.checks import check_choice, check_count, complain
from itr_study.data import DATASETS, check_options
from itr_study.data.base import SPLITS
from itr_study.data.caption_noise import CHOICES, check_share
from itr_study.data.scenes.styles import STYLES
from itr_study.features.specs import image_parts
from itr_study.lab.label_quality.agreement import label_sources
from itr_study.lab.studies.bases import Tuned, searched_rates
from itr_study.training.settings import StrictModel, problems

PROFILES, PAPER = ("smoke", "quick", "full"), "paper"
# Notebooks that have profile paper, which is quick and as that paper trains (`presets.paper_arms`).
PAPERS = {"03_topk": "topk", "05_listwise": "listwise", "06_kendall": "bcls",
          "07_sub_embeddings": "dvse"}
CHANGE_NO_RUN = ("figures", "workers", "device")
Names = list[str]
# What multiplies scores, losses or steps: at most a number far below where float32 ends.
Factor = Annotated[float, Field(gt=0, le=1e6)]
Scenes = dict[Literal["train", "dev", "test"], PositiveInt]
# Settings of Table IV, and those of them that a profile adds an objective to.
SETTINGS = ["two_branch+fisher", "two_branch+sentence", "vsepp+gru", "vsepp+bigru-glove"]
PLUGGED_IN = (SETTINGS[:1], SETTINGS[:2], SETTINGS)
WIDEST = 2.0  # of a window: labels are cosines
Width = Annotated[float, Field(ge=0, lt=WIDEST)]
# What a parameter that holds names may choose from: names, or what gives them by the parameters
# before it, the data set among them. Where it gives none, any name will do.
Choices = Iterable[str] | Callable[[Mapping[str, Any]], Iterable[str]]
# Options of the data whose type alone does not say what its reader takes.
OPTIONS: dict[str, Callable[[Any], None]] = {
    "leave_out": lambda value: check_choice("leave_out", value, CHOICES),
    "splits": lambda value: complain(None if sorted(value) == sorted(SPLITS) else (
        f"splits must be {', '.join(SPLITS)}, all of which a run reads; got {value}")),
    "caption_noise": check_share,
    "noise_seed": lambda value: check_count("noise_seed", value, 0),
    "vagueness": lambda value: check_count("vagueness", value, 0, len(STYLES) - 1)}


def by_profile(about: str, smoke: Any, quick: Any, full: Any, *, among: Choices = (),
               empty: bool = False, rivals: Sequence[Any] = ()) -> Any:
    """Declare a parameter whose number depends on the profile.

    Args:
        about: what it is, as the comment of the parameters cell says it.
        smoke: value in this profile.
        quick: value in this profile.
        full: value in this profile.
        among: for names, those that it may choose from.
        empty: whether a list may be empty.
        rivals: what a list must hold, unless it is empty: its other items are compared with them.
    """
    sizes = dict(zip(PROFILES, (smoke, quick, full), strict=True))
    every = sizes | {PAPER: quick}
    return Field(default_factory=lambda given: deepcopy(every[given.get("profile", "smoke")]),
                 description=about,
                 json_schema_extra={"sizes": sizes, "among": among, "empty": empty,
                                    "rivals": rivals})


def searched_settings(given: Mapping[str, Any]) -> Iterable[str]:
    """Return the settings whose learning rates were searched for each loss of Table IV of topk."""
    return [name for name, rates in searched_rates(given["dataset"]).items()
            if {"sum", "hardest", "top5"} <= rates.keys()]


def like(parameters: type["Parameters"], name: str, **sizes: Any) -> Any:
    """Declare a parameter as another notebook has it, but for values in some profiles."""
    field = parameters.model_fields[name]
    extra = field.json_schema_extra
    return by_profile(field.description, **extra["sizes"] | sizes, among=extra["among"],
                      empty=extra["empty"], rivals=extra["rivals"])


class Parameters(StrictModel):
    """The parameters that all notebooks have. None, or no value, is the profile's.

    Raises: ValueError: (pydantic's, see `of`) for an unknown name, another type, a number outside
        its bounds, an empty list or one that holds an item twice, a name that a parameter cannot
        choose, and an option that the data set does not take.
    """

    noun: ClassVar[str] = "parameter"
    model_config = ConfigDict(validate_default=True)
    _rates_here: Tuned = PrivateAttr(default_factory=dict)

    profile: Literal["smoke", "quick", "full", "paper"] = Field(
        "quick", description="how much is computed: smoke, quick or full; it sets what is None")
    dataset: str = Field("scenes", json_schema_extra={"among": DATASETS}, description="data set: "
                         "scenes (generated here), flickr8k, flickr30k, coco, cub, folder")
    data: str | Path | None = Field(
        None, description="folder of the real data sets, None for generated data")
    data_options: dict[str, JsonValue] = Field(
        default_factory=dict, description="of the data set, such as {'skip_bad': True}")
    figures: str | Path | None = Field(
        None, description="folder of figures, None: figures/scenes, of real data my/figures")
    workers: NonNegativeInt = Field(2, description="processes that train side by side")
    device: str = Field("auto", description="where to train: auto, cpu, cuda, cuda:1")
    epochs: NonNegativeInt = by_profile(
        "passes over the texts, None: the profile's, 0: the model's own", 1, 0, 0)
    images: str | None = Field(
        None, description="names of image features, None: those of the setting")
    scenes: Scenes = by_profile(
        "pictures per split of scenes, None: the profile's", {"train": 60, "dev": 20, "test": 30},
        {"train": 800, "dev": 150, "test": 250}, {})

    @classmethod
    def of(cls, **given: Any) -> Self:
        """Make them; ValueError in plain words for what is wrong with those given."""
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            raise ValueError(problems(error)) from error

    @property
    def rates_here(self) -> Tuned:
        """Learning rates that were tuned on these data, by setting; nobody sets them in a cell."""
        return self._rates_here

    def with_rates(self, tuned: Tuned) -> Self:
        """Return a copy with these."""
        copy = self.model_copy()
        copy._rates_here = tuned
        return copy

    @property
    def explicit(self) -> dict[str, Any]:
        """Return those that somebody set and that change a run, for provenance."""
        own = self.model_fields_set - {"profile", "dataset", "data", *CHANGE_NO_RUN}
        return {name: value for name, value in vars(self).items() if name in own}

    @model_validator(mode="before")
    @classmethod
    def leave_out_none(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Drop values of None: the profile's count."""
        return {name: value for name, value in given.items() if value is not None}

    @field_validator("*")
    @classmethod
    def check_items(cls, value: Any, info: ValidationInfo) -> Any:
        """Check lists and names against what they may hold."""
        name, extra = info.field_name, cls.model_fields[info.field_name].json_schema_extra or {}
        if value == PAPER and name == "profile" and cls.model_config.get("title") not in PAPERS:
            raise ValueError(f"profile {PAPER} is for notebooks {', '.join(PAPERS)} alone; take "
                             f"{', '.join(PROFILES)}")
        if isinstance(value, list):
            _check_list(name, value, extra["empty"])
        among, known = extra.get("among", ()), info.data
        if callable(among):  # the data set may be wrong itself
            among = among(known) if "dataset" in known else ()
        if among := list(among):
            for one in value if isinstance(value, list) else [value]:
                check_choice(name, one, among)
        rivals = extra.get("rivals", ()) if value else ()
        if missing := [str(rival) for rival in rivals if rival not in value]:
            raise ValueError(f"{name} must hold {' and '.join(missing)}, with which the others "
                             f"are compared; got {value}")
        return value

    @model_validator(mode="after")
    def check_data(self) -> Self:
        """Check the options of the data set and the spec of images."""
        check_options(self.dataset, self.data_options)
        for name in filter(OPTIONS.__contains__, self.data_options):
            OPTIONS[name](self.data_options[name])
        if self.images is not None:
            image_parts(self.images, ("given",))
        return self

    def check_within(self, name: str, known: Iterable[str], *wider: str) -> None:
        """Refuse a name that others leave out; if the profile named it, say what to set.

        Args:
            name: of a parameter that holds names, or one.
            known: what it may choose from.
            wider: the parameters that this depends on.
        """
        value, known = vars(self)[name], list(known)
        changed = [other for other in wider if other in self.explicit and name not in self.explicit]
        for chosen in [value] if isinstance(value, str) else value:
            if changed and chosen not in known:
                raise ValueError(f"{' and '.join(changed)} as given leave no {chosen!r}, which "
                                 f"{name} of this profile names: set {name}, too, to some of "
                                 f"{', '.join(known)}")
            check_choice(name, chosen, known)


def _check_list(name: str, values: list, empty: bool) -> None:
    """Refuse a list without an item where one is needed, or with two of one label."""
    if not values and not empty:
        raise ValueError(f"{name} is empty and needs an item; leave it out for the profile's")
    seen: dict[str, Any] = {}
    for value in values:
        label = f"{value + 0.0:g}" if isinstance(value, float) else str(value)  # as arms have it
        if label in seen:
            both = f" (as {seen[label]!r}, whose label is {label}, too)" * (
                repr(value) != repr(seen[label]))
            raise ValueError(f"{name} holds {value!r} twice{both}; each is trained and drawn once")
        seen[label] = value


class DataParameters(Parameters, title="01_data_and_judgements"):
    """Parameters of notebook 01, which trains nothing."""

    dataset: str = Field("scenes", description="data set that is looked at: scenes (generated "
                         "here), flickr8k", json_schema_extra={"among": DATASETS})
    scenes: Scenes = like(Parameters, "scenes", smoke={"train": 60, "dev": 20, "test": 60},
                          full={"train": 2000, "dev": 300, "test": 500})


class RelevanceParameters(Parameters, title="04_relevance"):
    """Parameters of notebook 04, which trains nothing."""

    dataset: str = Field("scenes", description="scenes (generated here) or flickr8k (with COCO and "
                         "CxC where they are)", json_schema_extra={"among": DATASETS})
    data: str | Path | None = Field(None, description="folder that holds flickr8k/, coco5k/, cxc/; "
                                    "None for generated data")
    sources: Names = by_profile(
        'label sources, such as "cider/mean"', ["binary", "sentence/max", "cider/max"],
        ["binary", "sentence/max", "sentence/mean", "cider/max", "cider/mean"],
        ["binary", "sentence/max", "sentence/mean", "cider/max", "cider/mean", "meteor/max"])
    pairs: PositiveInt = by_profile("pairs drawn where all would be too many", 500, 20_000, 20_000)
    resamples: PositiveInt = by_profile("of the bootstrap over images", 5, 50, 200)

    @field_validator("sources")
    @classmethod
    def check_sources(cls, names: Names) -> Names:
        """Refuse an unknown label source."""
        label_sources(names)
        return names
