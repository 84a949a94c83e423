"""What the benchmark of the ways to run a program prints: its rows with all of their numbers and bars, equal values,
and facts that do not depend on the clock. Times are never asserted here: `benchmarks/ways.py --strict` does that.

Environment: FXCPP_SOURCE_DIR, and FXCPP_BENCH_WAYS, the program fxcpp_bench_ways.
"""

import json
import os
import subprocess
import sys
import unittest

SCRIPT = os.path.join(os.environ["FXCPP_SOURCE_DIR"], "benchmarks", "ways.py")


def output(form):
    return subprocess.run([sys.executable, SCRIPT, "--binary", os.environ["FXCPP_BENCH_WAYS"], "--rounds", "1",
                           "--budget-ms", "2", "--format", form], check=True, stdout=subprocess.PIPE, text=True).stdout


class Ways(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.judged = json.loads(output("json"))

    def row(self, name, slow, fast):
        """The one judged row of that name and those ways; its numbers are there and fit together."""
        found = [one for one in self.judged if (one["row"], one["slow"], one["fast"]) == (name, slow, fast)]
        self.assertEqual(len(found), 1, f"{name}: {slow}, {fast}")
        row = found[0]
        self.assertGreater(row["slow_us"], 0)
        self.assertGreater(row["fast_us"], 0)
        self.assertAlmostEqual(row["ratio"], row["slow_us"] / row["fast_us"])
        for way in ("slow", "fast"):
            if f"{way}_min_us" in row:
                self.assertLessEqual(row[f"{way}_min_us"], row[f"{way}_us"])
        return row

    def one_kernel(self, facts):
        self.assertEqual(facts, {"compilations": 1, "codes": 1, "kernels": 1, "calls": 1})

    def test_S0_80_pointwise_chain_compiled_beside_interpreter_and_eager(self):
        for size in (64, 1000000):
            for slow in ("interpreter", "eager"):
                row = self.row(f"pointwise_chain/{size}", slow, "compiled")
                self.assertEqual(row["bar"], 1.0)
                self.assertEqual(row["met"], row["ratio"] >= 1.0)
                self.assertEqual(row["error"], 0.0)
                self.one_kernel(row["facts"])

    def test_S4_65_sample_by_module_interpreter_and_eager(self):
        row = self.row("sample_3_layers", "interpreter", "module")
        self.assertEqual(row["bar"], 1.0)
        self.assertEqual(row["met"], row["ratio"] >= 1.0)
        self.assertEqual(row["error"], 0.0)
        self.assertEqual(row["facts"], {"nodes": 5})
        shown = self.row("sample_3_layers", "module", "eager")
        self.assertIsNone(shown["bar"])
        self.assertEqual(shown["error"], 0.0)

    def test_S4_92_fused_chain_has_a_regression_limit(self):
        row = self.row("fused_chain", "eager", "compiled")
        self.assertEqual(row["bar"], 2.0)
        self.assertEqual(row["met"], row["ratio"] >= 2.0)
        self.assertLessEqual(row["error"], 4e-6)
        self.one_kernel(row["facts"])

    def test_S4_96_first_run_compiles_and_the_next_five_do_not(self):
        row = self.row("compiled_runs", "run 1", "slowest of runs 2 to 6")
        self.assertEqual(len(row["runs_us"]), 6)
        self.assertTrue(all(us > 0 for us in row["runs_us"]))
        self.assertEqual(row["bar"], 1.0)
        self.assertEqual(row["met"], all(us < row["runs_us"][0] for us in row["runs_us"][1:]))
        self.assertEqual(row["compilations"], [1] * 6)
        self.assertLessEqual(row["error"], 1e-6)

    def test_bars_are_enforced_by_strict_alone(self):
        sys.path.insert(0, os.path.dirname(SCRIPT))
        import ways  # pylint: disable=import-outside-toplevel
        rounds = [ways.run(os.environ["FXCPP_BENCH_WAYS"], 0)]
        rounds[0]["fused_chain"]["ways"]["compiled"]["median_us"] = 1e12
        slow = next(one for one in ways.judge(rounds) if one["row"] == "fused_chain")
        self.assertIs(slow["met"], False)
        self.assertIn("at least 2x | missed |", ways.markdown(ways.judge(rounds)))
        rounds.append(json.loads(json.dumps(rounds[0])))
        rounds[1]["fused_chain"]["ways"]["compiled"]["median_us"] = 1e-3
        self.assertIs(next(one for one in ways.judge(rounds) if one["row"] == "fused_chain")["met"], True)

    def test_markdown_has_a_line_for_each_row(self):
        lines = [line for line in output("md").splitlines() if line.startswith("| ")]
        self.assertEqual(len(lines), 1 + len(self.judged))
        for line in lines[1:]:
            self.assertRegex(line, r"^\| .+ \| [\w ]+ \| [\d.e+]+ \| [\w ]+ \| [\d.e+]+ \| [\d.e+]+x \|"
                                   r" (at least [12]x \| (met|missed)|\|?) ?\|?")


if __name__ == "__main__":
    unittest.main()
