"""The commands of ./tidegate, once its environment stands."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from scheduler_site import service

# Commands that look at what a service keeps, or change it: where none has ever kept anything they can only mislead.
OF_A_SERVICE = frozenset({"cancel_all", "cancel_demo", "health", "knob", "login_link", "pin", "workload"})


def main(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    # These hand everything that follows to another program, so argparse must not look at it.
    if arguments[:1] == ["manage"]:
        return _manage(arguments[1:])
    if arguments[:1] == ["shots"]:
        return _pass_on("-m", "tests.shots", *arguments[1:])
    if arguments[:1] == ["screens"]:
        return _pass_on("-m", "tests.screens", *arguments[1:])
    if arguments[:1] in (["test"], ["lint"]):
        from scheduler_site import testing

        return testing.main(arguments[0], arguments[1:])
    options = _parser().parse_args(arguments)
    if options.command == "doctor":
        os.environ["TIDEGATE_DATA"] = str(options.data)
        return _pass_on("manage.py", "doctor")
    if options.command == "units":
        return _units(options)
    if options.command == "down":
        return service.down(options.data, cancel=options.cancel)
    return service.up(
        service.Options(
            role=options.command,
            data=options.data,
            host=getattr(options, "host", "127.0.0.1"),
            port=getattr(options, "port", service.DEFAULT_PORT),
            broker=getattr(options, "broker", ""),
            simulate=getattr(options, "simulate", ""),
            demo=getattr(options, "demo", False),
        )
    )


def _manage(arguments: list[str]) -> int:
    """Hand over to Django, with the data directory that `--data` names; refuse where the one meant is empty."""
    parser = argparse.ArgumentParser(prog="tidegate manage", add_help=False, allow_abbrev=False)
    parser.add_argument("--data", type=_absolute, default=None)
    options, rest = parser.parse_known_args(arguments)
    if options.data is not None:
        os.environ["TIDEGATE_DATA"] = str(options.data)
    data = Path(os.environ.get("TIDEGATE_DATA") or service.REPOSITORY / "var")
    kept = os.environ.get("TIDEGATE_DATABASE_URL") or (data / "tidegate.sqlite3").exists()
    if rest and rest[0] in OF_A_SERVICE and not kept and not {"-h", "--help"} & set(rest):
        print(
            f"No service has kept anything in {data}. Say where with --data DIR or TIDEGATE_DATA, as it was said to "
            "./tidegate up, or start it first.",
            file=sys.stderr,
        )
        return 2
    return _pass_on("manage.py", *rest)


def _units(options: argparse.Namespace) -> int:
    """Print the systemd unit of a service as these options would run it."""
    from scheduler_site import units

    wanted = units.Wanted(
        program=service.REPOSITORY / "tidegate",
        data=options.data,
        host=options.host,
        port=options.port,
        account=options.account or units.account(),
        user_manager=options.user,
        systemd=units.systemd_version(),
    )
    if options.scopes and wanted.account == "root":
        print("A service of root's makes its scopes itself; say for which account with --account.", file=sys.stderr)
        return 2
    print(units.scopes_unit(wanted) if options.scopes else units.unit(wanted), end="")
    return 0


def _parser() -> argparse.ArgumentParser:
    data = argparse.ArgumentParser(add_help=False)
    default = Path(os.environ.get("TIDEGATE_DATA") or service.REPOSITORY / "var")
    data.add_argument("--data", type=_absolute, default=default, help="where everything is kept (%(default)s)")
    pages = argparse.ArgumentParser(add_help=False)
    pages.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    pages.add_argument("--port", type=int, default=service.DEFAULT_PORT, help="port (%(default)s); 0: a free one")
    parser = argparse.ArgumentParser(
        prog="tidegate",
        description="Starts GPU jobs when measured memory leaves room.",
        epilog="Also: test [--all] [pytest arguments], lint, shots, screens, manage [--data DIR] COMMAND.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    up = commands.add_parser("up", parents=[data, pages], help="run everything on this machine")
    up.add_argument("--broker", choices=["redis", "files"], default="", help="default: redis where installed")
    up.add_argument("--simulate", default="", metavar="SPEC", help="add devices that do not exist: 2x24GiB,1x80GiB")
    up.add_argument("--demo", action="store_true", help="add example workloads and submit some jobs")
    commands.add_parser("worker", parents=[data], help="run one node of a larger service, without pages")
    commands.add_parser("web", parents=[data, pages], help="run the pages of a larger service alone")
    down = commands.add_parser("down", parents=[data], help="stop the service; jobs go on")
    down.add_argument("--cancel", action="store_true", help="cancel all jobs, too")
    units = commands.add_parser("units", parents=[data, pages], help="print a systemd unit whose restart ends no job")
    units.add_argument("--user", action="store_true", help="for the account's own systemd (systemctl --user)")
    units.add_argument(
        "--scopes", action="store_true", help="the unit by which root makes scopes for the jobs of another account"
    )
    units.add_argument("--account", default="", help="the account that the service runs as; default: yours")
    commands.add_parser("doctor", parents=[data], help="say what works on this machine and what does not")
    return parser


def _absolute(text: str) -> Path:
    return Path(text).expanduser().absolute()


def _pass_on(*arguments: str) -> int:
    return subprocess.run([sys.executable, *arguments], cwd=service.REPOSITORY, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
