"""The laboratory: runs, studies, the ledger, notebooks without a head, the command."""
