"""Errors of the instrument: each class's docstring is its message when none is given."""

from __future__ import annotations

import inspect


class CalibrationError(Exception):
    """The measuring part of Tidegate could not do what was asked."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or inspect.cleandoc(type(self).__doc__ or ""))


class BadAmount(CalibrationError, ValueError):
    """This is not an amount of memory. Write a number with a unit, such as 24 GiB, 24 GB or 500 MiB."""


class BadDeviceSpec(CalibrationError, ValueError):
    """This is not a list of devices. Write count x size, such as 2x24GiB,1x80GiB."""


class BadKnob(CalibrationError, ValueError):
    """There is no such knob, or its value is out of range."""
