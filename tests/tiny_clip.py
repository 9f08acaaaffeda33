"""A CLIP of 50,000 random weights in a folder, made of a config: what a user would download."""

import string
from pathlib import Path

import torch

SIZE, PROJECTED = 32, 16  # pixels a side, numbers of an embedding


def save_tiny_clip(folder: Path) -> Path:
    """Write model, tokenizer (letters) and image processor as `save_pretrained` does."""
    from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel, CLIPProcessor, CLIPTokenizer

    letters = string.ascii_lowercase + string.digits + ",.'-"
    tokens = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>",
              "<|endoftext|>"]
    tokenizer = CLIPTokenizer(vocab={token: n for n, token in enumerate(tokens)}, merges=[],
                              model_max_length=96)
    layers = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
              "num_attention_heads": 2}
    torch.manual_seed(0)
    model = CLIPModel(CLIPConfig(
        text_config=layers | {"vocab_size": len(tokens), "max_position_embeddings": 96,
                              "bos_token_id": len(tokens) - 2, "eos_token_id": len(tokens) - 1,
                              "pad_token_id": len(tokens) - 1},
        vision_config=layers | {"image_size": SIZE, "patch_size": 8}, projection_dim=PROJECTED))
    pictures = CLIPImageProcessor(size={"shortest_edge": SIZE},
                                  crop_size={"height": SIZE, "width": SIZE})
    for part in (model, CLIPProcessor(pictures, tokenizer)):
        part.save_pretrained(folder)
    return folder
