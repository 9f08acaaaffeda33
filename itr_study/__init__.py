"""itr_study: learn, test and compare ranking losses for matching images and texts.

The library is what you import; `lab` trains, keeps and publishes runs and tests the claims of the
papers, and the library imports nothing of it. From the ground up (FLOORS in tests/test_imports.py
says which may import which):

    files digits arithmetic  atomic and sealed files, paths; numbers in words; which instructions
                   the processor has
    data           one file per data set, its record, and what a split and a batch hold
    encoders       frozen networks; word and sentence vectors (MiniLM, Fisher, GloVe, n-grams)
    features       a data set as arrays: encoded once, cached
    relevance      label sources: how relevant is text j to image i?
    models losses metrics rerank       one file per idea
    evaluation     a model measured: percent, tables (R@K, RSUM), intervals over images, search
    plots          one function per picture, and the names that readers see
    training       loop, devices, objective, settings, batch order, checkpoints
    explorers      for lessons: controls, queries to show, the code behind a formula
    adapters       losses and evaluation in sentence-transformers, or in a loop of yours
    lab.runs       a run's config, id and row; store, sweeps, workers; what is published; audit
    lab.label_quality  label sources compared with human ratings
    lab.ledger     claims of the papers (reported/claims.csv), rules, verdicts
    lab.studies    the runs and parameters of each notebook, settings, and `Study`
    lab.batch lab.course lab.cli  notebooks executed without a browser; exercises and copies for a
                   class; the command

To read it: a picture's way is data, encoders, features; a batch's way training, models, losses;
a number's way metrics, evaluation, runs, plots; a claim's way studies, ledger.

Scores are (I, T): images down, texts across, higher = more alike.
"""

from importlib import import_module

__version__ = "0.1.0"

# What `itr_study.<name>` gives, and its module. Loaded when first asked for: the
# command must not wait for torch.
PUBLIC = {
    "DATASETS": "data", "load_dataset": "data",
    "IMAGE_ENCODERS": "encoders", "TEXT_ENCODERS": "encoders",
    "encode_dataset": "features.dataset", "RELEVANCE": "relevance",
    "MODELS": "models", "ModelOutput": "models.base", "LOSSES": "losses",
    "OUTPUT_LOSSES": "losses", "check_loss": "losses.check",
    "Objective": "training.objective", "Term": "training.objective",
    "Settings": "training.settings", "fit": "training.loop",
    "RERANKERS": "rerank", "evaluate": "evaluation.evaluate", "Searcher": "evaluation.search",
    "Scores": "metrics", "ranks": "metrics", "retrieval_table": "evaluation.table",
    "score": "evaluation.protocol",
    "RunConfig": "lab.runs.config", "sweep": "lab.runs.sweeps", "Study": "lab.studies.study",
    "check_answer": "lab.course",
    "rows": "lab.runs.published", "curve": "lab.runs.published", "arrays": "lab.runs.published",
}
# What has more to give than these names: `itr_study.losses.TopKLoss`, `itr_study.metrics.ndcg`.
PACKAGES = ("adapters", "data", "encoders", "explorers", "losses", "metrics", "models", "plots",
            "relevance", "rerank")

__all__ = list(PUBLIC)


def __getattr__(name: str) -> object:
    if name in PACKAGES:
        return import_module(f"itr_study.{name}")
    if name not in PUBLIC:
        from itr_study.checks import not_among  # here, so that the package itself costs nothing

        raise AttributeError(not_among("name in itr_study", name, __dir__()))
    try:
        return vars(import_module(f"itr_study.{PUBLIC[name]}"))[name]
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("itr_study"):
            raise
        raise ModuleNotFoundError(f"itr_study.{name} needs {error.name}: pip install "
                                  "'itr-study[plots,lab]'", name=error.name) from error


def __dir__() -> list[str]:
    return [*PUBLIC, *PACKAGES, "__version__"]
