#!/usr/bin/env python3
"""The cases of benchmarks/fx_kernels.cpp in Python: eager and torch.compile (Inductor). One line of JSON each."""

import argparse
import json
import time

import torch
import torch.nn.functional as F


def best(body, budget_ms):
    fastest = float("inf")
    spent = 0.0
    while True:
        start = time.perf_counter()
        body()
        run = (time.perf_counter() - start) * 1e3
        fastest = min(fastest, run)
        spent += run
        if spent >= budget_ms:
            return fastest


def rotate_half(x):
    a, b = x.chunk(2, -1)
    return torch.cat([-b, a], -1)


def pointwise(x, y):
    t = torch.tanh(torch.exp(x * 0.5) + y)
    t = F.gelu(t) * x
    return torch.sigmoid(t + 1.0) * y + x


def standardise(x):
    centred = x - x.mean(-1, True)
    return centred / (centred.pow(2).mean(-1, True) + 1e-5).sqrt()


def huber(x, y):
    d = (x - y).abs()
    return torch.where(d < 1.0, 0.5 * d * d, d - 0.5).mean(-1)


def focal(x, y):
    p = torch.sigmoid(x)
    pt = p * y + (1 - p) * (1 - y)
    return -((1 - pt).pow(2) * torch.log(pt + 1e-6)).mean(-1)


def box_iou(s, t):
    a, b = s.unbind(1), t.unbind(1)
    w = (torch.minimum(a[2], b[2]) - torch.maximum(a[0], b[0])).clamp_min(0)
    h = (torch.minimum(a[3], b[3]) - torch.maximum(a[1], b[1])).clamp_min(0)
    both = w * h
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both + 1e-6)


def lstm(h, c, x, wx, wh, b):
    for i in range(32):
        g = (F.linear(x[i], wx, b) + F.linear(h, wh)).chunk(4, 1)
        c = torch.sigmoid(g[1]) * c + torch.sigmoid(g[0]) * torch.tanh(g[2])
        h = torch.sigmoid(g[3]) * torch.tanh(c)
    return h


def chain(x):
    for _ in range(1000):
        x = x + 1.0
    return x


def cases():
    r = torch.randn
    big, other, row, row2 = r(4096, 1024), r(4096, 1024), r(1024), r(1024)
    bf = torch.bfloat16
    return [
        ("pointwise", pointwise, (big, other)),
        ("softmax_layer_norm", lambda x, w, b: F.layer_norm(torch.softmax(x, -1), (1024,), w, b),
         (r(8192, 1024), row, row2)),
        ("rms_norm", lambda x, w: x * torch.rsqrt(x.pow(2).mean(-1, True) + 1e-6) * w, (big, row)),
        ("swiglu", lambda x, y: F.silu(x) * y, (big, other)),
        ("bias_gelu", lambda x, b: F.gelu(x + b), (big, row)),
        ("residual_layer_norm", lambda x, y, w, b: F.layer_norm(x + y, (1024,), w, b), (big, other, row, row2)),
        ("masked_softmax", lambda x, m: torch.softmax(x.masked_fill(m.logical_not(), -1e9), -1),
         (big, torch.rand(4096, 1024) > 0.3)),
        ("log_softmax", lambda x: torch.log_softmax(x, -1), (big,)),
        ("l2_normalise", lambda x: x / x.pow(2).sum(-1, True).sqrt().clamp_min(1e-12), (big,)),
        ("standardise", standardise, (big,)),
        ("rope", lambda x, c, s: x * c + rotate_half(x) * s, (r(8, 16, 512, 64), r(512, 64), r(512, 64))),
        ("embedding_norm", lambda w, i, p: F.layer_norm(F.embedding(i, w) + p, (512,)),
         (r(30000, 512), torch.randint(30000, (16, 256)), r(256, 512))),
        ("embedding_sum", lambda w, i: torch.relu(F.embedding(i, w).sum(1)),
         (r(30000, 256), torch.randint(30000, (512, 40)))),
        ("glu_norm", lambda x: F.layer_norm(F.glu(x, -1), (1024,)), (r(4096, 2048),)),
        ("group_norm_silu", lambda x, w, b: F.silu(F.group_norm(x, 32, w, b)), (r(16, 64, 32, 32), r(64), r(64))),
        ("causal_softmax", lambda x: torch.softmax(x * 0.125 + (1 - torch.ones_like(x).tril()) * -1e9, -1),
         (r(32, 512, 512),)),
        ("huber", huber, (big, other)),
        ("focal", focal, (big, torch.rand(4096, 1024))),
        ("batch_norm_silu", lambda x, w, b, m, v: F.silu(F.batch_norm(x, m, v, w, b)),
         (r(32, 64, 56, 56), r(64), r(64), r(64), torch.rand(64) + 0.5)),
        ("column_softmax", lambda x: torch.softmax(x * 2, 0), (r(1024, 4096),)),
        ("bf16_gelu_add", lambda x, y: F.gelu(x) + y * x, (big.to(bf), other.to(bf))),
        ("mish_hardswish", lambda x: F.mish(x) + F.hardtanh(x + 3, 0, 6) * x / 6, (big,)),
        ("box_iou", box_iou, (torch.rand(200000, 4), torch.rand(200000, 4))),
        ("lstm_cell_32", lstm, (r(1, 64), r(1, 64), r(32, 1, 64), r(256, 64), r(256, 64), r(256))),
        ("chain_1000", chain, (r(4),)),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget-ms", type=float, default=300)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    torch.set_num_threads(2)
    torch.manual_seed(0)
    with torch.no_grad():
        for name, program, inputs in cases():
            if options.only and options.only != name:
                continue
            row = {"case": name, "eager_ms": best(lambda: program(*inputs), options.budget_ms)}
            try:
                torch._dynamo.reset()
                compiled = torch.compile(program)
                start = time.perf_counter()
                compiled(*inputs)
                row["first_ms"] = (time.perf_counter() - start) * 1e3
                row["inductor_ms"] = best(lambda: compiled(*inputs), options.budget_ms)
            except Exception as error:  # the row is then without a figure
                row["error"] = str(error).splitlines()[0][:200]
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
