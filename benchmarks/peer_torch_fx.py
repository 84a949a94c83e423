#!/usr/bin/env python3
"""Python's torch.fx on the rows of fxcpp_bench: prints one JSON object {"torch": version, "rows": {name: {...}}}.

  peer_torch_fx.py [--part build|edit|trace|run|rewrite|save|load] [--sizes 10000 100000] [--reps 5] [--pt2 FILE]
  peer_torch_fx.py --export FILE      writes a ResNet-50 as FILE and ends
  peer_torch_fx.py --memory N         only the bytes per node of a graph of N nodes

Each row has the smallest and the median time of its repetitions in microseconds per unit. Garbage is collected
before each repetition, and the collector stays on during it, as users have it. Needs torch; the rows of ResNets
and of .pt2 files need torchvision.
"""

import argparse
import contextlib
import copy
import gc
import io
import json
import pickle
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from functorch.compile import aot_module, make_boxed_func, min_cut_rematerialization_partition
from torch import fx, nn
from torch.fx import subgraph_rewriter
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import create_op_support
from torch.fx.passes.split_module import split_module

RESULTS = {}


def record(name, function, units, repetitions, prepare=None):
    """Times function(prepare()), or function(): quick ones more often than asked."""
    times = []
    while len(times) < repetitions or (sum(times) < 0.2 and len(times) < 30):
        prepared = (prepare(),) if prepare else ()
        gc.collect()
        start = time.perf_counter()
        result = function(*prepared)
        times.append(time.perf_counter() - start)
        del result, prepared
    scale = 1e6 / units
    RESULTS[name] = {"min_us": min(times) * scale, "median_us": statistics.median(times) * scale}


# --- graphs ---------------------------------------------------------------------------------------------------------


