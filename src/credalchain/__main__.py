"""``python -m credalchain`` and the command ``credalchain``."""

import sys


def main() -> None:
    """Run the command line, or name the package that it lacks."""
    try:
        from credalchain.cli.app import run
    except KeyboardInterrupt:
        sys.exit(130)
    except ImportError as error:
        print(
            f"credalchain: the command line needs {error.name}: pip install 'credalchain[cli]'",
            file=sys.stderr,
        )
        sys.exit(1)
    run()


if __name__ == "__main__":
    main()
