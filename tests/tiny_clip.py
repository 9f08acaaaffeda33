"""A CLIP and a SigLIP of 50,000 random weights in folders, made of configs: what users download."""

import string
from pathlib import Path

import torch

SIZE, PROJECTED = 32, 16  # pixels a side, numbers of an embedding
LAYERS = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
          "num_attention_heads": 2}


def save_tiny_clip(folder: Path) -> Path:
    """Write model, tokenizer (letters) and image processor as `save_pretrained` does."""
    from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel, CLIPProcessor, CLIPTokenizer

    letters = string.ascii_lowercase + string.digits + ",.'-"
    tokens = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>",
              "<|endoftext|>"]
    tokenizer = CLIPTokenizer(vocab={token: n for n, token in enumerate(tokens)}, merges=[],
                              model_max_length=96)
    torch.manual_seed(0)
    model = CLIPModel(CLIPConfig(
        text_config=LAYERS | {"vocab_size": len(tokens), "max_position_embeddings": 96,
                              "bos_token_id": len(tokens) - 2, "eos_token_id": len(tokens) - 1,
                              "pad_token_id": len(tokens) - 1},
        vision_config=LAYERS | {"image_size": SIZE, "patch_size": 8}, projection_dim=PROJECTED))
    pictures = CLIPImageProcessor(size={"shortest_edge": SIZE},
                                  crop_size={"height": SIZE, "width": SIZE})
    for part in (model, CLIPProcessor(pictures, tokenizer)):
        part.save_pretrained(folder)
    return folder


def save_tiny_siglip(folder: Path) -> Path:
    """Write the same of a SigLIP; its tokenizer knows letters and the space, and 24 places."""
    from tokenizers import Regex, models, normalizers, pre_tokenizers, processors
    from tokenizers import Tokenizer as Letters
    from transformers import (
        PreTrainedTokenizerFast,
        SiglipConfig,
        SiglipImageProcessor,
        SiglipModel,
    )

    tokens = ["<unk>", "</s>", *string.ascii_lowercase, " "]
    letters = Letters(models.WordLevel({token: n for n, token in enumerate(tokens)}, "<unk>"))
    letters.normalizer = normalizers.Lowercase()
    letters.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    letters.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=letters, pad_token="</s>", eos_token="</s>", unk_token="<unk>",
        model_max_length=24, model_input_names=["input_ids"])
    torch.manual_seed(0)
    model = SiglipModel(SiglipConfig(
        text_config=LAYERS | {"vocab_size": len(tokens), "max_position_embeddings": 24,
                              "projection_size": 32, "pad_token_id": 1, "eos_token_id": 1},
        vision_config=LAYERS | {"image_size": SIZE, "patch_size": 8}))
    pictures = SiglipImageProcessor(size={"height": SIZE, "width": SIZE})
    for part in (model, tokenizer, pictures):
        part.save_pretrained(folder)
    return folder