def build(n):
    """n call_function nodes that alternate between relu and add of what came before."""
    graph = fx.Graph()
    a = graph.placeholder("x")
    for _ in range(n // 2):
        b = graph.call_function(torch.relu, (a,))
        a = graph.call_function(torch.add, (b, a))
    graph.output(a)
    return graph


def build_dead(n):
    graph = fx.Graph()
    x = a = graph.placeholder("x")
    for _ in range(n):
        a = graph.call_function(torch.neg, (a,))
    graph.output(x)
    return graph


def build_hub(n):
    """Two placeholders, of which n nodes use the first one."""
    graph = fx.Graph()
    x = last = graph.placeholder("x")
    y = graph.placeholder("y")
    for _ in range(n):
        last = graph.call_function(torch.neg, (x,))
    graph.output(last)
    return graph, x, y


def relus_and_sigmoids(n):
    graph = build(n)
    pairs = []
    for node in list(graph.nodes):
        if node.target is torch.relu:
            with graph.inserting_after(node):
                pairs.append((node, graph.call_function(torch.sigmoid, node.args)))
    return graph, pairs


def replace_uses(prepared):
    for old, new in prepared[1]:
        old.replace_all_uses_with(new)


def replaced(n):
    prepared = relus_and_sigmoids(n)
    replace_uses(prepared)
    return prepared


def erase(prepared):
    for old, _ in prepared[1]:
        prepared[0].erase_node(old)


def rewrite(graph):
    for node in list(graph.nodes):
        if node.op == "call_function" and node.target is torch.relu:
            with graph.inserting_after(node):
                new = graph.call_function(torch.sigmoid, node.args)
            node.replace_all_uses_with(new)
            graph.erase_node(node)


def print_tabular(graph):
    with contextlib.redirect_stdout(io.StringIO()):
        graph.print_tabular()


def build_rows(n, reps):
    record(f"build_graph/{n}", lambda: build(n), n, reps)


def edit_rows(n, reps):
    graph = build(n)
    record(f"lint/{n}", graph.lint, n, reps)
    record(f"iterate/{n}", lambda: sum(1 for node in graph.nodes if node.op == "call_function"), n, reps)
    record(f"deepcopy/{n}", lambda: copy.deepcopy(graph), n, reps)
    record(f"str/{n}", lambda: str(graph), n, reps)
    record(f"dead_code_none/{n}", graph.eliminate_dead_code, n, reps)
    record(f"dead_code_all/{n}", lambda g: g.eliminate_dead_code(), n, reps, lambda: build_dead(n))
    record(f"replace_all_uses/{n}", replace_uses, n // 2, reps, lambda: relus_and_sigmoids(n))
    record(f"replace_all_uses_hub/{n}", lambda p: p[1].replace_all_uses_with(p[2]), n, reps, lambda: build_hub(n))
    record(f"erase_node/{n}", erase, n // 2, reps, lambda: replaced(n))
    record(f"rewrite/{n}", rewrite, n // 2, reps, lambda: build(n))
    module = fx.GraphModule(nn.Module(), graph)
    record(f"recompile/{n}", module.recompile, n, reps)
    if n <= 10000:
        with contextlib.suppress(ImportError):  # needs the package tabulate
            record(f"print_tabular/{n}", lambda: print_tabular(graph), n, reps)
        record(f"transform/{n}", lambda: fx.Transformer(module).transform(), n, reps)


# --- capture --------------------------------------------------------------------------------------------------------


class Block(nn.Module):
    """A transformer block of plain operators, which torch.fx can trace."""

    def __init__(self, width=768, heads=12, hidden=3072):
        super().__init__()
        self.width, self.heads = width, heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.f1, self.f2 = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def split(self, t):
        return t.view(t.size(0), t.size(1), self.heads, self.width // self.heads).transpose(1, 2)

    def forward(self, x):
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        a = torch.matmul(q, k.transpose(-2, -1)) / (self.width // self.heads) ** 0.5
        a = torch.matmul(F.softmax(a, -1), v).transpose(1, 2).reshape(x.size(0), x.size(1), self.width)
        x = self.n1(x + self.o(a))
        return self.n2(x + self.f2(F.gelu(self.f1(x))))


def nets():
    yield "encoder12", nn.Sequential(*[Block() for _ in range(12)]).eval()
    try:
        import torchvision
    except ImportError:
        print("peer_torch_fx.py: no torchvision, so no rows of ResNets", file=sys.stderr)
        return
    for name in ("resnet18", "resnet50"):
        yield name, getattr(torchvision.models, name)(weights=None).eval()


def trace_rows(reps):
    for name, net in nets():
        module = fx.symbolic_trace(net)
        nodes = len(module.graph.nodes)
        record(f"tracer/{name}", lambda: fx.Tracer().trace(net), nodes, reps)
        record(f"symbolic_trace/{name}", lambda: fx.symbolic_trace(net), nodes, reps)
        record(f"recompile/{name}", module.recompile, nodes, reps)
        record(f"deepcopy/{name}", lambda: copy.deepcopy(module.graph), nodes, reps)
    capture_rows(reps)


def capture_rows(reps):
    """What C++ code is captured by, on the same nets and inputs."""
    layer = nn.TransformerEncoderLayer(64, 4, dim_feedforward=128)
    programs = {"attention12": (nn.TransformerEncoder(layer, 12, enable_nested_tensor=False).eval(),
                                torch.randn(16, 1, 64))}
    with contextlib.suppress(ImportError):
        import torchvision

        programs["resnet50"] = (torchvision.models.resnet50(weights=None).eval(), torch.randn(1, 3, 64, 64))
    for name, (net, x) in programs.items():
        with torch.no_grad():
            record(f"make_fx/{name}", lambda: make_fx(net)(x), 1, reps)
            record(f"replay/{name}", lambda: net(x), 1, reps)

        def train():
            module = aot_module(net.train(), fw_compiler=make_boxed_func_of, bw_compiler=make_boxed_func_of,
                                partition_fn=min_cut_rematerialization_partition)
            return module(x)

        record(f"training_graphs/{name}", train, 1, reps)


def make_boxed_func_of(graph, _):
    """Nothing is compiled: the time of capture and partition counts."""
    return make_boxed_func(graph.forward)


# --- running --------------------------------------------------------------------------------------------------------


def run_rows(reps):
    n = 1000
    x = torch.randn(4)
    for name, function in (("neg", torch.neg), ("add", torch.add)):
        graph = fx.Graph()
        x0 = a = graph.placeholder("x")
        for _ in range(n):
            a = graph.call_function(function, (a,) if name == "neg" else (a, x0))
        graph.output(a)
        module = fx.GraphModule(nn.Module(), graph)
        interpreter = fx.Interpreter(module)

        def eager():
            a = x
            if name == "neg":
                for _ in range(n):
                    a = torch.neg(a)
            else:
                for _ in range(n):
                    a = torch.add(a, x)
            return a

        for mode in (torch.no_grad, torch.inference_mode):
            with mode():
                for way, run in (("eager", eager), ("module", lambda: module(x)),
                                 ("interpreter", lambda: interpreter.run(x))):
                    for _ in range(5):
                        run()
                    record(f"run_chain/{name}/{mode.__name__}/{way}", run, n, 4 * reps)
    modules = fx.symbolic_trace(nn.Sequential(*[nn.Identity() for _ in range(n)]))
    with torch.no_grad():
        record("run_modules/module", lambda: modules(x), n, reps)
        record("run_modules/interpreter", lambda: fx.Interpreter(modules).run(x), n, reps)


# --- rewriting ------------------------------------------------------------------------------------------------------


def rewrite_rows(reps):
    def groups():
        """10,000 nodes: 1,000 times relu, add and eight negs."""
        graph = fx.Graph()
        a = graph.placeholder("x")
        for _ in range(1000):
            b = graph.call_function(torch.relu, (a,))
            a = graph.call_function(torch.add, (b, a))
            for _ in range(8):
                a = graph.call_function(torch.neg, (a,))
        graph.output(a)
        return fx.GraphModule(nn.Module(), graph)

    def pattern(x):
        return torch.add(torch.relu(x), x)

    def absent(x):
        return torch.erf(torch.relu(x))

    def replacement(x):
        return torch.sigmoid(x)

    def replace(module):
        return subgraph_rewriter.replace_pattern(module, pattern, replacement)

    def replace_absent(module):
        return subgraph_rewriter.replace_pattern(module, absent, replacement)

    assert len(replace(groups())) == 1000 and not replace_absent(groups())
    record("replace_pattern/1000_matches", replace, 1000, reps, groups)
    record("replace_pattern/no_match", replace_absent, 10000, reps, groups)

    def chain(n):
        """relu and neg in turn."""
        graph = fx.Graph()
        a = graph.placeholder("x")
        for i in range(n):
            a = graph.call_function(torch.neg if i % 2 else torch.relu, (a,))
        graph.output(a)
        return fx.GraphModule(nn.Module(), graph)

    module = chain(10000)
    place = {node: i for i, node in enumerate(module.graph.nodes)}
    for parts in (2, 100):
        record(f"split_module/{parts}",
               lambda parts=parts: split_module(module, module, lambda node: place[node] * parts // 10002), 10000, reps)

    # It keeps a set of all nodes behind each node: a larger graph does not fit.
    small = chain(1000)
    numbers = {node: i for i, node in enumerate(reversed(small.graph.nodes))}
    support = create_op_support(lambda modules, node: numbers[node] % 20 != 10)
    record("partitioner/1000",
           lambda: CapabilityBasedPartitioner(small, support).propose_partitions(), 1000, reps)


# --- files ----------------------------------------------------------------------------------------------------------


def export(path):
    import torchvision
    net = torchvision.models.resnet50(weights=None).eval()
    torch.export.save(torch.export.export(net, (torch.randn(1, 3, 224, 224),)), path)


def save_rows(reps):
    """A module of 10,000 nodes, every other one a get_attr of a parameter; pickled in memory."""
    root, graph = nn.Module(), fx.Graph()
    total = graph.placeholder("x")
    for i in range(5000):
        root.register_parameter(f"p{i}", nn.Parameter(torch.ones(16)))
        total = graph.call_function(torch.add, (total, graph.get_attr(f"p{i}")))
    graph.output(total)
    module = fx.GraphModule(root, graph)
    sys.setrecursionlimit(100000)
    data = pickle.dumps(module)
    record("save_module", lambda: pickle.dumps(module), 10000, reps)
    record("load_module", lambda: pickle.loads(data), 10000, reps)
    record("deepcopy_module", lambda: copy.deepcopy(module), 10000, reps)


def load_rows(path, reps):
    torch.export.load(path)
    record("load_pt2", lambda: torch.export.load(path), 1, reps)


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def memory(n):
    build(1000)
    gc.collect()
    before = resident_bytes()
    graph = build(n)
    gc.collect()
    return (resident_bytes() - before) / len(graph.nodes)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=[10000, 100000])
    parser.add_argument("--reps", type=int, default=5)
    parser.add_argument("--part", choices=["build", "edit", "trace", "run", "rewrite", "save", "load"])
    parser.add_argument("--pt2")
    parser.add_argument("--export")
    parser.add_argument("--memory", type=int)
    options = parser.parse_args()
    if options.export:
        export(options.export)
        return
    if options.memory:
        RESULTS[f"memory/{options.memory}"] = {"bytes_per_node": memory(options.memory)}

    def wanted(part):
        return not options.memory and options.part in (None, part)

    for n in options.sizes:
        reps = options.reps if n <= 10000 else max(2, options.reps // 2)
        if wanted("build"):
            build_rows(n, reps)
        if wanted("edit"):
            edit_rows(n, reps)
    for part, rows in (("trace", trace_rows), ("run", run_rows), ("rewrite", rewrite_rows),
                       ("save", save_rows)):
        if wanted(part):
            rows(options.reps)
    if wanted("load") and options.pt2:
        load_rows(options.pt2, options.reps)
    print(json.dumps({"torch": torch.__version__, "python": sys.version.split()[0], "rows": RESULTS}))


if __name__ == "__main__":
    main()
