"""`up`, `worker`, `web` and `down`: from options to a supervised service and back."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from scheduler_site import naming, roster
from scheduler_site.children import Program
from scheduler_site.supervisor import CycleWatch, NotReady, Supervisor, write_json
from scheduler_site.uplock import Holder, UpLock

REPOSITORY = Path(__file__).resolve().parent.parent
DEFAULT_PORT = 8470

# Exit codes, named so that scripts can rely on them.
FAILED, REFUSED, ALREADY_UP = 1, 2, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the person typed. role: up (everything), worker (one node without pages), web (pages alone)."""

    role: str = "up"
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    data: Path = REPOSITORY / "var"
    broker: str = ""  # "redis", "files", or "" to take what is there
    simulate: str = ""
    demo: bool = False


class Refusal(RuntimeError):
    """Something that only the person can change; the text is one sentence."""


def up(options: Options) -> int:
    """Run the service until SIGINT or SIGTERM; return the process's exit code."""
    lock = UpLock(options.data, options.role)
    try:
        options.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        free = lock.take()
    except OSError as error:
        _say(f"Cannot keep anything in {options.data} ({error.strerror}); choose another with --data.")
        return REFUSED
    if not free:
        holder = lock.holder()
        _say(holder.sentence() if holder else "Tidegate was just stopping on this data; try again.")
        return ALREADY_UP
    try:
        return _run(options, lock)
    except Refusal as refusal:
        _say(str(refusal))
        return REFUSED
    finally:
        lock.release()


def _run(options: Options, lock: UpLock) -> int:
    listener = _listen(options.host, options.port) if options.role in {"up", "web"} else None
    address = _address(options.host, listener) if listener else "(a node without pages)"
    holder = Holder(pid=os.getpid(), address=address, since=time.strftime("%Y-%m-%d %H:%M:%S"))
    lock.describe(holder)
    for folder in ("logs", "run"):
        (options.data / folder).mkdir(mode=0o700, exist_ok=True)
    environment = _environment(options)
    if listener is not None:
        environment.setdefault("TIDEGATE_URL", _from_here(options.host, listener))
    broker, environment, socket_folder = _broker(options, environment)
    cycle, pipe = _cycle_pipe(environment)
    node_name, renamed = naming.settled(options.data, environment)
    environment["TIDEGATE_NODE"] = node_name
    if renamed:
        _say(renamed)
    stages: list[list[Program]] = [[broker] if broker else []]
    if options.role in {"up", "worker"}:
        stages.append(roster.workers(options.data, node_name, environment, pipe))
        stages.append([roster.beat(options.data, environment)])
    if listener is not None:
        stages = [*stages[:-1], [*stages[-1], roster.web(options.data, listener, environment)]]

    def publish(children: dict[str, dict[str, int | None]]) -> None:
        record = {"pid": os.getpid(), "address": address, "since": holder.since, "children": children}
        write_json(options.data / f"{options.role}.json", record)

    supervisor = Supervisor(stages, cycle=cycle, on_change=publish)
    try:
        supervisor.listen()
        if options.role == "up" and _prepare(options, address, environment) != 0:
            return FAILED
        if options.role == "up":
            naming.keep(options.data, node_name)
        supervisor.start()
        if not supervisor.stopping:
            _say(f"Tidegate is up: {address} (Ctrl-C stops it; running jobs go on)")
        supervisor.run()
        code = 0
    except NotReady as error:
        _say(str(error))
        code = FAILED
    farewell = _farewell(options, environment) if options.role == "up" and code == 0 else None
    if farewell is not None and options.demo:
        # The loop must see the demonstration's jobs end, so it stays until they have.
        _wait(farewell)
    supervisor.stop()
    if farewell is not None:
        _last_words(_wait(farewell), options.data)
    (options.data / f"{options.role}.json").unlink(missing_ok=True)
    if socket_folder is not None and socket_folder.parent != options.data:
        shutil.rmtree(socket_folder, ignore_errors=True)
    return code


def down(data: Path, *, cancel: bool) -> int:
    """Stop the service of this data directory, its jobs too when asked; return the exit code."""
    environment = _environment(Options(data=data))
    lock = UpLock(data)
    holder = lock.holder()
    if holder is not None and holder.pid == 0:
        _say("Tidegate is only just starting on this data; try again in a moment.")
        return FAILED
    code = 0
    if cancel and (data / "secret.key").exists():
        code = subprocess.run(_errand("cancel-all"), env=environment, check=False).returncode
    if holder is None:
        _say(f"Tidegate does not run on {data}.")
        return code
    os.kill(holder.pid, signal.SIGTERM)
    deadline = time.monotonic() + 20
    while lock.holder() is not None:
        if time.monotonic() > deadline:
            _say(f"Process {holder.pid} did not stop within 20 s; look into {data / 'logs'}.")
            return FAILED
        time.sleep(0.05)
    _last_words(_wait(_farewell(Options(data=data), environment)), data)
    return code


