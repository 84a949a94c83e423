#!/usr/bin/env python3
"""Writes the samples of PyTorch's operator database (OpInfo) as graphs with inputs and outputs.

    scripts/export_opinfo.py FOLDER                          all samples of float32, some of every other dtype
    scripts/export_opinfo.py FOLDER --dtypes float32 int64   these dtypes only
    scripts/export_opinfo.py FOLDER --ops add linalg.det     these operators only
    scripts/export_opinfo.py FOLDER --take 2000              a fixed choice of about so many float32 samples and others

For each dtype: DTYPE.jsonl, a line a sample, and DTYPE.safetensors with the bytes of its tensors. A line is

    {"op": "add", "sample": 3, "judge": "values" | "shape", "why": "...",
     "graphs": {"operators": TEXT, "torch": TEXT, "method": TEXT, "inplace": TEXT},
     "inputs": [TENSOR], "outputs": [TENSOR | {"value": ...} | {"float": HEX} | {"complex": [HEX, HEX]}]}

or {"op", "sample", "missing": why it cannot be written}. errors.jsonl has the calls that operators refuse, with "error": the first
line of the message. "operators" is the program that the sample runs below autograd, as
Python dispatches it; "torch" and "method" are the one call that the sample stands for, where it is no Python function, and
"inplace" is the method that writes the result to its tensor, where that can hold it. All take the same inputs, and a graph in
the .fx form returns the flat tuple of outputs; an input that the call changes is an output, too. A TENSOR is
{"storage": name in the safetensors file, "dtype", "sizes", "strides", "offset"}, and "conj" or "neg" where such a bit is set,
"shares" with the number of an earlier input in the same memory.
Each run begins with torch.manual_seed(SEED). What differs from run to run (memory that nobody wrote) is judged by its shape.
"""
import argparse
import hashlib
import json
import pathlib
import sys
import types
import unittest
import warnings

import torch
from torch._library.custom_ops import OPDEFS
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

# The database imports PyTorch's own test base class, which is not used here.
if "expecttest" not in sys.modules:
    sys.modules["expecttest"] = types.ModuleType("expecttest")
    sys.modules["expecttest"].TestCase = unittest.TestCase

SEED = 42  # also what the database itself sets for operators that draw numbers in place
FLOATS = ["float64", "bfloat16", "float16", "complex64", "complex128", "complex32"]
INTEGERS = ["int64", "int32", "int16", "int8", "uint8", "bool", "uint16", "uint32", "uint64"]
EIGHT_BITS = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]
OTHERS = FLOATS + INTEGERS + EIGHT_BITS
ERRORS = "errors"  # instead of a dtype: the calls that operators have to refuse
SAMPLES_OF_OTHERS = 3
ALL_SAMPLES = 34000  # about
EMPTY = {f"aten::{name}" for name in ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided")}


class Missing(Exception):
    """The sample has no form in the files."""


def literal(value, name_of):
    """The value in the .fx text form."""
    if isinstance(value, torch.Tensor):
        return "%" + name_of(value)
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise Missing("an integer beyond 64 bits")
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, complex):
        return f"complex({value.real!r}, {value.imag!r})"
    if isinstance(value, str):
        return json.dumps(value) if value.isascii() and value.isprintable() else repr(value)
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return str(value)
    if isinstance(value, torch.device):
        return f"device(type='{value.type}')"
    if value is Ellipsis:
        return "Ellipsis"
    if isinstance(value, slice):
        return "slice(" + ", ".join(literal(v, name_of) for v in (value.start, value.stop, value.step)) + ")"
    if isinstance(value, list) or isinstance(value, torch.Size):
        return "[" + ", ".join(literal(v, name_of) for v in value) + "]"
    if type(value) is tuple:
        return "(" + ", ".join(literal(v, name_of) for v in value) + ("," if len(value) == 1 else "") + ")"
    raise Missing(f"an argument of type {type(value).__name__}")


