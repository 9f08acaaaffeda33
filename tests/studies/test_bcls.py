"""What notebook 06 says of its runs."""

import pandas as pd

from itr_study.lab.studies.nb06_kendall import span_of_singles


def test_the_span_of_single_runs_stands_beside_what_seeds_alone_would_make():
    """Three pairs; another of five seeds has a variance of 2.5: three draws span 1.6926 sd."""
    rows = pd.DataFrame([("a", 0, 280.0), ("b", 0, 291.0), ("c", 0, 284.0), ("c", 1, 999.0)],
                        columns=["arm", "seed", "dev_rsum"])
    repeated = pd.DataFrame({"arm": "d", "dev_rsum": [280.0 + seed for seed in range(5)]})
    assert span_of_singles(rows, repeated) == (
        "3 single runs span 11.0 points of RSUM on dev, seeds alone about 2.7")
    assert span_of_singles(rows, repeated.head(1)).endswith("11.0 points of RSUM on dev")
