"""`python -m fanout` is the same program as `fanout`."""

from fanout.cli.main import run

if __name__ == "__main__":
    run()
