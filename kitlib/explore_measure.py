"""A button in a notebook that measures two layouts on the reader's own machine, and shows what it found."""

from __future__ import annotations

import json
import os
from html import escape
from typing import Any

import ipywidgets

from kitlib.access import Profile
from kitlib.calibrate import calibrate
from kitlib.costtext import measure_text
from kitlib.errors import KitError
from kitlib.explore import PAGE_VARIABLE
from kitlib.figures.cost import trade_off_map
from kitlib.figures.style import PLOTLY
from kitlib.measure import DEFAULT, QUICK, Measurement, measure
from kitlib.measure_run import find_compiler
from kitlib.model import Layout
from kitlib.page import PLOTLY_TYPE
from kitlib.topology import read_topology
from kitlib.tradeoff import trade_off

ON_A_PAGE = "On this page nothing can be measured; open the notebook with <code>kitlib lab</code> for the button."


class MeasureButton(ipywidgets.VBox):  # type: ignore[misc]
    """The button with its progress bar and its result; ``measurement`` holds what was measured last."""

    def __init__(self, before: Layout, after: Layout, profile: Profile) -> None:
        self.before, self.after, self.profile = before, after, profile
        self.measurement: Measurement | None = None
        self.button = ipywidgets.Button(description="Measure here", tooltip="Compile and run a benchmark, a minute")
        self.quick = ipywidgets.Checkbox(description="quick (ten seconds)", value=True, indent=False)
        self.bar = ipywidgets.IntProgress(max=1, layout={"visibility": "hidden"})
        self.says = ipywidgets.HTML()
        self.result = ipywidgets.Output()
        self.button.on_click(lambda _: self.run())
        self._check()
        row = ipywidgets.HBox([self.button, self.quick, self.bar])
        super().__init__([row, self.says, self.result])

    def _check(self) -> None:
        """Say what cannot be measured here and why; without a compiler nothing can."""
        try:
            find_compiler()
        except KitError as error:
            self.button.disabled = True
            self._say(f"Nothing can be measured here: {error}.")
            return
        if len(read_topology().cpus) < 2:
            self._say("Sharing cannot be measured here: it needs two CPUs and this process may use one.")

    def run(self) -> None:
        """Measure, with progress, and show the result; a failure is one line."""
        self.button.disabled, self.bar.layout.visibility = True, "visible"
        self.result.outputs = ()
        try:
            effort = QUICK if self.quick.value else DEFAULT
            done = measure(self.before, self.after, self.profile, effort=effort, tick=self._tick)
            self.measurement = done
            self._show(done)
        except KitError as error:
            self._say(f"Not measured: {error}.")
        finally:
            self.button.disabled, self.bar.layout.visibility = False, "hidden"

    def _show(self, done: Measurement) -> None:
        self._say("Calibrating the model on this machine …")
        here = calibrate()
        threads = max((r.spec.threads for r in done.results), default=2)
        found = trade_off(self.before, self.after, self.profile, here.machine, cpus=max(threads, 2))
        self._say("; ".join(here.notes))
        self.result.append_stdout(measure_text(done, compared=True) + "\n")
        picture = json.loads(trade_off_map(found, machine="this machine", measured=done).to_json()) | {"config": PLOTLY}
        shown = {"output_type": "display_data", "data": {PLOTLY_TYPE: picture}, "metadata": {}}
        self.result.outputs += (shown,)  # a figure that is displayed goes to the cell, not to this widget

    def _tick(self, label: str, done: int, total: int) -> None:
        if done == 1 or done == total or done % max(total // 20, 1) == 0:  # a message each, so not for every slice
            self.bar.max, self.bar.value = total, done
            self._say(f"{label}: {done} of {total} slices")

    def _say(self, text: str) -> None:
        self.says.value = escape(text)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        if os.environ.get(PAGE_VARIABLE):
            return {"text/html": f"<p>{ON_A_PAGE}</p>", "text/plain": "a button to measure, in the live notebook"}
        return super()._repr_mimebundle_(**kwargs)
