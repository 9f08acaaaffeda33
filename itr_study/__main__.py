"""`itr-study`, also as `python -m itr_study`."""


def main() -> None:
    """Run the command. Exits with a message if the extra `lab` is not installed."""
    try:
        from itr_study.lab.cli.app import app
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("itr_study"):
            raise
        raise SystemExit(f"itr-study needs {error.name}: pip install 'itr-study[plots,lab]'"
                         ) from error
    app()


if __name__ == "__main__":
    main()
