"""`python -m freshline`, and what the `freshline` command calls."""

from freshline.base.signals import listen


def main() -> None:
    listen()  # first: what is imported here takes a second
    from freshline.cli.main import main as command

    command()


if __name__ == "__main__":
    main()