def call_text(name, opcode, target, args, kwargs, name_of):
    args = literal(tuple(args), name_of)
    kwargs = ", ".join(f"{k}: {literal(v, name_of)}" for k, v in kwargs.items())
    return f"%{name} = {opcode}[target={target}](args = {args}, kwargs = {{{kwargs}}})"


def place(tensor):
    return (tensor.untyped_storage().data_ptr(), tensor.storage_offset(), tuple(tensor.shape), tensor.stride(),
            tensor.dtype, tensor.is_conj(), tensor.is_neg())


class Recorder(TorchDispatchMode):
    """Records the operators that run as lines of a graph."""

    def __init__(self, inputs):
        super().__init__()
        self.lines = []
        self.names = {}  # of tensors, by identity
        self.places = {}  # of tensors, by memory
        self.values = []  # results that are no tensors, with the names of their nodes
        self.constants = []  # tensors made outside of the dispatcher
        self.alive = []
        self.seeded = False
        self.refused = None  # the line, node and error of the operator that raised
        self.unwritten = set()  # nodes that give memory which nobody wrote
        for i, tensor in enumerate(inputs):
            self.learn(tensor, f"x{i}")

    def learn(self, tensor, name):
        self.names.setdefault(id(tensor), name)
        if tensor.layout == torch.strided and tensor.numel():
            self.places[place(tensor)] = name
        self.alive.append(tensor)

    def find(self, tensor):
        if id(tensor) in self.names:
            return self.names[id(tensor)]
        if tensor.layout == torch.strided and tensor.numel():
            return self.places.get(place(tensor))
        return None

    def name_of(self, tensor):
        name = self.find(tensor)
        if name is None:
            name = f"constant{len(self.constants)}"
            self.constants.append((name, tensor.detach().clone()))
            self.learn(tensor, name)
        return name

    def __torch_dispatch__(self, func, types_, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.ops.aten.lift_fresh.default:
            return args[0]
        if defined := OPDEFS.get(func._schema.name):  # in Python, as operators of its own
            with self:
                return defined._backend_fns.get("cpu", defined._backend_fns.get(None))(*args, **kwargs)
        name = f"n{len(self.lines)}"
        for leaf in pytree.tree_leaves((args, kwargs)):
            if isinstance(leaf, torch.Tensor) and leaf.layout != torch.strided:
                raise Missing(f"sparse tensors ({str(leaf.layout).removeprefix('torch.')})")
        line = call_text(name, "call_function", func.name(), args, kwargs, self.name_of)
        self.seeded |= torch.Tag.nondeterministic_seeded in func.tags
        try:
            result = func(*args, **kwargs)
        except Exception as error:
            self.refused = (line, name, error)
            raise
        if func._schema.name in EMPTY:
            self.unwritten.add(name)
        elif func._schema.is_mutable:
            self.unwritten.clear()
        elif func.is_view and args and isinstance(args[0], torch.Tensor) and self.find(args[0]) in self.unwritten:
            self.unwritten.add(name)
        self.lines.append(line)
        self.learn_result(result, name)
        return result

    def learn_result(self, result, name):
        if isinstance(result, torch.Tensor):
            self.learn(result, name)
        elif isinstance(result, (list, tuple)):
            for i, item in enumerate(result):
                part = f"{name}_{i}"
                self.lines.append(f"%{part} = call_function[target=operator.getitem](args = (%{name}, {i}))")
                self.learn_result(item, part)
        elif result is not None:
            self.values.append((result, name))

    def output(self, value):
        """The name of an output; None for one that is the same in every run."""
        if isinstance(value, torch.Tensor):
            name = self.find(value)
            if name is None:
                raise Missing("its result is made outside of the dispatcher")
            return name
        for known, name in reversed(self.values):
            if type(known) is type(value) and known == value:
                return name
        return None


def leaves_of(value):
    return pytree.tree_leaves(value, is_leaf=lambda v: v is None)


def copies(tensors):
    """Copies with the same strides; what shares memory does so again."""
    storages = {}
    out = []
    for tensor in tensors:
        if tensor.layout != torch.strided:
            raise Missing(f"sparse tensors ({str(tensor.layout).removeprefix('torch.')})")
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in storages or not storage.nbytes():
            storages[storage.data_ptr()] = storage.clone()
        copy = torch.empty(0, dtype=tensor.dtype).set_(
            storages[storage.data_ptr()], tensor.storage_offset(), tensor.shape, tensor.stride())
        copy = torch._conj(copy) if tensor.is_conj() else copy
        out.append(torch._neg_view(copy) if tensor.is_neg() else copy)
    return out


def same(a, b):
    """Whether two results are one value, bit by bit for tensors."""
    if not isinstance(a, torch.Tensor):
        return type(a) is type(b) and (a == b or a != a)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    a, b = (t.resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format) for t in (a, b))
    return raw(a) == raw(b)


