"""The command line: each command is loaded when it is called, so that a quick one stays quick."""

from __future__ import annotations

import sys
from importlib import import_module

import click

from kitlib import __version__
from kitlib.errors import KitError

COMMANDS: dict[str, tuple[str, str]] = {
    "list": ("kitlib.cli.layout:list_", "List the structs of a source."),
    "show": ("kitlib.cli.layout:show", "Show one struct on its cache lines."),
    "edit": ("kitlib.cli.layout:edit", "Move, align, insert or remove members; show what changes."),
    "diff": ("kitlib.cli.checks:diff", "Compare the layouts of two sources."),
    "bench": ("kitlib.cli.bench:bench", "Read benchmark text of any known kind."),
    "compare": ("kitlib.cli.bench:compare", "Compare two sets of samples."),
    "cost": ("kitlib.cli.cost:cost", "Predict what a layout costs (a model)."),
    "measure": ("kitlib.cli.cost:measure", "Measure what a layout costs on this machine."),
    "scan": ("kitlib.cli.checks:scan", "Find locks and atomics that share a line."),
    "check": ("kitlib.cli.checks:check", "Check layout rules; exit 1 if one is broken."),
    "guard": ("kitlib.cli.checks:guard", "Write rules or C assertions from a layout."),
    "randomize": ("kitlib.cli.randomize:randomize", "Ask what randomised layouts do to a pair of members."),
    "suggest": ("kitlib.cli.suggest:suggest", "Suggest a better member order."),
    "review": ("kitlib.cli.review:review", "Answer a reviewer's questions about a change of layout."),
    "report": ("kitlib.cli.pages:report", "Render notebooks to pages that work offline."),
    "lab": ("kitlib.cli.pages:lab", "Open the notebooks in JupyterLab."),
}


class LazyGroup(click.Group):
    """A click group that imports a command's module only to run it or to show its help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kitlib")
def cli() -> None:
    """Struct layouts on their cache lines: move a member, see what it costs and what was measured.

    SOURCE is an ELF file with DWARF or BTF, raw BTF, a vmlinuz, pahole text, a C file, a layout JSON,
    'running' (this kernel) or a shipped name such as file-5.8. Exit status: 0 fine, 1 a finding or a
    failed check, 2 bad input.
    """


def main() -> None:
    """Run the command line; a `KitError` becomes one line on stderr and exit status 2."""
    try:
        cli(standalone_mode=False)
    except KitError as error:
        _fail(str(error))
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(2)
    except click.ClickException as error:
        _fail(error.format_message())
    except (click.Abort, KeyboardInterrupt):
        _fail("interrupted", 130)


def _fail(message: str, status: int = 2) -> None:
    from kitlib.text import printable  # names from files are in messages, and may hold a terminal's control codes

    click.echo(f"kitlib: {printable(' '.join(message.split()))}", err=True)
    sys.exit(status)
