"""``cost`` (the model) and ``measure`` (this machine)."""

from __future__ import annotations

import click

from kitlib.cli.after import after_layout
from kitlib.cli.common import emit, format_option
from kitlib.errors import NotFound


def _machine_option(command: click.decorators.FC) -> click.decorators.FC:
    return click.option(
        "--machine",
        "machine_name",
        default="zen-5-vm",
        show_default=True,
        help="A machine profile: a TOML file, a shipped name or 'this' (measured now, about ten seconds).",
    )(command)


@click.command()
@click.argument("source")
@click.argument("struct")
@click.option("--profile", "profile_name", help="Access profile: a TOML file or a shipped name.")
@_machine_option
@click.option("--after", help="A scenario file, or another SOURCE with that struct.")
@click.option("--cpus", type=click.IntRange(1, 4096), help="CPUs that share an object (default: the profile's).")
@click.option("--work-ns", type=click.FloatRange(0, 1e9), help="Other work between two path runs.")
@click.option("--shared", type=click.FloatRange(0, 1), help="Share of path runs on shared objects.")
@click.option("--cold", type=click.FloatRange(0, 1), help="Share of the other runs whose object is cold.")
@click.option("--phase", type=click.IntRange(0, 255), default=0, help="Byte within a line at which the object starts.")
@format_option()
def cost(
    source: str,
    struct: str,
    profile_name: str | None,
    machine_name: str,
    after: str | None,
    cpus: int | None,
    work_ns: float | None,
    shared: float | None,
    cold: float | None,
    phase: int,
    fmt: str,
) -> None:
    """Predict what STRUCT of SOURCE costs by code path: hot, cold and shared (a model).

    With --after also what the change is worth, from which share of shared objects on it pays, and which
    assumed numbers that hangs on.
    """
    from kitlib.access import profile_for
    from kitlib.cost import cost as predict
    from kitlib.costtext import cost_record, cost_text
    from kitlib.published import published_rows
    from kitlib.sources import open_source
    from kitlib.tradeoff import conclusion, sensitivity, trade_off

    layout = open_source(source).struct(struct)
    other = after_layout(after, struct, layout)
    profile = profile_for(layout, profile_name)
    given = {"cpus": cpus, "work_ns": work_ns, "shared": shared, "cold": cold}
    profile = profile.with_workload(**{k: v for k, v in given.items() if v is not None})
    machine = _machine(machine_name)
    first = predict(layout, profile, machine, phase=phase)
    second = predict(other, profile, machine, phase=phase) if other else None
    result = trade_off(layout, other, profile, machine) if other else None
    doubts = sensitivity(layout, other, profile, machine) if other else ()
    words = conclusion(result, doubts, machine) if result else ""
    published = published_rows(layout, other) if other and (source, after) == ("file-5.8", "file-5.8-patch") else ()
    emit(
        cost_record(first, second, profile, machine, result, doubts, words, published),
        lambda: cost_text(first, second, profile, machine, doubts, words, published),
        fmt,
    )


def _machine(name: str):  # type: ignore[no-untyped-def]
    from kitlib.machine import load_machine

    if name != "this":
        return load_machine(name)
    from kitlib.calibrate import calibrate

    found = calibrate(tick=lambda what: click.echo(f"measuring this machine: {what}", err=True))
    for note in found.notes:
        click.echo(f"note: {note}", err=True)
    return found.machine


@click.command()
@click.argument("source")
@click.argument("struct")
@click.option("--profile", "profile_name", help="Access profile: a TOML file or a shipped name.")
@click.option("--path", "path_name", help="Measure one path of the profile alone.")
@click.option("--after", help="A scenario file, or another SOURCE with that struct.")
@click.option("--quick", is_flag=True, help="At most ten seconds instead of sixty.")
@click.option(
    "--mode",
    "modes",
    multiple=True,
    type=click.Choice(["shared", "unshared-hot", "unshared-cold"]),
    help="Only this mode (may be given more than once).",
)
@click.option("--work-ns", type=click.FloatRange(0, 1e6), help="Other work between two path runs while sharing.")
@click.option("--phase", type=click.IntRange(0, 255), default=0, help="Byte within a line at which objects start.")
@format_option()
def measure(
    source: str,
    struct: str,
    profile_name: str | None,
    path_name: str | None,
    after: str | None,
    quick: bool,
    modes: tuple[str, ...],
    work_ns: float | None,
    phase: int,
    fmt: str,
) -> None:
    """Measure what STRUCT of SOURCE costs on this machine, before and after interleaved.

    A small C program with the members at their true offsets is compiled and run: on one object shared by
    several CPUs, on an object in the cache, and on more objects than any cache holds.
    """
    from kitlib.access import profile_for
    from kitlib.costtext import measure_text
    from kitlib.measure import DEFAULT, MODES, QUICK
    from kitlib.measure import measure as run
    from kitlib.measurefile import measurement_record
    from kitlib.sources import open_source

    layout = open_source(source).struct(struct)
    other = after_layout(after, struct, layout)
    profile = profile_for(layout, profile_name)
    if path_name is not None:
        profile = profile.only(path_name)
    if work_ns is not None:
        profile = profile.with_workload(work_ns=work_ns)
    wanted = tuple(m for m in MODES if not modes or m in modes)
    with _Bar(fmt == "text") as bar:
        done = run(layout, other, profile, effort=QUICK if quick else DEFAULT, modes=wanted, phase=phase, tick=bar.tick)
    if not done.results:
        raise NotFound("; ".join(f"{r.mode} cannot be measured here: {r.reason}" for r in done.refused))
    emit(measurement_record(done), lambda: measure_text(done, compared=other is not None), fmt)


class _Bar:
    """A progress bar on stderr, where stderr is a terminal."""

    def __init__(self, wanted: bool) -> None:
        from rich.console import Console
        from rich.progress import Progress

        console = Console(stderr=True)
        self.progress = Progress(console=console, transient=True, disable=not (wanted and console.is_terminal))
        self.tasks: dict[str, int] = {}

    def __enter__(self) -> _Bar:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def tick(self, label: str, done: int, total: int) -> None:
        from rich.progress import TaskID

        if label not in self.tasks:
            self.tasks[label] = int(self.progress.add_task(label, total=total))
        self.progress.update(TaskID(self.tasks[label]), completed=done)