def _environment(options: Options) -> dict[str, str]:
    """Return the environment of every process of the service."""
    environment = dict(os.environ)
    environment["DJANGO_SETTINGS_MODULE"] = "scheduler_site.settings"
    environment["TIDEGATE_DATA"] = str(options.data)
    environment["TIDEGATE_BIND"] = options.host
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")]))
    environment["PYTHONUNBUFFERED"] = "1"
    # Whatever directory we are called from, its files must not pass for our modules.
    environment["PYTHONSAFEPATH"] = "1"
    if options.simulate:
        environment["TIDEGATE_SIMULATE"] = options.simulate
    return environment


def _broker(options: Options, environment: dict[str, str]) -> tuple[Program | None, dict[str, str], Path | None]:
    """Return the broker to run (None: files, or one run elsewhere) and the environment that names it."""
    if environment.get("TIDEGATE_BROKER_URL") and not options.broker:
        return None, environment, None
    if options.role != "up":
        raise Refusal("Set TIDEGATE_BROKER_URL to the Redis server that all parts of this service share.")
    binary, finding = roster.usable_redis()
    if options.broker == "files" or (not options.broker and binary is None):
        return None, {**environment, "TIDEGATE_BROKER_URL": f"safefs://{options.data}/broker"}, None
    if binary is None:
        raise Refusal(f"--broker redis needs redis-server 6.2 or newer, but {finding}; try --broker files.")
    folder = roster.socket_folder(options.data)
    program = roster.redis(binary, folder, environment, options.data / "logs" / "broker.log")
    url = f"redis+socket://{folder}/redis.sock?virtual_host=0"
    return program, {**environment, "TIDEGATE_BROKER_URL": url}, folder


def _cycle_pipe(environment: Mapping[str, str]) -> tuple[CycleWatch | None, int | None]:
    """Return the two ends of the cycle's pipe; PostgreSQL ends a sleeping transaction by itself."""
    if environment.get("TIDEGATE_DATABASE_URL", "").startswith("postgres"):
        return None, None
    read_end, write_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    return CycleWatch(read_end), write_end


def _listen(host: str, port: int) -> socket.socket:
    if not host.strip():
        raise Refusal("--host is empty, which would mean every address of this machine; say 0.0.0.0 if you mean that.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise Refusal(f"Cannot listen on {host} port {port} ({why}); choose another with --port.") from error
    listener.listen(1024)  # who finds no place here, as when it restarts, tries again a second later
    return listener


def _address(host: str, listener: socket.socket) -> str:
    shown = socket.gethostname() if host in {"0.0.0.0", "::"} else f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}"


def _from_here(host: str, listener: socket.socket) -> str:
    """Return the address at which jobs on this machine reach the service."""
    near = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{f'[{near}]' if ':' in near else near}:{listener.getsockname()[1]}"


def _errand(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "scheduler_site.errands", *arguments]


def _prepare(options: Options, address: str, environment: Mapping[str, str]) -> int:
    arguments = ["prepare", "--address", address, *["--demo"] * options.demo]
    arguments += ["--simulate", options.simulate] if options.simulate else []
    # In a session of its own: Ctrl-C must not tear a migration in two.
    return subprocess.run(_errand(*arguments), env=environment, check=False, start_new_session=True).returncode


def _farewell(options: Options, environment: Mapping[str, str]) -> subprocess.Popen[str]:
    """Start counting (and, after a demonstration, cancelling) jobs while the processes stop."""
    command = _errand("farewell", *["--demo"] * options.demo)
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True)


def _wait(farewell: subprocess.Popen[str]) -> str:
    """Return what the errand printed, "" when it took too long or was asked for before."""
    try:
        return farewell.communicate(timeout=6)[0]
    except subprocess.TimeoutExpired:
        farewell.kill()
        return farewell.communicate()[0]


def _last_words(answer: str, data: Path) -> None:
    where = "" if data == REPOSITORY / "var" else f" --data {data}"
    try:
        jobs = int(answer.split()[-1])
    except (ValueError, IndexError):
        _say(f"Tidegate has stopped; jobs may go on: ./tidegate down --cancel{where} stops them.")
        return
    if jobs == 0:
        _say("Tidegate has stopped; no job is running.")
    else:
        goes = "1 job goes on" if jobs == 1 else f"{jobs} jobs go on"
        _say(f"Tidegate has stopped; {goes}: ./tidegate down --cancel{where} stops them.")


def _say(sentence: str) -> None:
    print(sentence, flush=True)
