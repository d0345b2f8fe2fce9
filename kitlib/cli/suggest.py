"""``suggest``: a better member order by the cost model."""

from __future__ import annotations

from pathlib import Path

import click

from kitlib.cli.common import emit, format_option


@click.command()
@click.argument("source")
@click.argument("struct")
@click.option("--profile", "profile_name", help="Access profile: a TOML file or a shipped name.")
@click.option("--machine", "machine_name", default="zen-5-vm", show_default=True, help="A machine profile.")
@click.option("--cpus", type=click.IntRange(1, 4096), help="CPUs that share an object (default: the profile's).")
@click.option("--shared", type=click.FloatRange(0, 1), help="Share of path runs on shared objects.")
@click.option("--cold", type=click.FloatRange(0, 1), help="Share of the other runs whose object is cold.")
@click.option("--grow", type=click.IntRange(0, 4096), default=0, show_default=True, help="Bytes the struct may grow.")
@click.option("--save", type=click.Path(dir_okay=False), help="Write the edits as a scenario file.")
@format_option()
def suggest(
    source: str,
    struct: str,
    profile_name: str | None,
    machine_name: str,
    cpus: int | None,
    shared: float | None,
    cold: float | None,
    grow: int,
    save: str | None,
    fmt: str,
) -> None:
    """Suggest moves of members that make STRUCT of SOURCE cheaper by the cost model (not a measurement)."""
    from kitlib.access import profile_for
    from kitlib.costtext import suggestion_record, suggestion_text
    from kitlib.files import write_whole
    from kitlib.machine import load_machine
    from kitlib.scenario import Scenario
    from kitlib.sources import open_source
    from kitlib.suggest import suggest as search

    layout = open_source(source).struct(struct)
    given = {"cpus": cpus, "shared": shared, "cold": cold}
    profile = profile_for(layout, profile_name).with_workload(**{k: v for k, v in given.items() if v is not None})
    found = search(layout, profile, load_machine(machine_name), grow_bytes=grow)
    if save:
        scenario = Scenario(layout, tuple(step.edit for step in found.steps))
        write_whole(Path(save), scenario.to_json())
    record = {"kind": "model", "layout": layout.title, "profile": profile.name, "machine": machine_name}
    emit(record | suggestion_record(found), lambda: suggestion_text(found, layout, profile, machine_name), fmt)
