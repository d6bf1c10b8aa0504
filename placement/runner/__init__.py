"""The process around one job: starts it, outlives the service, writes down how it ended.

The modules that the runner process loads use typing.NamedTuple, not dataclasses: importing dataclasses
costs each start 10 ms and each running job 1 MB. `launch`, `status` and `stop_request` are the service's
side and are never loaded in the runner process.
"""
