"""Vision models by name: "timm:resnet50", "transformers:<folder>", "clip:<folder>".

Weights are looked for as a given folder (the name itself, or `<home>/weights/<name>`), then on the
hub. A folder for timm holds what `timm.models.save_for_hf` writes, one for transformers what
`save_pretrained` writes; weights as safetensors only, nothing is unpickled.
"""

import math
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from itr_study.checks import check_choice
from itr_study.encoders.base import PRECISIONS, ImageNetwork, WeightsError, working_dtype
from itr_study.encoders.weights import (
    fingerprint_of_weights,
    load_given_or_hub,
    loaded,
    loaded_model,
    required_package,
)

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


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


class DualNetwork(VisionNetwork):
    """CLIP or the like: pooled is its own vector, of length 1; if `trained`, the only region."""

    trained = False

    def forward(self, pixels: Tensor) -> Tensor:
        """Compute the grid (N, R, D), or (N, 1, D)."""
        if self.trained:
            return self.pooled(pixels)[:, None]
        return self._computed(pixels, lambda out: places(out.last_hidden_state, self.width))

    def _last_map(self, pixels: Tensor) -> Any:
        return self.network(pixel_values=pixels)

    def _pool(self, states: Any) -> Tensor:
        return normalize(states.pooler_output.float(), dim=1)


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

        model = load_given_or_hub(name, load)
        config = timm.data.resolve_model_data_config(model)
        width = model.num_features
        return TimmNetwork(model, config["mean"], config["std"], width), config["input_size"][1]


class Transformers(Vision):
    """A vision model of transformers by name on the hub, or a folder of one."""

    name, kind = "transformers", TransformersNetwork

    def _load(self, name: str) -> tuple[VisionNetwork, int]:
        model = self._model(name)
        preprocessing = loaded(name, lambda transformers: transformers.AutoImageProcessor).to_dict()
        mean = preprocessing.get("image_mean", IMAGENET_MEAN)
        std = preprocessing.get("image_std", IMAGENET_STD)
        size = native_size(preprocessing)
        with torch.inference_mode():
            states = model.eval()(pixel_values=torch.zeros(1, 3, size, size)).last_hidden_state
        width = states.shape[1] if states.ndim == 4 else states.shape[2]
        return self.kind(model, mean, std, width), size

    def _model(self, name: str) -> nn.Module:
        model = loaded_model(name)
        return dict(model.named_children()).get("vision_model", model)  # CLIP and its like


class Clip(Transformers):
    """CLIP, SigLIP or the like: its own vector of a picture, or states of patches.

    Differs: pictures are squeezed to a square, which the model's own processor may cut out.
    """

    name, kind = "clip", DualNetwork

    def trainable(self) -> VisionNetwork:
        """Load the network in float32 with gradients; it gives its own vector, (N, 1, D)."""
        network, size = self._load(self.argument)
        with torch.inference_mode():
            network.width = network.pooled(torch.zeros(1, 3, size, size)).shape[1]
        network.trained = True
        return network

    def _model(self, name: str) -> nn.Module:
        return loaded_model(name, "image")


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
