"""Fine-tune a CLIP folder in a plain PyTorch loop with a loss of this package.

    python docs/examples/clip_loop.py FOLDER

FOLDER holds a CLIP model as `save_pretrained` writes it. With open_clip loading and
tokenizing differ; `images, texts, scale = model(pixels, tokens)` gives what `embed` gives here.
"""

import sys

import torch
from transformers import AutoProcessor, CLIPModel

import itr_study as itr
from itr_study.adapters import contrastive

if len(sys.argv) < 2:
    sys.exit(__doc__)
data = itr.load_dataset("scenes", train=64, dev=16, test=16)
train, test = data.splits["train"], data.splits["test"]
model, processor = (part.from_pretrained(sys.argv[1]) for part in (CLIPModel, AutoProcessor))


def embed(split, images, texts):
    """Embed images and texts of a split, by their numbers."""
    given = processor(images=[data.open_image(split.image_ids[n]) for n in images],
                      text=[split.texts[n] for n in texts], padding=True, truncation=True,
                      return_tensors="pt")
    found = model(**given)
    return found.image_embeds, found.text_embeds


loss = itr.LOSSES["topk"](k=5)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
model.train()
for texts in torch.randperm(len(train.texts)).split(64):
    images = torch.from_numpy(train.image_of_text)[texts]
    if len(texts) < 64:
        break
    value = contrastive(*embed(train, images, texts), loss, images)  # ids: equal for a match
    optimizer.zero_grad()
    value.backward()
    optimizer.step()
    print(f"loss {value.item():.3f}")

model.eval()
with torch.no_grad():
    images, texts = embed(test, range(len(test.image_ids)), range(len(test.texts)))
table = itr.score(images=images, texts=texts, image_of_text=test.image_of_text,
                  similarity="cosine").table
print({name: round(table[name], 1) for name in ("i2t_r1", "t2i_r1", "rsum")})
