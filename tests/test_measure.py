"""Measuring: the generated program, what is refused, time limits. Timings themselves are not asserted."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kitlib import datafiles
from kitlib.access import Access, Profile, Workload, load_profile, locate
from kitlib.access import Path as CodePath
from kitlib.errors import DataError, NotFound, PlacementError, ToolError
from kitlib.measure import MODES, Effort, by_start, grouped, measure, plan_modes, settled, steadied
from kitlib.measure_c import WORDS, Program, Step, access_code, arguments, program_text
from kitlib.measure_plan import make_plan
from kitlib.measure_run import Reading, compiled, find_compiler, run
from kitlib.measurefile import load_measurement, measurement_from_record, measurement_record
from kitlib.series import Delta, Table, Value
from kitlib.shorthand import make_layout
from kitlib.sources import open_source
from kitlib.topology import Topology, parse_cpu_list, read_topology
from kitlib.verdict import Options, judge

TINY = Effort(samples=3, slices=2, sample_ms=2, rounds=1, sweep=False, limit_s=20)
EVIL = 'x; system("touch /tmp/pwned"); //'


def two_cpus() -> Topology:
    return Topology("test", (0, 1), 2, ((0,), (1,)), (("L1", 32768), ("L3", 1 << 20)))


def simple(op: str = "read", member: str = "a", **access: object) -> Profile:
    path = CodePath("p", 1.0, (Access(member, op, **access),))  # type: ignore[arg-type]
    return Profile("t", "s", (path,), Workload(2, 1, 10.0))


@pytest.fixture
def compiler(need_tool: Callable[[str], str]) -> str:
    return need_tool("gcc")


def test_no_name_from_the_input_gets_into_the_program() -> None:
    layout = make_layout("secret_member:8 other:8", "secret_struct")
    profile = Profile("secret_profile", "s", (CodePath(EVIL, 1.0, (Access("secret_member", "add"),)),), Workload())
    text = program_text(make_plan(profile, layout).program)
    assert "secret" not in text
    assert "system" not in re.sub(r"#include <sys.*", "", text)
    assert "pwned" not in text


def test_every_operation_and_width_compiles(compiler: str) -> None:
    steps = tuple(Step(0, op, width) for op in ("read", "write", "add", "cmpxchg") for width in WORDS)
    text = program_text(Program((steps,), 1))
    flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-xc", "-"]
    done = subprocess.run([compiler, *flags], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_compare_exchange_is_a_loop_and_a_fetch_add_is_none() -> None:
    assert "take4" in access_code(Step(0, "cmpxchg", 4))
    assert "__atomic_fetch_add" in access_code(Step(0, "add", 8))


def test_offsets_are_the_layouts_own_and_follow_the_patch() -> None:
    before, after = (open_source(s).struct("file") for s in ("file-5.8", "file-5.8-patch"))
    profile = load_profile("struct_file")
    plan = make_plan(profile, before, after)
    slot = plan.slots.index(("fput", 0))
    assert [plan.offsets(locate(profile, x))[slot] for x in (before, after)] == [56, 248]


def test_an_atomic_that_straddles_is_refused() -> None:
    layout = make_layout("pad:3 a:8", packed=True)
    with pytest.raises(PlacementError, match=r"a .path p. is at offset 3"):
        make_plan(simple("add"), layout)
    make_plan(simple("read"), layout)


def test_a_struct_that_is_too_large_names_its_largest_member() -> None:
    with pytest.raises(DataError, match="huge takes 2097152"):
        make_plan(simple(), make_layout("a:8 huge:2097152"))


def test_a_missing_member_is_refused_before_anything_is_compiled() -> None:
    with pytest.raises(NotFound, match="did you mean alpha"):
        measure(make_layout("alpha:8"), None, simple(member="alpa"), topology=two_cpus())


def test_one_cpu_refuses_the_shared_mode_and_keeps_the_others() -> None:
    alone = Topology("test", (3,), 4, ((3,),), (("L1", 32768),))
    specs, refused = plan_modes(simple(), [make_layout("a:8")], alone, ["shared", "unshared-hot"], TINY)
    assert [s.mode for s in specs] == ["unshared-hot"]
    assert [(r.mode, "two CPUs" in r.reason) for r in refused] == [("shared", True)]


def test_the_sweep_goes_from_l1_to_beyond_l3() -> None:
    specs, _ = plan_modes(simple(), [make_layout("a:64")], two_cpus(), ["unshared-cold"], Effort())
    sizes = [s.bytes_in_use for s in specs]
    assert sizes == sorted(sizes)
    assert sizes[0] < 32768
    assert sizes[-1] > 1 << 20


def test_threads_use_separate_cores_before_siblings() -> None:
    smt = Topology("test", (0, 1, 2, 3), 8, ((0, 1), (2, 3)), ())
    assert smt.cores == (0, 2)
    assert smt.pick(3) == (0, 2, 1)
    assert any("SMT" in note for note in smt.notes())
    assert any("4 of 8" in note for note in smt.notes())


def test_virtual_machines_are_said_to_be_ones(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("model name\t: A CPU\nflags\t\t: fpu hypervisor sse\n")
    found = read_topology(tmp_path, info)
    assert found.model == "A CPU"
    assert found.virtual
    assert any("virtual machine" in note for note in found.notes())


def test_cpu_lists() -> None:
    assert parse_cpu_list("0-2,7") == (0, 1, 2, 7)
    assert parse_cpu_list("") == ()


def test_a_real_measurement_has_samples_and_a_verdict_for_each_mode(compiler: str) -> None:
    before, after = (open_source(s).struct("file") for s in ("file-5.8", "file-5.8-patch"))
    ticks: list[tuple[str, int, int]] = []
    done = measure(before, after, load_profile("struct_file"), effort=TINY, tick=lambda *t: ticks.append(t))
    record = measurement_record(done)
    for mode in record["modes"]:
        assert len(mode["before"]) == len(mode["after"]) == 3
        assert all(ns > 0 for ns in mode["before"] + mode["after"])
        assert mode["verdict"] in ("better", "worse", "no difference", "undecided")
        assert mode["unit"] == "ns/run"
    reached = {m["mode"] for m in record["modes"]} | {r["mode"] for r in record["refused"]}
    assert reached == {"shared", "unshared-hot", "unshared-cold"}
    assert measurement_record(measurement_from_record(record)) == record
    assert max(done for _, done, _ in ticks) == max(total for _, _, total in ticks)


def test_the_shipped_measurement_is_read_and_written_back_alike() -> None:
    done = load_measurement("scores/file-5.8-measured.json")
    text = datafiles.path("scores/file-5.8-measured.json").read_text(encoding="utf-8")
    assert measurement_record(done) == json.loads(text)
    assert measurement_from_record(json.loads(json.dumps(measurement_record(done)))) == done
    assert {mode for mode in MODES if done.main(mode)} == set(MODES)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda r: r.pop("machine"), "'machine' is missing"),
        (lambda r: r["modes"][0].update(mode="shard"), "'shard' is none of shared"),
        (lambda r: r["modes"][0].update(unit="ms/run"), "unit 'ms/run' is not ns/run"),
        (lambda r: r["modes"][0].update(before=[]), "without samples"),
        (lambda r: r["modes"][0].update(after=["1"]), "'1' is no number"),
        (lambda r: r["modes"][0].update(ci95=[1.0]), "1 numbers where 2 belong"),
        (lambda r: r["modes"][0].update(verdict="splendid"), "'splendid' is none of better"),
        (lambda r: r.update(modes=3), "not iterable"),
    ],
)
def test_a_file_that_is_no_measurement_says_why(change: Callable[[Any], object], says: str) -> None:
    record = measurement_record(load_measurement("scores/file-5.8-measured.json"))
    change(record)
    with pytest.raises(DataError, match=rf"^x.json: no measurement .*{re.escape(says)}"):
        measurement_from_record(record, "x.json")


def test_drift_is_taken_out_and_a_difference_is_kept() -> None:
    readings = []
    for i in range(20):
        level = 2.0 if i >= 10 else 1.0
        readings += [Reading(0, 100 * level, 0, 0, 1), Reading(1, 110 * level, 0, 0, 1)]
    before, after = steadied([readings], 2)
    ratio = [b / a for a, b in zip(before, after, strict=True)]
    assert ratio == pytest.approx([1.1] * 20)
    assert max(before[:7]) == pytest.approx(min(before[:7]))


def test_a_sample_is_the_median_of_its_slices() -> None:
    assert grouped([1.0, 9.0, 2.0, 4.0, 4.0, 5.0, 7.0], 3) == (2.0, 4.0)


def test_a_verdict_is_held_back_where_its_interval_includes_no_change() -> None:
    calm = [100.0 + i % 3 for i in range(20)]
    wild = [*(x - 4 for x in calm[:19]), 900.0]
    row = Delta("shared", Value.of(calm), Value.of(wild), unit="ns/run")
    judged = judge(Table("t", (row,)), options=Options(better="lower")).rows[0]
    assert judged.verdict in ("better", "worse")
    assert settled(judged).verdict == "undecided"


def test_starts_that_differ_widen_the_interval_and_hold_a_verdict_back() -> None:
    calm = [100.0 + i % 3 for i in range(20)]
    row = Delta("cold", Value.of(calm), Value.of([x * 1.08 for x in calm]), unit="ns/run")
    judged = judge(Table("t", (row,)), options=Options(better="lower")).rows[0]
    agree, differ = settled(judged, [8.0, 8.1, 7.9]), settled(judged, [0.3, 3.2, 20.0])
    assert (agree.verdict, agree.ci95) == ("worse", judged.ci95)
    assert differ.verdict == "undecided"
    assert "starts differ (+0.3, +3.2, +20.0 %)" in differ.reason
    # by hand: mean 7.83, sd 10.63, t(2) 4.303: half 4.303 * 10.63 / sqrt(3) = 26.4
    assert differ.ci95 == pytest.approx((7.83 - 26.4, 7.83 + 26.4), abs=0.1)
    assert settled(judged, [0.3, 20.0]).verdict == "worse"
    same = judge(Table("t", (replace(row, after=Value.of(calm[::-1])),)), options=Options(better="lower")).rows[0]
    assert same.verdict == "no difference"
    assert settled(same, [0.1, 0.0, -0.1]).verdict == "no difference"
    assert settled(same, [9.0, 0.0, -9.0]).verdict == "undecided"
    starts = [[Reading(i % 2, 100 + 10 * (i % 2) + k, 0, 0, 1) for i in range(8)] for k in (0, 0)]
    assert by_start(starts) == pytest.approx([10.0, 10.0])


def test_a_certain_change_that_is_tiny_is_no_difference() -> None:
    calm = [100.0 + 0.01 * (i % 3) for i in range(20)]

    def verdict(percent: float) -> str:
        row = Delta("hot", Value.of(calm), Value.of([x * (1 + percent / 100) for x in calm]), unit="ns/run")
        return settled(judge(Table("t", (row,)), options=Options(better="lower")).rows[0]).verdict

    assert [verdict(p) for p in (0.2, -0.2, 1.0, -1.0)] == ["no difference", "no difference", "worse", "better"]


def test_no_compiler_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(ToolError, match="no C compiler: install gcc or clang"):
        find_compiler()


def test_a_compile_failure_shows_the_first_error_line(compiler: str) -> None:
    with pytest.raises(ToolError, match=r"did not compile: measure\.c:1:.*error") as caught, compiled("int main( {}\n"):
        pass
    assert "\n" not in str(caught.value)


def _gone(marker: str) -> bool:
    """Whether no process has `marker` in its command line."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if marker in (entry / "cmdline").read_text(errors="replace"):
                    return False
            except OSError:
                continue
    return True


