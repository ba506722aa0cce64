"""Every block of the guide runs, in order, as it would when pasted."""

import pathlib
import re

GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "python.md"


def test_the_guide_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)
    assert len(blocks) >= 6
    world: dict = {}
    for block in blocks:
        exec(compile(block, str(GUIDE), "exec"), world)
