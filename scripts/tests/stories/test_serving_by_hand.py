"""The session that the page on serving shows can be typed as it stands: only the token is another each time."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
PART = PAGE.partition("\n## By hand\n")[2].partition("\n## ")[0]


def blocks(language: str) -> list[list[str]]:
    found = re.findall(rf"^```{language}\n(.*?)^```$", PART, re.MULTILINE | re.DOTALL)
    return [block.splitlines() for block in found]


def test_what_the_page_says_to_type_makes_one_network():
    ((command,),) = blocks("sh")
    (typed,) = blocks("json")
    launcher, *words = command.split()
    assert launcher == "scripts/assisted-benchmark"
    kept = {key: value for key, value in os.environ.items() if key.startswith("COVERAGE")}
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "assisted_benchmark", *words],
        cwd=ROOT,
        env=kept | {"PYTHONPATH": str(ROOT / "scripts"), "PATH": "/usr/bin:/bin"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    watch = threading.Timer(60, process.kill)
    watch.start()
    token, heard = "", []
    try:
        for line in typed:
            process.stdin.write(line.replace("chg-1-…", token) + "\n")
            process.stdin.flush()
            if "id" in json.loads(line):
                heard.append(json.loads(process.stdout.readline()))
                token = heard[-1].get("result", {}).get("structuredContent", {}).get("token", token)
        rest, said = process.communicate()
    finally:
        watch.cancel()
        process.kill()
        process.communicate()
    assert (process.returncode, rest, said) == (0, "", "")
    asked = heard[2]
    assert (asked["id"], asked["method"]) == ("ask-1", "elicitation/create")
    assert "(an endpoint for trying out: nothing real)" in asked["params"]["message"]
    confirmed, listed = (each["result"]["structuredContent"] for each in heard[3:])
    assert (confirmed["executed"], confirmed["outcome"]) == (True, "succeeded")
    assert [each["name"] for each in listed["result"]["data"]] == ["plant-floor"]
