"""What a job's Python imports before its own code: arms the cap, then runs the sitecustomize that this one hides.

Python 3.8 or newer, standard library only, nothing printed, and nothing of ours may ever fail the job.
"""

try:
    import tidegate_shim

    tidegate_shim.arm()
except Exception:  # an unarmed job is watched; a job that fails for our sake helps nobody
    pass


def _shadowed():
    """Run the next sitecustomize on the path (a venv's, a distribution's), with its own errors, in our place."""
    import os
    import sys

    try:
        here = os.path.dirname(os.path.abspath(__file__))
        path = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != here]
        finder = next(f for f in sys.meta_path if getattr(f, "__name__", "") == "PathFinder")
        spec = finder.find_spec("sitecustomize", path)
        if spec is None or spec.loader is None or not hasattr(spec.loader, "exec_module"):
            return
        module = type(sys)("sitecustomize")
        module.__spec__, module.__loader__, module.__file__ = spec, spec.loader, spec.origin
        module.__package__, module.__cached__ = spec.parent, spec.cached
        if spec.submodule_search_locations is not None:
            module.__path__ = spec.submodule_search_locations
    except Exception:  # there is none that could be found
        return
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_shadowed()
