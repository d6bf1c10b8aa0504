"""The private part: who is told of refused memory."""

observers = []


def _cuda_attach_out_of_memory_observer(observer):
    observers.append(observer)
