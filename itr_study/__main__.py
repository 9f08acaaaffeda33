"""`python -m itr_study`: the command, also where its script is not installed."""

from itr_study.lab.cli.app import app

if __name__ == "__main__":
    app()
