"""The unit of every number of the ledger."""

STEPS = "step_milliseconds"  # of a training step, CPU time of one thread
RERANKING = "rerank_cpu_seconds"  # of one thread, beyond counting the ranks of plain scores
TIMES = (STEPS, RERANKING)  # from benchmarks, not from runs

# The first that fits a metric is its unit; one that none fits is a unit of its own.
UNITS = {"milliseconds": "milliseconds a step", "seconds": "seconds",
         "spread": "standard deviation of cosines, × 100",
         "head_correlation": "mean |cosine| of two heads, × 100", "mask_rate": "heads on, %",
         "mask_std": "standard deviation of the mask, × 100",
         "sigma_std": "standard deviation of σ over heads, × 100",
         "entropy_noise": "share of other texts, %", "entropy": "nats",
         "agreement": "correlation with people, × 100", "eccv": "mAP@R or R-P, points",
         "generalisation": "100 ln(RSUM on test / RSUM on training images)",
         "error": "error of Smooth-NDCG, × 100", "apart": "1 − correlation, × 100",
         "hinge": "training loss", "hubness": "hubness, skewness", "ndcg": "NDCG, × 100",
         "tau": "Kendall's τ, × 100", "cs100": "coherent score, × 100",
         "rel10": "relevance of the first ten, × 100", "rsum": "points of RSUM",
         "gain": "points of RSUM", "_r": "points of recall"}


def unit_of(metric: str, margin: str = "") -> str:
    """The unit of a difference of a metric; under a relative margin ("5%") differences are shares.

    Example:
        >>> unit_of("test_i2t_r1"), unit_of("test_human_expert_tau_c"), unit_of("half_rsum")
        ('points of recall', "Kendall's τ, × 100", 'points of RSUM')
        >>> unit_of("step_milliseconds", "5%"), unit_of("minutes")
        ('% of the second', 'minutes a run')
    """
    from itr_study.plots.tables import title_of  # here: the ledger must not wait for matplotlib

    if margin.endswith("%"):
        return "% of the second"
    return next((unit for part, unit in UNITS.items() if part in metric), title_of(metric))


def units_of(metrics: str, margin: str = "") -> str:
    """The units of the metrics of a claim, which semicolons separate, each once.

    Example:
        >>> units_of("test_i2t_r1;test_i2t_r5;test_rsum"), units_of("")
        ('points of recall; points of RSUM', '')
    """
    names = [name.strip() for name in metrics.split(";") if name.strip()]
    return "; ".join(dict.fromkeys(unit_of(name, margin) for name in names))
