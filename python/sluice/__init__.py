"""Runs neural networks inside the memory budget you give it.

    import numpy, sluice
    sluice.convert("resnet50.onnx", "resnet50.sluice")
    session = sluice.Session("resnet50.sluice", budget="24MiB")
    scores = session.run({"input": numpy.zeros((1, 3, 224, 224), "f4")})["output"]

Tensors are numpy arrays; whatever speaks DLPack (a torch tensor, say) is taken as an input, too, and arrays that come out speak it.
`session.input_view("input")` and `session.output_view("output")` are the tensors where the session has them, without a copy: write the
one, `session.run()`, read the other before the next run. `profile=True` plans by what `sluice profile` measured. The interpreter's lock is released while
a model runs. Errors of the library are `sluice.Error`; what Python itself knows how to call wrong is ValueError, TypeError or KeyError.
"""

__all__ = ["Error", "Model", "Plan", "Session", "convert", "plan"]


class Error(RuntimeError):
    """What the library refused, and why: `code` is one of the codes of docs/errors.md in words ("budget too small"); `needed` and
    `available` are its two numbers, or None."""

    def __init__(self, text, code="internal", numbers=None):
        super().__init__(text)
        self.code = code
        self.needed, self.available = numbers if numbers else (None, None)


from ._runtime import Model, Plan, Session, __version__, plan  # noqa: E402  (they raise Error)


def convert(onnx, model, *, dims=None, numerics="fast"):
    """Turns an ONNX file into a model file. `dims` binds free dimensions: a number, or a list of numbers to be chosen from when the model
    is opened. Returns what was done as a dict."""
    from . import _convert

    return _convert.convert(onnx, model, dims=dims or {}, numerics=numerics)
