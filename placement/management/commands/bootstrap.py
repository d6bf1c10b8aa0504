from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from calibration.probes.choose import Instrument
from placement.domain.errors import PlacementError
from placement.models import Device
from placement.services import accounts, cycle_row, demo, members, nodes, premises

_DRIVER_PATIENCE = 10.0  # seconds; a driver that was just loaded takes its time for the first answer


class Command(BaseCommand):
    help = "Make what a first start needs: this node, its devices, an admin. Safe to run at every start."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--simulate", default=settings.SIMULATE, help="devices that do not exist: 2x24GiB")
        parser.add_argument("--demo", action="store_true", help="add example workloads and submit some jobs")
        parser.add_argument("--address", default="http://127.0.0.1:8470", help="where the pages are (%(default)s)")
        parser.add_argument("--node", default=settings.NODE, help="this machine's name (%(default)s)")
        parser.add_argument("--link", action="store_true", help="print a login link even if an admin has logged in")

    def handle(self, **options: Any) -> None:
        database = premises.database_file()
        if database is not None and database.exists():
            database.chmod(0o600)  # it holds sessions and sealed values
        cycle_row.ensure()
        try:
            self._machine(options["node"], options["simulate"])
            admin, has_logged_in = members.first_admin()
            if options["demo"]:
                self._demo(admin, options["node"])
        except (PlacementError, ValueError, OSError) as error:
            raise CommandError(str(error)) from error
        if notice := accounts.trust_notice():
            self.stdout.write(notice)
        if options["link"] or not has_logged_in:
            self.stdout.write(f"Login (once): {members.make_link(admin, address=options['address'])}")

    def _machine(self, node: str, simulate: str) -> None:
        instrument = Instrument(node, simulate=simulate, simulated_dir=settings.SIMULATED_DIR)
        for sentence in nodes.discover(node, instrument.read(timeout_s=_DRIVER_PATIENCE)):
            self.stdout.write(sentence)

    def _demo(self, admin: Any, node: str) -> None:
        simulated = Device.objects.filter(node__name=node, simulated=True, retired=False).exists()
        demo.workloads(admin, simulated=simulated)
        made, refused = demo.submit(admin, simulated=simulated)
        for sentence in refused:
            self.stdout.write(sentence)
        self.stdout.write(f"Demonstration: {len(made)} example jobs submitted.")
