"""The notebook of the papers' figures: that its cells run, and that no figure is left out."""

from __future__ import annotations

import json
import pathlib
import sys
import types

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"


def cells() -> list[str]:
    notebook = json.loads((EXAMPLES / "papers.ipynb").read_text())
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_a_cell_draws_its_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    # Jupyter's part, which shows a picture, is not needed to make it.
    display = types.ModuleType("IPython.display")
    display.SVG = lambda filename: pathlib.Path(filename).read_text()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    setup, *shown = cells()
    names: dict[str, object] = {}
    exec(compile(setup, "papers.ipynb", "exec"), names)
    papers = sys.modules["papers"]
    assert shown == [f"show(papers.{figure.__name__})" for figure in papers.FIGURES]
    # The others take longer.
    picture = eval(shown[-1], names)
    assert "fast autotune, ours" in picture
    assert "fast autotune, published" in picture
