"""The closed form: golden rows, limits where the answer is known, and what moving a member must do."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kitlib import contention
from kitlib.access import Access, Path, Profile, Workload, load_profile
from kitlib.cost import Model, cost
from kitlib.errors import NotFound
from kitlib.machine import Machine, load_machine
from kitlib.model import Layout
from kitlib.shorthand import make_layout
from kitlib.sources import open_source
from kitlib.traffic import traffic

MACHINE = load_machine("zen-5-vm")


def profile(*paths: tuple[tuple[str, str], ...], cpus: int = 2, work_ns: float = 60.0) -> Profile:
    made = tuple(Path(f"p{i}", 1.0, tuple(Access(m, op) for m, op in p)) for i, p in enumerate(paths))  # type: ignore[arg-type]
    return Profile("test", "s", made, Workload(cpus, 1, work_ns), slab_align=64)


def at(**offsets: int) -> Layout:
    """Words of 8 bytes at given offsets."""
    words, end = [], 0
    for name, offset in sorted(offsets.items(), key=lambda item: item[1]):
        if offset > end:
            words.append(f"gap{end}:{offset - end}")
        words.append(f"{name}:8")
        end = offset + 8
    return make_layout(" ".join(words))


def test_lines_of_struct_file_before_and_after() -> None:
    """FACTS: fget needs lines 0 and 1 before the patch, lines 0 and 3 with it."""
    fget = load_profile("struct_file").only("fget")
    before, after = (traffic(open_source(s).struct("file"), fget) for s in ("file-5.8", "file-5.8-patch"))
    assert before.reach[0].lines == after.reach[0].lines == 2
    assert (before.reach[0].pairs, after.reach[0].pairs) == (1, 2)
    assert before.contended == (0,)
    assert after.contended == (3,)


def test_one_cpu_waits_for_nobody() -> None:
    model = Model(at(a=0, b=8), profile((("b", "read"), ("a", "cmpxchg"))), MACHINE)
    assert float(model.shared(1, 60.0).ns) == pytest.approx(MACHINE["run_ns"] + MACHINE["atomic_ns"])


def test_two_cpus_that_only_read_wait_for_nobody() -> None:
    model = Model(at(a=0), profile((("a", "read"),)), MACHINE)
    found = model.shared([1, 2, 64], 10.0)
    assert found.ns.tolist() == [MACHINE["run_ns"]] * 3
    assert found.moves.tolist() == [0, 0, 0]


def test_a_writer_that_is_never_fast_enough_to_repeat_moves_the_line_every_time() -> None:
    found = Model(at(a=0), profile((("a", "add"),)), MACHINE).shared(2, 500.0)
    assert float(found.moves) == pytest.approx(1.0, abs=0.05)
    wait = float(found.ns) - MACHINE["run_ns"] - MACHINE["atomic_ns"]
    assert wait == pytest.approx(MACHINE["dirty_near_ns"], rel=0.1)


def test_many_cpus_are_limited_by_the_line() -> None:
    """With N CPUs and one move a run the line serves a run every move: N moves a run and CPU."""
    machine = MACHINE.with_values(dirty_near_ns=50, dirty_far_ns=50)
    found = Model(at(a=0), profile((("a", "add"),)), machine).shared(64, 60.0)
    assert float(found.busy) > 0.98
    assert float(found.ns) + 60 == pytest.approx(64 * 50, rel=0.03)


def test_a_reader_next_to_a_writer_pays_and_a_reader_apart_does_not() -> None:
    both = profile((("a", "add"),), (("b", "read"),))
    costs = [Model(layout, both, MACHINE).shared(2, 60.0).path_ns[1] for layout in (at(a=0, b=8), at(a=0, b=64))]
    assert costs[1] == pytest.approx(MACHINE["run_ns"])
    assert costs[0] > costs[1] + 3


def test_pairs_count_only_where_the_machine_has_them() -> None:
    both = profile((("a", "add"),), (("b", "read"),))
    pair, apart = at(a=0, b=64), at(a=0, b=128)
    one = [float(Model(x, both, MACHINE, pair_weight=0.0).shared(2, 60.0).ns) for x in (pair, apart)]
    two = [float(Model(x, both, MACHINE, pair_weight=1.0).shared(2, 60.0).ns) for x in (pair, apart)]
    assert one[0] == pytest.approx(one[1])
    assert two[0] > two[1]
    assert two[1] == pytest.approx(one[1])


def test_cold_counts_lines_and_overlaps_them() -> None:
    both = profile((("a", "read"), ("b", "read")))
    one, two = (float(Model(x, both, MACHINE).cold()[0]) for x in (at(a=0, b=8), at(a=0, b=128)))
    latency = MACHINE["dram_ns"]
    assert one == pytest.approx(MACHINE["run_ns"] + latency)
    assert one < two < one + latency
    assert two - one == pytest.approx(latency * MACHINE["overlap"] / 2)


def test_objects_that_are_not_a_multiple_of_a_line_are_averaged_over_their_phases() -> None:
    layout = make_layout("a:8 x:32 b:8 y:24")  # 72 bytes: a and b share a line in some objects only
    spread = Profile("p", "s", profile((("a", "read"), ("b", "read"))).paths, Workload(), slab_align=8)
    lines = traffic(layout, spread).reach[0].lines
    assert 1 < lines < 2


def test_a_working_set_that_fits_costs_what_its_cache_costs() -> None:
    model = Model(at(a=0), profile((("a", "read"),)), MACHINE)
    small, large = model.at_working_set([10, 10_000_000])
    assert small == pytest.approx(MACHINE["run_ns"])
    assert large == pytest.approx(MACHINE["run_ns"] + MACHINE["dram_ns"], rel=0.06)


def test_retries_only_for_compare_exchange() -> None:
    layout = at(a=0)
    loop, add = profile((("a", "cmpxchg"),)), profile((("a", "add"),))
    found = Model(layout, loop, MACHINE).shared([1, 2, 32], 20.0).retries
    assert found[0] == 0
    assert found[1] == 0  # measured: a few percent at most
    assert 0.5 < found[2] < 1
    slow, fast = (float(Model(layout, p, MACHINE).shared(32, 20.0).ns) for p in (loop, add))
    assert slow > 1.5 * fast
    assert not Model(layout, add, MACHINE).shared([1, 2, 32], 20.0).retries.any()


def test_a_sweep_equals_its_single_points() -> None:
    layout = open_source("file-5.8").struct("file")
    model = Model(layout, load_profile("struct_file"), load_machine("rome"))
    cpus, work = [2, 8, 64], [10.0, 50.0, 200.0]
    grid = model.shared(np.asarray(cpus)[:, None], np.asarray(work)).ns
    for i, n in enumerate(cpus):
        for j, w in enumerate(work):
            assert grid[i, j] == pytest.approx(float(model.shared(n, w).ns), rel=1e-3)


def test_a_missing_member_is_an_error() -> None:
    with pytest.raises(NotFound, match=r"path fget: no member .f_mode."):
        cost(make_layout("f_cont:8", "file"), load_profile("struct_file"), MACHINE)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=4, max_size=4), st.integers(2, 64), st.floats(0, 500))
def test_costs_are_finite_and_never_below_hot(lines: list[int], cpus: int, work: float) -> None:
    layout = at(**{name: 64 * line + 8 * i for i, (name, line) in enumerate(zip("abcd", lines, strict=True))})
    mix = profile((("b", "read"), ("a", "cmpxchg")), (("c", "read"),), (("d", "read"), ("d", "write")))
    model = Model(layout, mix, MACHINE)
    found = model.shared(cpus, work)
    assert np.isfinite(found.path_ns).all()
    assert (found.path_ns >= model.hot() - 1e-9).all()
    assert 0 <= float(found.busy) <= 1
    assert (model.cold() > model.hot()).all()


def test_one_step_of_the_explorer_is_quick_enough_to_drag() -> None:
    """The explorer asks for two layouts a step; the limit is 50 ms, and this is far from it on any machine."""
    layout, mix = open_source("file-5.8").struct("file"), load_profile("struct_file")
    cost(layout, mix, MACHINE)
    best = min(_seconds(layout, mix, MACHINE) for _ in range(5))
    assert best < 0.5


def _seconds(layout: Layout, mix: Profile, machine: Machine) -> float:
    start = time.perf_counter()
    cost(layout, mix, machine)
    return time.perf_counter() - start


def waits(layout: Layout, *paths: tuple[tuple[str, str], ...], cpus: int = 2, work_ns: float = 100.0) -> float:
    return Model(layout, profile(*paths, cpus=cpus, work_ns=work_ns), MACHINE).waiting_ns(cpus, work_ns)


WRITE_A, WRITE_B, READ_A, READ_B, ADD_A = (
    ((member, op),) for op, member in (("write", "a"), ("write", "b"), ("read", "a"), ("read", "b"), ("add", "a"))
)
BESIDE, APART = at(a=0, b=8), at(a=0, b=128)


def test_a_lone_store_is_hidden_and_its_line_is_not() -> None:
    """Measured (benchmarks/measure_patterns.py): a lone store adds nothing; whoever reads its line waits."""
    assert waits(BESIDE, WRITE_A) == pytest.approx(0, abs=0.1)
    assert waits(APART, WRITE_A, READ_B) == pytest.approx(0, abs=0.1)
    assert waits(BESIDE, WRITE_A, READ_B) > 4
    assert waits(BESIDE, (*WRITE_A, *READ_B)) > 10  # in one run: the read needs the line that the store asked for
    assert waits(APART, (*WRITE_A, *READ_B)) == pytest.approx(0, abs=0.1)
    assert waits(APART, (*WRITE_A, *WRITE_B)) == pytest.approx(0, abs=0.1)


def test_a_read_beside_a_store_waits_with_many_cpus_too() -> None:
    two, eight, many = (waits(BESIDE, WRITE_A, READ_B, cpus=n) for n in (2, 8, 64))
    assert two < eight < many


def test_a_line_that_stays_here_is_written_again_for_nothing() -> None:
    """A read between two atomics of the same CPU leaves the line its own: only what others do takes it away."""
    alone = Model(at(a=0), profile(ADD_A, READ_A, ADD_A), MACHINE).shared(1, 60.0)
    assert float(alone.moves) == 0
    often = Model(at(a=0), profile(ADD_A, READ_A, ADD_A), MACHINE).shared(2, 0.0)
    assert float(often.moves) < 1


def test_migratory_reads_save_the_writer_that_follows_and_cost_the_reader_elsewhere() -> None:
    paths = (READ_A, ADD_A)
    plain, migratory = (
        float(Model(at(a=0), profile(*paths), MACHINE.with_values(migratory=share)).shared(2, 60.0).moves)
        for share in (0.0, 1.0)
    )
    assert plain != pytest.approx(migratory, rel=0.02)


@given(st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_the_fixed_point_is_found(seed: int) -> None:
    """Whatever the profile: no wait is negative, and more rounds give the same."""
    dice = np.random.default_rng(seed)
    names = "abcd"[: dice.integers(1, 5)]
    layout = at(**{name: 8 * int(place) for name, place in zip(names, dice.permutation(24), strict=False)})
    ops = ["read", "write", "add", "cmpxchg"]
    paths = tuple(
        tuple((names[dice.integers(len(names))], ops[dice.integers(4)]) for _ in range(dice.integers(1, 4)))
        for _ in range(dice.integers(1, 4))
    )
    model = Model(layout, profile(*paths), load_machine("cascade-lake-8269cy" if seed % 2 else "zen-5-vm"))
    cpus, work = [2, 8, 64][dice.integers(3)], [0.0, 60.0, 500.0][dice.integers(3)]
    first = float(model.shared(cpus, work).ns)
    assert first >= float(model.hot().mean()) * 0.99
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kitlib.contention.ROUNDS", contention.ROUNDS + 37)
        assert float(model.shared(cpus, work).ns) == pytest.approx(first, rel=5e-3)


def test_reads_take_effect_in_order() -> None:
    """A line that is read again behind one that has to be waited for can be gone by then (as measured on struct file:
    f_mapping beside f_count costs more behind f_pos than f_op in front of it)."""
    machine = MACHINE.with_values(dirty_near_ns=110.0)
    writers = (ADD_A, (("b", "add"),))

    def cost_of(*members: str) -> float:
        run = profile(tuple((m, "read") for m in members), *writers)
        return float(Model(APART, run, machine).shared(2, 60.0).path_ns[0])

    assert cost_of("a", "b", "a") > cost_of("a", "b") + 1
