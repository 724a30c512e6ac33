"""A program that stands for a node's process, and one that stands for the command that starts nodes."""

import os
import signal
import sys
import time
from pathlib import Path

from freshline.live.nodes.parent_lifeline import end_with_parent
from freshline.live.nodes.supervisor import Supervisor


def command(folder: Path, node: str) -> list[str]:
    return [sys.executable, __file__, str(folder), node]


def be(folder: Path, node: str) -> None:
    """What a node does is in its name."""
    begun = folder / f"{node}.starts"
    with begun.open("a") as file:
        file.write(f"{os.getpid()}\n")
    starts = len(begun.read_text().splitlines())
    if node.startswith("refused"):
        raise SystemExit(2)
    if node.startswith("dies") and starts < 3:
        os.kill(os.getpid(), signal.SIGKILL)
    if node.startswith("loses") and starts < 2:
        raise SystemExit(3)
    if node.startswith("waits"):
        end_with_parent()
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        (folder / f"{node}.ready").touch()
        time.sleep(3600)


def supervise(folder: Path, nodes: list[str]) -> None:
    Supervisor(nodes, lambda node: command(folder, node), print).run()


if __name__ == "__main__":
    if len(sys.argv) == 3:
        be(Path(sys.argv[1]), sys.argv[2])
    else:
        supervise(Path(sys.argv[1]), sys.argv[2:-1])
