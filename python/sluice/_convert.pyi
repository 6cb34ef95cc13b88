import os
from typing import Any, Dict, Mapping, Sequence, Union

_Path = Union[str, "os.PathLike[str]"]

def convert(
    onnx: _Path, model: _Path, *, dims: Mapping[str, Union[int, Sequence[int]]] = ..., numerics: str = ...
) -> Dict[str, int]: ...
