"""Vision models of timm and transformers by name: "timm:resnet50", "transformers:<folder>".

Weights are looked for as a given folder (the name itself, or `<home>/weights/<name>`), then on the
hub. A folder for timm holds what `timm.models.save_for_hf` writes, one for transformers what
`save_pretrained` writes; weights as safetensors only, nothing is unpickled.
"""

import math
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import torch
from torch import Tensor, nn

from itr_study.checks import check_choice
from itr_study.encoders.base import PRECISIONS, ImageNetwork, WeightsError, working_dtype
from itr_study.encoders.weights import (
    fingerprint_of_weights,
    given_folder,
    load_given_or_hub,
    required_package,
    without_bar,
)

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
REMEDY = ("Without a connection give a folder instead of a name, or put the folder where it was "
          "looked for; with one, check the name.")


class VisionNetwork(ImageNetwork):
    """Pixels in 0..255 -> grid (N, R, D): normalised as the model was trained, then its last map.

    Tokens that stand for no place (class token, registers) are not in the grid. A frozen network
    may run in a lower precision (`dtype`) where that is safe; its results are float32.
    """

    def __init__(self, network: nn.Module, mean: tuple, std: tuple, width: int) -> None:
        super().__init__()
        self.network, self.width, self.dtype = network, width, torch.float32
        self.register_buffer("mean", torch.tensor(mean).view(1, 3, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(std).view(1, 3, 1, 1), persistent=False)

    def forward(self, pixels: Tensor) -> Tensor:
        """Compute the grid (N, R, D)."""
        return self._computed(pixels, lambda states: places(states, self.width))

    def pooled(self, pixels: Tensor) -> Tensor:
        """Compute (N, D) by the model's own pooling."""
        return self._computed(pixels, self._pool)

    def _computed(self, pixels: Tensor, end: Callable[[Tensor], Tensor]) -> Tensor:
        lower = self.dtype != torch.float32  # else training may have a precision of its own
        with torch.autocast(pixels.device.type, self.dtype) if lower else nullcontext():
            pixels = (pixels.to(self.mean.dtype) / 255 - self.mean) / self.std
            states = end(self._last_map(pixels))
        return states.float() if lower else states


class TimmNetwork(VisionNetwork):
    """timm: `forward_features`; pooled is the model's own pooling."""

    def _last_map(self, pixels: Tensor) -> Tensor:
        return self.network.forward_features(pixels)

    def _pool(self, states: Tensor) -> Tensor:
        return self.network.forward_head(states, pre_logits=True)


class TransformersNetwork(VisionNetwork):
    """transformers: `last_hidden_state`; pooled is its first token if it has one, else the mean."""

    def _last_map(self, pixels: Tensor) -> Tensor:
        return self.network(pixel_values=pixels).last_hidden_state

    def _pool(self, states: Tensor) -> Tensor:
        if states.ndim == 3 and extra_tokens(states.shape[1]):
            return states[:, 0]
        return places(states, self.width).float().mean(dim=1)


class Vision:
    """What timm's and transformers' models share: settings, freezing, precision.

    Args:    argument: name on the hub, or folder; precision: least precision of the arithmetic.
    Raises:  WeightsError, with where was looked, when the weights cannot be found.
    """

    name, version = "", 1

    def __init__(self, argument: str = "", precision: str = "float32") -> None:
        if not argument:
            raise ValueError(f'{self.name} needs the name of a model or a folder, such as '
                             f'"{self.name}:<model>:pooled:flip"')
        check_choice("precision", precision, PRECISIONS)
        self.argument, self._kept = argument, None
        self.settings = {"precision": precision, "weights": fingerprint_of_weights(argument)}

    @property
    def size(self) -> int:
        """Native height and width in pixels; loads the model."""
        return self._loaded()[1]

    def network(self, device: torch.device | str = "cpu") -> VisionNetwork:
        """Load the frozen network in the encoder's precision."""
        network = self._loaded()[0].eval().requires_grad_(False)
        network.dtype = working_dtype(self.settings["precision"], device)
        return network.to(device)

    def trainable(self) -> VisionNetwork:
        """Load the network in float32 with gradients."""
        return self._load(self.argument)[0]

    def _loaded(self) -> tuple[VisionNetwork, int]:
        if self._kept is None:
            self._kept = self._load(self.argument)
        return self._kept


class Timm(Vision):
    """A model of timm by name, such as "timm:resnet50.a1_in1k", or a folder of one."""

    name = "timm"

    def _load(self, name: str) -> tuple[TimmNetwork, int]:
        timm = required_package("timm", "timm", "timm:" + name)

        def load(place: str) -> nn.Module:
            local = "local-dir:" if Path(place).is_dir() else ""
            return timm.create_model(local + place, pretrained=True, num_classes=0)

        model = load_given_or_hub(name, load, REMEDY)
        config = timm.data.resolve_model_data_config(model)
        width = model.num_features
        return TimmNetwork(model, config["mean"], config["std"], width), config["input_size"][1]


class Transformers(Vision):
    """A vision model of transformers by name on the hub, or a folder of one."""

    name = "transformers"

    def _load(self, name: str) -> tuple[TransformersNetwork, int]:
        transformers = required_package("transformers", "transformers", "transformers:" + name)

        def load(place: str) -> tuple[nn.Module, dict]:
            # a folder is read in a moment; a download from the hub keeps its bars
            with without_bar() if given_folder(name) else nullcontext():
                model = transformers.AutoModel.from_pretrained(place, use_safetensors=True)
            processor = transformers.AutoImageProcessor.from_pretrained(place)
            return model, processor.to_dict()

        model, preprocessing = load_given_or_hub(name, load, REMEDY)
        model = dict(model.named_children()).get("vision_model", model)  # CLIP and its like
        mean = preprocessing.get("image_mean", IMAGENET_MEAN)
        std = preprocessing.get("image_std", IMAGENET_STD)
        size = native_size(preprocessing)
        with torch.inference_mode():
            states = model.eval()(pixel_values=torch.zeros(1, 3, size, size)).last_hidden_state
        width = states.shape[1] if states.ndim == 4 else states.shape[2]
        return TransformersNetwork(model, mean, std, width), size


def native_size(preprocessing: dict) -> int:
    """Find the pixels a side that an image processor makes."""
    for entry in (preprocessing.get("crop_size"), preprocessing.get("size")):
        if isinstance(entry, int):
            return entry
        for key in ("height", "shortest_edge"):
            if entry and entry.get(key):
                return entry[key]
    return 224


def extra_tokens(tokens: int) -> int:
    """Count the tokens beyond the largest square: class token and registers of square pictures."""
    return tokens - math.isqrt(tokens) ** 2


def places(states: Tensor, width: int) -> Tensor:
    """Turn any last map into (N, R, D), R places row by row."""
    if states.ndim == 3:
        return states[:, extra_tokens(states.shape[1]):]
    if states.ndim == 4 and states.shape[1] == width:
        return states.flatten(2).transpose(1, 2)
    if states.ndim == 4 and states.shape[3] == width:
        return states.flatten(1, 2)
    raise WeightsError(f"the model's last map has shape {tuple(states.shape)}; expected "
                       f"(N, {width}, H, W), (N, H, W, {width}) or (N, tokens, {width})")
