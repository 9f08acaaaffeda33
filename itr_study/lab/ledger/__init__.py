"""Every claim of the papers, held against paired runs of ours."""