def is_like(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.stride() == b.stride()


def close(a, b):
    """Whether two results are equal within the rounding of their dtype."""
    if same(a, b):
        return True
    if not isinstance(a, torch.Tensor) or a.dtype.itemsize == 1 or a.dtype == torch.complex32:
        return False
    try:
        torch.testing.assert_close(a, b, equal_nan=True)
        return True
    except AssertionError:
        return False


class Sample:
    """One call of the database."""

    def __init__(self, op, sample):
        self.op = op
        self.flat, self.spec = pytree.tree_flatten((sample.input, tuple(sample.args), dict(sample.kwargs)))
        self.where = [i for i, leaf in enumerate(self.flat) if isinstance(leaf, torch.Tensor)]
        self.tensors = [self.flat[i].detach() for i in self.where]
        self.recorder = None

    def arguments(self, tensors):
        flat = list(self.flat)
        for i, tensor in zip(self.where, tensors):
            flat[i] = tensor
        return pytree.tree_unflatten(flat, self.spec)

    def run(self, function=None):
        """The inputs behind the call, and its flat outputs."""
        tensors = copies(self.tensors)
        first, args, kwargs = self.arguments(tensors)
        torch.manual_seed(SEED)
        with torch.no_grad():
            return tensors, leaves_of((function or self.op.op)(first, *args, **kwargs))

    def record(self):
        """The same, with the operators that run."""
        tensors = copies(self.tensors)
        first, args, kwargs = self.arguments(tensors)
        self.recorder = Recorder(tensors)
        torch.manual_seed(SEED)
        with torch.no_grad(), torch._C._AutoDispatchBelowAutograd(), self.recorder:
            result = self.op.op(first, *args, **kwargs)
        self.is_tuple = isinstance(result, (list, tuple))
        self.is_nested = self.is_tuple and any(isinstance(item, (list, tuple, dict)) for item in result)
        return tensors, leaves_of(result)

    def graph(self, lines, names):
        heads = [f"%x{i} = placeholder[target=x{i}]" for i in range(len(self.tensors))]
        more = [f"%{name} = placeholder[target={name}]" for name, _ in self.recorder.constants]
        result = "(" + "".join(f"%{name}, " for name in names).rstrip() + ")"
        return "\n".join(["fx 1", *heads, *more, *lines, f"return {result}"]) + "\n"

    def error_line(self, store):
        """A sample that an operator refuses."""
        try:
            self.record()
        except Missing:
            raise
        except Exception:  # pylint: disable=broad-except
            if not self.recorder or not self.recorder.refused:
                raise Missing("Python refuses it before an operator is called") from None
            line, name, error = self.recorder.refused
            inputs = self.tensors + [tensor for _, tensor in self.recorder.constants]
            return {"error": str(error).splitlines()[0], "judge": "values", "outputs": [],
                    "graphs": {"operators": self.graph([*self.recorder.lines, line], [name])},
                    "inputs": store.inputs(inputs)}
        raise Missing("nothing refuses it")

    def line(self, store):
        tensors, wanted = self.run()
        for leaf in wanted:
            if isinstance(leaf, torch.Tensor) and leaf.layout != torch.strided:
                raise Missing(f"sparse tensors ({str(leaf.layout).removeprefix('torch.')})")
        changed = [i for i, (a, b) in enumerate(zip(self.tensors, tensors)) if not same(a, b)]
        _, found = self.record()
        if len(found) != len(wanted):
            raise Missing("another number of results when it is recorded")
        recorder = self.recorder
        # Whether the recorded program gives the values is for its runs to show.
        outputs = [(recorder.output(leaf), value) for leaf, value in zip(found, wanted)]
        outputs += [(f"x{i}", tensors[i]) for i in changed]
        if all(name is None for name, _ in outputs):
            raise Missing("its result is no value of an operator")
        kept = [i for i, (name, _) in enumerate(outputs) if name is not None]
        line = {"judge": "values"}
        if any(name in recorder.unwritten for name, _ in outputs):
            line.update(judge="shape", why="memory that nobody wrote")
        elif not all(close(a, b) for a, b in zip(self.run()[1], wanted)):
            line.update(judge="shape", why="differs from run to run")
        elif recorder.seeded:
            line["why"] = "random numbers, of the same seed"
        inputs = self.tensors + [tensor for _, tensor in recorder.constants]
        line["graphs"] = {"operators": self.graph(recorder.lines, [outputs[i][0] for i in kept])}
        if len(kept) == len(outputs) and not self.is_nested:
            names = ["y"]
            lines = []
            if self.is_tuple:
                names = [f"y_{i}" for i in range(len(wanted))]
                lines = [f"%y_{i} = call_function[target=operator.getitem](args = (%y, {i}))" for i in range(len(wanted))]
            for form, text in self.calls(len(wanted), wanted, changed):
                line["graphs"][form] = self.graph([text, *lines], names + [f"x{i}" for i in changed])
        line["inputs"] = store.inputs(inputs)
        line["outputs"] = [store.output(outputs[i][1]) for i in kept]
        return line

    def calls(self, count, wanted, changed):
        """The one call that the sample stands for, as a torch function, as a method, and as one that writes."""
        op = self.op
        names = {id(t): f"x{i}" for i, t in enumerate(self.tensors)}
        first, args, kwargs = self.arguments(self.tensors)
        found = []
        where = torch
        for part in op.name.split("."):
            where = getattr(where, part, None)
        if where is op.op and isinstance(where, types.BuiltinFunctionType):
            found.append(("torch", "call_function", "torch." + op.name, op.op))
        if isinstance(first, torch.Tensor) and isinstance(op.method_variant, types.MethodDescriptorType):
            found.append(("method", "call_method", op.method_variant.__name__, op.method_variant))
        if isinstance(first, torch.Tensor) and isinstance(op.inplace_variant, types.MethodDescriptorType):
            found.append(("inplace", "call_method", op.inplace_variant.__name__, op.inplace_variant))
        for form, opcode, target, function in found:
            try:
                result = self.run(function)[1]
                text = call_text("y", opcode, target, (first, *args), kwargs, lambda t: names[id(t)])
            except (Missing, TypeError, RuntimeError):
                continue  # another signature than the function's
            if form == "inplace" and (changed or not is_like(result[0], wanted[0]) or not close(result[0], wanted[0])):
                continue  # rounded to the dtype of the tensor, or strides of its own
            if len(result) == count and all(type(a) is type(b) for a, b in zip(result, wanted)):
                yield form, text

class Store:
    """The tensors of a safetensors file."""

    def __init__(self):
        self.names = {}
        self.blobs = []

    def storage(self, tensor):
        data = raw(tensor)
        key = hashlib.blake2b(data, digest_size=16).digest()
        if key not in self.names:
            self.names[key] = str(len(self.blobs))
            self.blobs.append(data)
        return self.names[key]

    def tensor(self, tensor):
        out = {"storage": self.storage(tensor), "dtype": str(tensor.dtype).removeprefix("torch."),
               "sizes": list(tensor.shape), "strides": list(tensor.stride()), "offset": tensor.storage_offset()}
        if tensor.is_conj():
            out["conj"] = True
        if tensor.is_neg():
            out["neg"] = True
        return out

    def inputs(self, tensors):
        """Tensors that are there at once, with what they share."""
        out, first = [], {}
        for i, tensor in enumerate(tensors):
            out.append(self.tensor(tensor))
            memory = tensor.untyped_storage().data_ptr()
            if memory and first.setdefault(memory, i) != i:
                out[i]["shares"] = first[memory]
        return out

    def output(self, value):
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if isinstance(value, float):
            return {"float": value.hex()}
        if isinstance(value, complex):
            return {"complex": [value.real.hex(), value.imag.hex()]}
        if isinstance(value, (bool, int)):
            return {"value": value}
        raise Missing(f"a result of type {type(value).__name__}")

    def write(self, path):
        header, at = {}, 0
        for i, blob in enumerate(self.blobs):
            header[str(i)] = {"dtype": "U8", "shape": [len(blob)], "data_offsets": [at, at + len(blob)]}
            at += len(blob)
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        with open(path, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for blob in self.blobs:
                file.write(blob)


def raw(tensor):
    """The bytes of the tensor's storage."""
    storage = tensor.untyped_storage()
    return torch.empty(0, dtype=torch.uint8).set_(storage).numpy().tobytes() if storage.nbytes() else b""


def full_name(op):
    return op.name + ("." + op.variant_test_name if op.variant_test_name else "")


def samples_of(op, dtype):
    torch.manual_seed(SEED)
    yield from (Sample(op, sample) for sample in op.sample_inputs("cpu", dtype))


def errors_of(op):
    torch.manual_seed(SEED)
    if op.error_inputs_func is not None:
        yield from (Sample(op, error.sample_input) for error in op.error_inputs("cpu"))


def export(folder, name, ops, most, chosen):
    store, lines = Store(), 0
    with open(folder / f"{name}.jsonl", "w") as file:
        for op in ops:
            if name != ERRORS and getattr(torch, name) not in op.supported_dtypes("cpu"):
                continue
            head = {"op": full_name(op)}
            samples = errors_of(op) if name == ERRORS else samples_of(op, getattr(torch, name))
            i = -1
            while most is None or i + 1 < most:
                i += 1
                head["sample"] = i
                try:
                    sample = next(samples)
                    if not chosen(head["op"], name, i):
                        continue
                    line = sample.error_line(store) if name == ERRORS else sample.line(store)
                except StopIteration:
                    break
                except Missing as error:
                    line = {"missing": str(error)}
                except Exception as error:  # pylint: disable=broad-except
                    line = {"missing": f"eager: {type(error).__name__}: {str(error).splitlines()[0][:150]}"}
                file.write(json.dumps({**head, **line}, separators=(",", ":")) + "\n")
                lines += 1
    store.write(folder / f"{name}.safetensors")
    return lines


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--dtypes", nargs="*")
    parser.add_argument("--ops", nargs="*")
    parser.add_argument("--take", type=int)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    from torch.testing._internal.common_methods_invocations import op_db

    ops = [op for op in op_db if not options.ops or full_name(op) in options.ops]
    folder = options.folder
    folder.mkdir(parents=True, exist_ok=True)

    def chosen(op, dtype, i):
        if options.take is None:
            return True
        digest = hashlib.blake2b(f"{op} {dtype} {i}".encode(), digest_size=4).digest()
        return int.from_bytes(digest, "little") % ALL_SAMPLES < options.take

    counts = {}
    for name in options.dtypes or ["float32", *OTHERS, ERRORS]:
        most = None if name in ("float32", ERRORS) else SAMPLES_OF_OTHERS
        counts[name] = export(folder, name, ops, most, chosen)
        print(f"{name}: {counts[name]} samples", flush=True)
    (folder / "manifest.json").write_text(json.dumps(
        {"torch": torch.__version__, "operators": [full_name(op) for op in op_db], "samples": counts}) + "\n")


if __name__ == "__main__":
    main()