def test_a_hanging_program_is_stopped_and_nothing_is_left(tmp_path: Path) -> None:
    script = tmp_path / "hang-for-ever"
    script.write_text("#!/bin/sh\nsleep 1000 & sleep 1000\n")
    script.chmod(0o755)
    start = time.monotonic()
    with pytest.raises(ToolError, match="did not end within 1 s and was stopped"):
        run(script, ["mark-of-a-hang"], 1.0)
    assert time.monotonic() - start < 10
    assert _gone("mark-of-a-hang")


def test_a_program_that_writes_something_else_is_named(tmp_path: Path) -> None:
    script = tmp_path / "odd"
    script.write_text("#!/bin/sh\necho hello\n")
    script.chmod(0o755)
    with pytest.raises(ToolError, match="no reading: 'hello'"):
        run(script, [], 5.0)


def test_a_phase_at_which_no_object_starts_is_refused() -> None:
    with pytest.raises(DataError, match="aligned to 8;"):
        measure(make_layout("a:8"), None, simple(), topology=two_cpus(), phase=3)


def test_a_killed_program_says_so(tmp_path: Path) -> None:
    script = tmp_path / "dies"
    script.write_text("#!/bin/sh\nkill -9 $$\n")
    script.chmod(0o755)
    with pytest.raises(ToolError, match="killed by signal 9"):
        run(script, [], 5.0)


