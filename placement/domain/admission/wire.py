"""Decisions and estimates as plain JSON values: what rows keep and what the API sends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from calibration.domain.estimate import Estimate
from placement.domain.admission.decision import Candidate, Check, Decision


def decision_json(decision: Decision) -> dict[str, Any]:
    """Return a decision with every check and figure."""
    return {
        "verdict": decision.verdict.value,
        "code": decision.code.value if decision.code else None,
        "headline": decision.headline,
        "whole": [_check(c) for c in decision.whole],
        "candidates": [_candidate(c) for c in decision.candidates],
        "planned": _at(asdict(decision.planned)) if decision.planned else None,
        "grant": _at(asdict(decision.grant)) if decision.grant else None,
    }


def devices_json(uuids: Sequence[str]) -> dict[str, Any]:
    """Return the first device as "device"; all of them as "devices" where they are several."""
    several = {"devices": list(uuids)} if len(uuids) > 1 else {}
    return {"device": uuids[0] if uuids else None, **several}


def _at(told: dict[str, Any]) -> dict[str, Any]:
    return {"node": told.pop("node"), **devices_json(told.pop("devices")), **told}


def _candidate(candidate: Candidate) -> dict[str, Any]:
    return {
        "node": candidate.node,
        **devices_json(candidate.devices),
        "label": candidate.label,
        "checks": [_check(c) for c in candidate.checks],
        "room": dict(candidate.room),
        "need": dict(candidate.need),
    }


def _check(check: Check) -> dict[str, Any]:
    return {
        "code": check.code.value,
        "ok": check.ok,
        "sentence": check.sentence,
        "figures": {name: _figure(value) for name, value in check.figures.items()},
        "pool": check.pool,
        "shortfall": check.shortfall,
    }


def _figure(value: int | float | str | None) -> int | float | str | None:
    """Return a figure that JSON can carry: an age without a bound (its clock ran backwards) is unknown there."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def estimate_json(estimate: Estimate) -> dict[str, Any]:
    """Return an estimate with every rung; bytes or null."""
    return {
        "basis": estimate.basis.word,
        "notes": list(estimate.notes),
        "pools": {
            kind: {
                "need": pool.need,
                "basis": pool.basis.word,
                "margin": pool.margin,
                "notes": list(pool.notes),
                "rungs": [
                    {
                        "basis": rung.basis.word,
                        "bytes": rung.bytes,
                        "margin": rung.margin,
                        "why": rung.why,
                        "counted": rung.counted,
                    }
                    for rung in pool.rungs
                ],
            }
            for kind, pool in estimate.pools.items()
        },
    }
