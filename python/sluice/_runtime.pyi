import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

import numpy

__version__: str
_Path = Union[str, "os.PathLike[str]"]
_Size = Union[int, str, None]

class Model:
    path: str
    inputs: List[Dict[str, Any]]
    outputs: List[Dict[str, Any]]
    dimensions: Dict[str, List[int]]
    dims: Dict[str, int]
    def __init__(self, path: Union[_Path, "Model"], *, dims: Optional[Mapping[str, int]] = ...) -> None: ...
    def with_dims(self, dims: Mapping[str, int]) -> "Model": ...
    def minimum_budget(self, *, scope: str = ..., threads: int = ..., repeat: bool = ...) -> int: ...

class Session:
    model: Model
    stats: Dict[str, float]
    memory: Dict[str, Optional[int]]
    def __init__(
        self,
        model: Union[_Path, Model],
        budget: _Size = ...,
        *,
        dims: Optional[Mapping[str, int]] = ...,
        scope: str = ...,
        threads: int = ...,
        policy: str = ...,
        repeat: bool = ...,
        profile: Union[_Path, bool, None] = ...,
    ) -> None: ...
    def run(self, inputs: Union[Mapping[str, Any], Any, None] = ...) -> Dict[str, numpy.ndarray]: ...
    def input_view(self, name: Optional[str] = ...) -> numpy.ndarray: ...
    def output_view(self, name: Optional[str] = ...) -> numpy.ndarray: ...
    def cancel(self) -> None: ...
    def set_budget(self, budget: _Size) -> None: ...

class Plan:
    facts: Dict[str, Any]
    def svg(self) -> str: ...
    def save(self, path: str) -> None: ...

def plan(
    model: Union[_Path, Model],
    budget: _Size = ...,
    *,
    dims: Optional[Mapping[str, int]] = ...,
    scope: str = ...,
    threads: int = ...,
    policy: str = ...,
    repeat: bool = ...,
    profile: Union[_Path, bool, None] = ...,
) -> Plan: ...