def test_the_program_ends_itself_at_its_own_limit(compiler: str) -> None:
    plan = make_plan(simple(), make_layout("a:8"))
    given = arguments(
        cpus=[min(os.sched_getaffinity(0))], shared=False, samples=10**6, sample_ms=100, work_ns=0.0, objects=1,
        limit_s=1, seed=1, layouts=[(64, 0, (0,))],
    )  # fmt: skip
    with compiled(program_text(plan.program)) as program, pytest.raises(ToolError, match="did not end within"):
        run(program, given, 30.0)


def test_the_folder_is_removed(compiler: str) -> None:
    with compiled("int main(void) { return 0; }\n") as program:
        folder = program.parent
        assert program.exists()
    assert not folder.exists()


def test_atomics_that_would_straddle_by_phase_or_spacing_are_refused() -> None:
    layout = make_layout("a:8 b:8 c:1", packed=True)
    profile = Profile("t", "s", (CodePath("p", 1.0, (Access("a", "add"),)),), Workload(2, 1, 0.0), slab_align=1)
    with pytest.raises(PlacementError, match="objects every 17 bytes from byte 0 on leave a across 8-byte boundaries"):
        measure(layout, None, profile)
    with pytest.raises(PlacementError, match="from byte 60 on"):
        measure(make_layout("a:8 b:8", packed=True), None, profile, phase=60)
    with pytest.raises(DataError, match="slab_align = 1073741824 puts an object every"):
        measure(make_layout("a:8"), None, replace(profile, slab_align=1 << 30))
