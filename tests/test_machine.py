"""Machine profiles: sources, doubts, refusals, and writing one out."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from kitlib.cost import latency_ns, move_ns
from kitlib.errors import DataError, NotFound
from kitlib.machine import KINDS, Number, load_machine, machine_from, machine_text, shipped

GOOD = {
    "format": "kitlib-machine",
    "version": 1,
    "numbers": {"dirty_near_ns": {"value": 50.0, "certainty": "published", "source": "a table"}},
}


@pytest.mark.parametrize("name", sorted(shipped()))
def test_every_shipped_number_has_a_source(name: str) -> None:
    machine = load_machine(name)
    assert set(machine.numbers) == set(KINDS)
    for key, number in machine.numbers.items():
        assert number.source or number.certainty == "assumed", key
        assert number.low <= number.value <= number.high, key


def test_parts_without_figures_say_nearest_known() -> None:
    for name in ("xeon-6248", "platinum-9242", "sapphire-rapids"):
        assert load_machine(name).numbers["dirty_near_ns"].certainty == "nearest known"


def test_kunpeng_moves_pairs_as_one() -> None:
    machine = load_machine("kunpeng-920")
    assert (machine.grain_bytes, machine["pair_weight"]) == (128, 1.0)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"numbers": {"dirty_nearns": {"value": 1, "certainty": "assumed"}}}, "not known; did you mean dirty_near_ns"),
        ({"numbers": {"dirty_near_ns": {"value": -1, "certainty": "assumed"}}}, "outside"),
        ({"numbers": {"dirty_near_ns": {"value": "x", "certainty": "assumed"}}}, "is no number"),
        ({"numbers": {"dirty_near_ns": {"value": 1, "certainty": "sure"}}}, "certainty must be one of"),
        ({"numbers": {"dirty_near_ns": {"certainty": "assumed"}}}, "value is missing"),
        ({"numbers": {}}, "dirty_near_ns"),
        ({"group_cpus": 0}, "1 or more"),
        ({"line_bytes": 65}, "no cache line size"),
        ({"grup_cpus": 3}, "did you mean group_cpus"),
        ({"version": 9}, "version = 1"),
    ],
)
def test_a_wrong_machine_is_refused(change: dict[str, object], says: str) -> None:
    with pytest.raises(DataError, match=r"m.toml|machine m") as caught:
        machine_from({**GOOD, **change}, "m", "m.toml")
    assert says in str(caught.value)


def test_an_unknown_machine_names_near_ones() -> None:
    with pytest.raises(NotFound, match="did you mean kunpeng-920"):
        load_machine("kunpeng-92")


def test_text_reads_back() -> None:
    machine = load_machine("rome")
    again = machine_from(tomllib.loads(machine_text(machine)), "rome", "rome.toml")
    assert again == machine


def test_a_move_is_near_within_a_group_and_mostly_far_on_a_large_machine() -> None:
    machine = load_machine("zen-3-7r13")
    assert move_ns(machine, [2, 16]).tolist() == [23.0, 23.0]
    assert 90 < float(move_ns(machine, 192)) < 107
    assert (move_ns(machine, [32, 64, 128]) == sorted(move_ns(machine, [32, 64, 128]))).all()


def test_latency_grows_with_the_working_set() -> None:
    machine = load_machine("rome")
    found = latency_ns(machine, [1000, 200_000, 4_000_000, 1 << 34]).tolist()
    assert found == sorted(found)
    assert found[0] == 0
    assert found[-1] == pytest.approx(machine["dram_ns"], rel=0.01)


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("low = 3.0, high = 2.0", "not between its low and high"),
        ("low = 5.0", "not between its low and high"),
        ("high = 1.0", "not between its low and high"),
    ],
)
def test_a_range_holds_its_value(tmp_path: Path, entry: str, says: str) -> None:
    file = tmp_path / "m.toml"
    file.write_text(
        'format = "kitlib-machine"\nversion = 1\n[numbers]\ndirty_near_ns = '
        f'{{ value = 4.0, certainty = "assumed", {entry} }}\n'
    )
    with pytest.raises(DataError, match=says):
        load_machine(str(file))


def test_one_end_of_a_range_may_be_left_out() -> None:
    assert (Number(4.0, "assumed", low=1.0).low, Number(4.0, "assumed", low=1.0).high) == (1.0, 6.0)
    assert (Number(4.0, "assumed", high=9.0).low, Number(4.0, "assumed", high=9.0).high) == (2.0, 9.0)


def test_an_endless_integer_is_one_clear_line(tmp_path: Path) -> None:
    for digits in (30, 400, 5000):
        file = tmp_path / "m.toml"
        file.write_text(
            'format = "kitlib-machine"\nversion = 1\n[numbers]\n'
            f'dirty_near_ns = {{ value = {"9" * digits}, certainty = "assumed" }}\n'
        )
        with pytest.raises(DataError, match=r"too large|not TOML"):
            load_machine(str(file))
