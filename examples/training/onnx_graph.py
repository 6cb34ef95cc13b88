"""Writes an ONNX file node by node: exactly the operators that are meant, with names that a person can read."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


class Graph:
    """Collects nodes and constants; `save` checks and writes them."""

    def __init__(self, name):
        self.name = name
        self.nodes, self.constants = [], []
        self.inputs, self.outputs = [], []

    def input(self, name, dtype, shape):
        self.inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def output(self, name, dtype, shape):
        self.outputs.append(helper.make_tensor_value_info(name, dtype, shape))

    def constant(self, name, values):
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def floats(self, name, values):
        return self.constant(name, np.asarray(values, dtype=np.float32))

    def integers(self, name, values):
        return self.constant(name, np.asarray(values, dtype=np.int64))

    def add(self, operator, inputs, name, **attributes):
        """One node; its output has the node's name."""
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def save(self, path, opset):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], producer_name="examples/training")
        model.ir_version = 8
        onnx.checker.check_model(model)
        onnx.save(model, str(path))
