"""As much of torch as a cap meets: CUDA that is made ready late, a fraction per device, and refusals with an observer.

FAKE_TORCH_DEVICES ("uuid:bytes,uuid:bytes"), FAKE_TORCH_VERSION, FAKE_TORCH_FREE (bytes free on every device),
FAKE_TORCH_LIMIT (what the driver lets the job see of it), FAKE_TORCH_BREAKS=1 (setting a fraction raises).
"""

import os

__version__ = os.environ.get("FAKE_TORCH_VERSION", "2.13.0+cpu")

from . import _C, cuda


class OutOfMemoryError(RuntimeError):
    """What is raised where memory is refused."""


__all__ = ["OutOfMemoryError", "_C", "cuda"]
