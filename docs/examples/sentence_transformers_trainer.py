"""Fine-tune a CLIP folder with SentenceTransformerTrainer and a listwise loss of this package.

    python docs/examples/sentence_transformers_trainer.py FOLDER [OUTPUT]

FOLDER holds a CLIP model as `save_pretrained` writes it. The pictures are generated.
"""

import sys

from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)

import itr_study as itr
from itr_study.adapters import ImageTextEvaluator, RankingLoss, captions

if len(sys.argv) < 2:
    sys.exit(__doc__)
folder, output = sys.argv[1], (sys.argv + ["tuned"])[2]
data = itr.load_dataset("scenes", train=64, dev=16, test=16)
train, dev = data.splits["train"], data.splits["dev"]
pictures = [data.open_image(image) for image in train.image_ids]

# A row for each text: its picture, the text, and in "label" the number of the text.
rows = Dataset.from_dict({"image": [pictures[image] for image in train.image_of_text],
                          "text": list(train.texts), "label": list(range(len(train.texts)))})

# Sentence vectors say how alike two captions are, for the graded term of the objective.
encoder = itr.TEXT_ENCODERS["minilm"]()
labels = captions(train.image_of_text, minilm=encoder.encode(list(train.texts)))

model = SentenceTransformer(folder)
loss = RankingLoss(model, "listwise", labels)  # hardest negative + Smooth-NDCG on graded labels
evaluator = ImageTextEvaluator([data.open_image(image) for image in dev.image_ids],
                               list(dev.texts), dev.image_of_text, name="dev")
arguments = SentenceTransformerTrainingArguments(
    output_dir=output, num_train_epochs=1, per_device_train_batch_size=64, learning_rate=1e-3,
    dataloader_drop_last=True, eval_strategy="epoch", logging_steps=1, report_to="none")
trainer = SentenceTransformerTrainer(model, arguments, train_dataset=rows, loss=loss,
                                     evaluator=evaluator)
trainer.train()
print({name: round(value, 1) for name, value in evaluator(model).items()})
