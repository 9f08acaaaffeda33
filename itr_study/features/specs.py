"""What users write for images, tokens and sentences, read into parts."""

from typing import NamedTuple

from itr_study.checks import check_choice, check_count, not_among
from itr_study.data.box_table import FEWEST, MOST
from itr_study.encoders import DETECTORS, IMAGE_ENCODERS, STAGED, TEXT_ENCODERS
from itr_study.encoders.base import KINDS, PRECISIONS, VIEWS, TextEncoder
from itr_study.encoders.efficientnet import check_stage
from itr_study.encoders.sentences import CLIP, TRANSFORMERS

STAGE = "stage"  # a kind that begins so: what goes into that stage of a network
TOKENS = ("words", "glove", *(f"wordpiece:{name}" for name in (*TRANSFORMERS, f"{CLIP}<folder>")))


class ImagePart(NamedTuple):
    """An encoder with its settings, or (kind "given") features that come with the data."""

    encoder: str  # "lite0", "timm", ...; or the name of given features
    argument: str = ""  # what follows "timm:", "transformers:" or "clip:"
    # or "pooled", "grid", a detector; "pixels": the network is fine-tuned; "stage7": what goes
    # into its seventh stage, from which on it is fine-tuned
    kind: str = "given"
    views: str = "one"
    precision: str | None = None  # None: the encoder's default
    regions: int = 0  # of each picture, where the kind is a detector

    @property
    def name(self) -> str:
        """The encoder as users name it: "lite0", "timm:<name or folder>"."""
        return f"{self.encoder}:{self.argument}" if self.argument else self.encoder

    @property
    def stage(self) -> int:
        """The first stage that is fine-tuned, over the maps that go into it; 0 for none."""
        return int(self.kind.removeprefix(STAGE)) if self.kind.startswith(STAGE) else 0

    @property
    def stages(self) -> str:
        """The network and its first stage that is fine-tuned, "lite0:stage7"; "" for none."""
        return f"{self.name}:{self.kind}" if self.stage else ""

    @property
    def fine_tuned(self) -> bool:
        """Tell whether a model trains this network, or its last stages."""
        return self.kind == "pixels" or self.stage > 0


def image_parts(spec: str, given: tuple[str, ...] = ()) -> list[ImagePart]:
    """Read an images spec: its parts, joined by "+".

    Args:    spec: parts `<encoder>:<pooled|grid>:<one|flip|ten>`, with `:<precision>` after it
             where wanted; `<encoder>:nanodet:<count>`, so many regions of the detector; names of
             features that come with the data (`given`); or alone, for models that fine-tune that
             network, `pixels:<encoder>`, or from stage n on `<encoder>:stage<n>:<one|flip|ten>`.
    Raises:  ValueError naming the choices, or how many regions there may be.

    Example:
        >>> [(part.kind, part.views) for part in image_parts("lite0:pooled:flip")]
        [('pooled', 'flip')]
    """
    if not (isinstance(spec, str) and spec):
        raise ValueError(f'images must be text such as "lite0:pooled:flip", got {spec!r}')
    parts = [_image_part(text.strip(), given) for text in spec.split("+")]
    if len(parts) > 1 and any(part.fine_tuned for part in parts):
        raise ValueError(f"images={spec!r}: pixels or maps of a network that is fine-tuned stand "
                         "alone")
    if len(set(parts)) < len(parts):
        raise ValueError(f"images={spec!r} names a part twice")
    return parts


def _image_part(text: str, given: tuple[str, ...]) -> ImagePart:
    if text in given:
        return ImagePart(text)
    fields, precision = text.split(":"), None
    if fields[0] == "pixels" and len(fields) > 1 and fields[1] in IMAGE_ENCODERS:
        return ImagePart(fields[1], ":".join(fields[2:]), "pixels")
    if fields[-1] in PRECISIONS:
        precision = fields.pop()
    name, *argument = fields[:-2] if len(fields) > 2 else fields[:1]
    if name not in IMAGE_ENCODERS:
        with_data = f"; features with this data: {', '.join(given)}" if given else ""
        raise ValueError(f"{not_among('image encoder', name, IMAGE_ENCODERS)}{with_data}; or "
                         "pixels:<one of these> to fine-tune it")
    kind, last = fields[-2:] if len(fields) > 2 else ("", "")
    part = ImagePart(name, ":".join(argument), kind, last, precision)
    if kind in DETECTORS and last.isdecimal():
        check_count(f"images part {text!r}: regions of {kind}", int(last), FEWEST, MOST)
        return part._replace(views="one", regions=int(last))
    if kind.startswith(STAGE) and last in VIEWS:
        check_choice(f"{kind}: a network that is fine-tuned from a stage on", name, STAGED)
        if not kind.removeprefix(STAGE).isdecimal():
            raise ValueError(f"{kind!r} should be {STAGE} and a number, such as "
                             f"{name}:{STAGE}7:one")
        check_stage(name, part.stage, STAGED[name].stages)
    elif kind not in KINDS or last not in VIEWS:
        name = name if name in STAGED else f"{name}:<model>"
        raise ValueError(f"images part {text!r} should be {name}:<{'|'.join(KINDS)}>:"
                         f"<{'|'.join(VIEWS)}>, such as {name}:pooled:flip" + (
                             f", or {name}:<{'|'.join(DETECTORS)}>:<regions>, or for last stages "
                             f"{name}:{STAGE}<n>:<{'|'.join(VIEWS)}>") * (name in STAGED))
    return part


def tuned_stages(spec: str) -> str:
    """Read from an images spec the network and first stage that a model fine-tunes; "" for none.

    Raises:  as `image_parts`, for a spec of that kind.

    Example:
        >>> tuned_stages("lite0:stage7:flip"), tuned_stages("lite0:pooled:flip+objects")
        ('lite0:stage7', '')
    """
    if f":{STAGE}" not in spec:
        return ""
    return image_parts(spec)[0].stages


def sentence_encoders(spec: str | None, device: str = "cpu") -> list[TextEncoder]:
    """Make the sentence encoders of a spec, joined by "+"; none for None."""
    if spec is None:
        return []
    names = [name.strip() for name in spec.split("+")]
    for name in names:
        if name not in TEXT_ENCODERS and not name.startswith(CLIP):
            known = [*TEXT_ENCODERS, f"{CLIP}<folder>"]
            raise ValueError(f"{not_among('sentence encoder', name, known)}; sentences= is None "
                             "or some of them, joined by +")
    if len(set(names)) < len(names):
        raise ValueError(f"sentences={spec!r} names an encoder twice")
    parts = [name.partition(":") for name in names]
    return [TEXT_ENCODERS[name](device, *[folder] * bool(folder)) for name, _, folder in parts]


def check_tokens(spec: str | None) -> None:
    """Raise ValueError unless the tokens spec is None or one of TOKENS."""
    if not str(spec).startswith(f"wordpiece:{CLIP}"):
        check_choice("tokens", spec, (None, *TOKENS))
