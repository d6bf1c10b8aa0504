from __future__ import annotations

from pydantic import Field

from placement.api.shapes.kinds import Shape


class Figures(Shape):
    """How good some forecasts were. Shares from 0 to 1, seconds; null where none of them has started yet."""

    count: int
    waiting: int = Field(description="Not started yet.")
    within_late: float | None = Field(description="Started by the late end: nine of ten should.")
    within_half: float | None = Field(description="Started by the middle: half should.")
    error_s: float | None = Field(description="Median.")
    relative: float | None = Field(description="Median, as a share of the wait.")


class Period(Figures):
    """The forecasts of so many last days."""

    untold: int = Field(description="Jobs to which no time could be told at first.")
    by_sure: dict[str, Figures]
    by_ahead: dict[str, Figures]


class Accuracy(Shape):
    """How good forecasts were."""

    last_7_days: Period
    last_30_days: Period
