"""The whole service on PostgreSQL and Redis: the shape that several nodes will share."""

from __future__ import annotations

from tests.person import sign_in
from tests.service import live_service


def test_jobs_wait_start_and_end_on_postgresql(postgres_url: str) -> None:
    environment = {"TIDEGATE_DATABASE_URL": postgres_url}
    with live_service(broker="redis", simulate="1x24GiB", environment=environment) as service:
        admin = sign_in(service)
        first = admin.submit("sleep 600", name="long", declared_ram="50 MiB")
        others = [admin.submit(f"exit {code}") for code in (0, 3, 0)]
        outcomes = [admin.wait_for(job, "finished", 40)["outcome"] for job in others]
        assert outcomes == ["completed", "failed", "completed"]
        alone = admin.submit("true", exclusive="machine")
        waiting = admin.wait_for(alone, "queued")
        admin.call(f"/api/v1/jobs/{first}/cancel", {})
        assert admin.wait_for(first, "finished")["outcome"] == "cancelled"
        assert admin.wait_for(alone, "finished")["outcome"] == "completed"
        assert waiting["id"] == alone
        assert "database" not in (service.data / "logs" / "tick.log").read_text().lower()
