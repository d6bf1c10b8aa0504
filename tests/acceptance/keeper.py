"""Two steps, of which the first leaves something behind that the job keeps: `keeper.py MINE THEIRS`. Run by tests."""

from __future__ import annotations

import os
import sys
import time

import tidegate

mine, theirs = sys.argv[1:]
DEADLINE = time.monotonic() + 120  # ends by itself where its test does not live to end it


@tidegate.session
def prepare() -> tidegate.Data:
    return tidegate.Data("weights", tidegate.cuda(10, device_id=0))


@tidegate.session
def use() -> None:
    with tidegate.cuda(10, device_id=0):
        print("went on", flush=True)


kept = prepare()
with open(mine, "w"):
    pass
while not os.path.exists(theirs) and time.monotonic() < DEADLINE:
    time.sleep(0.01)
use()
