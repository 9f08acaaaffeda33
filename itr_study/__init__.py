"""itr_study: learn, test and compare ranking losses for matching images and texts.

Two wings. The library is what one imports; the laboratory runs, keeps, judges and publishes, and
the library imports nothing of it. From the ground up; a room imports only rooms on lines above:

    files  checks  progress  processes             what both wings stand on
    data                                           library
    encoders  losses  metrics
    features  relevance  models  rerank
    evaluation  plots
    training  explorers
    runs  label_quality  ledger                    laboratory
    studies
    batch
    cli

To read it: a picture's way is data, encoders, features; a batch's way training, models, losses;
a number's way metrics, evaluation, runs, plots; a claim's way studies, ledger.

Scores are (I, T): images down, texts across, higher = more alike.
"""

__version__ = "0.1.0"
