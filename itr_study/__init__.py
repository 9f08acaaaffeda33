"""itr_study: learn, test and compare ranking losses for matching images and texts.

Data flows one way, and nothing imports to its right:

    data -> encoders -> relevance -> models -> losses -> metrics -> rerank
         -> objectives -> training -> runs -> plots | widgets -> cli

Scores are (I, T): images down, texts across, higher = more alike.
"""

__version__ = "0.1.0"
