"""`pmlab claims`: measures the necessary cases, decides the claims, also from old results, and refuses invalid
options."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from program import DOCS, ProgramTest, main, pmlab  # noqa: E402


def case(name, value, **more):
    return {"name": name, "medium": "simulated:aep", "value": value, "values": 3 * [value], "unit": "ns",
            "skipped": None} | more


def reads(nanoseconds):
    """Results that decide M1."""
    name = "read-by-size/pattern=random/access_bytes="
    return {"schema": 1, "machine": {"medium": "simulated:aep"},
            "cases": [case(f"{name}{b}", 350) for b in (8, 16, 32, 64, 128)] + [case(f"{name}256", nanoseconds)]}


class Claims(ProgramTest):
    def results(self, document):
        return self.write("results.json", json.dumps(document).encode())

    def verdicts(self, *arguments, status=0):
        path = self.file("verdicts.json")
        done = pmlab("claims", "--quiet", "--json", path, *arguments)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        with open(path, encoding="utf-8") as f:
            return {c["id"]: c for c in json.load(f)["claims"]}, done.stdout

    def test_measures_what_it_needs_and_judges_it(self):
        results = self.file("measured.json")
        found, table = self.verdicts("--medium", "simulated:aep", "--results", results, "M19", "M5")
        self.assertEqual(list(found), ["M5", "M19"])
        self.assertIn(found["M19"]["verdict"], ("reproduced", "undecided"))
        for condition in found["M19"]["conditions"]:
            self.assertTrue(3 < condition["measured"] < 5)
            self.assertLess(condition["spread"][0], condition["measured"], "one repeat does not show its spread")
            self.assertEqual((condition["stated"], condition["published"]), ("3.00x to 5.00x", None))
            self.assertGreater(condition["public"], 3)
        self.assertIn(f"M19  {found['M19']['verdict']}", table)
        with open(results, encoding="utf-8") as f:
            names = {c["name"] for c in json.load(f)["cases"]}
        self.assertEqual(names, set(found["M5"]["cases"]) | set(found["M19"]["cases"]))
        again, _ = self.verdicts("--from", results, "M19", "M5")
        self.assertEqual(again, found)

    def test_real_memory(self):
        found, _ = self.verdicts("--medium", "dram", "M2", "M20", "M22")
        self.assertIn(found["M2"]["verdict"], ("reproduced", "not reproduced", "undecided"))
        for condition in found["M2"]["conditions"]:
            low, high = condition["spread"]
            self.assertLessEqual(low, condition["measured"])
            self.assertLessEqual(condition["measured"], high)
            self.assertGreaterEqual(condition["n"], 1)
        self.assertEqual(found["M20"]["verdict"], "not applicable")
        self.assertIn("dram itself", found["M20"]["reason"])
        # A machine with few CPUs has not the threads for it.
        self.assertNotIn("drive", found["M22"]["reason"] or "")

    def test_old_results_are_judged_by_their_figures(self):
        found, table = self.verdicts("--from", self.results(reads(400)), "M1")
        self.assertEqual(found["M1"]["verdict"], "reproduced")
        self.assertIn("14.3 %", table)
        found, _ = self.verdicts("--from", self.results(reads(500)), "M1")
        self.assertEqual(found["M1"]["verdict"], "not reproduced")
        self.assertEqual(found["M1"]["conditions"][0]["holds"], False)

    def test_what_the_claims_need_is_in_suite_paper(self):
        listed = self.assert_works("microbench", "--suite", "paper", "--list").stdout.splitlines()
        fed = {line.split()[0]: line.split() for line in listed if line}
        found, _ = self.verdicts("--from", self.results(reads(400)), status=1)
        self.assertEqual(len(found), 26)
        for claim in found.values():
            for name in claim["cases"]:
                if not name.startswith("drive-"):
                    self.assertIn(claim["id"], fed.get(name, ()), name)

    def test_json_on_standard_output(self):
        done = self.assert_works("claims", "--from", self.results(reads(400)), "M1", "--json", "-")
        self.assertEqual(json.loads(done.stdout)["claims"][0]["id"], "M1")
        self.assertIn("14.3 %", done.stderr)

    def test_names_and_options_in_any_order(self):
        found, _ = self.verdicts("M5", "--from", self.results(reads(400)), "M1", status=1)
        self.assertEqual(list(found), ["M1", "M5"])

    def test_a_folder_of_results(self):
        folder = self.file("set")
        os.makedirs(os.path.join(folder, "raw", "hybrid"))
        speeds = {("hybrid_index", 1): 4, ("hybrid_index_plus", 1): 6.4, ("hybrid_index", 16): 40,
                  ("hybrid_index_plus", 16): 76}
        self.write("set/raw/hybrid/all.json", json.dumps(
            {"schema": 1, "machine": {"medium": "simulated:aep"}, "skipped": [], "results": [
                {"index": index, "threads": threads, "phase": "read", "repeat": repeat, "throughput_ops_per_s": speed}
                for repeat in (1, 2, 3) for (index, threads), speed in speeds.items()]}).encode())
        self.write("set/manifest.json", json.dumps({"schema": 1, "experiments": [], "runs": [
            {"name": "hybrid/all", "experiment": "hybrid", "values": {"medium": "simulated:aep"},
             "status": 0}]}).encode())
        table = self.assert_works("claims", "--from", folder, "I1", "I3").stdout
        self.assertIn("I1   reproduced", table)
        self.assertIn("2 verdicts on 2 claims: 2 reproduced", table)
        with open(os.path.join(folder, "claims", "simulated-aep.json"), encoding="utf-8") as f:
            self.assertEqual([c["id"] for c in json.load(f)["claims"]], ["I1", "I3"])
        self.assert_fails(2, ["leave --json"], "claims", "--from", folder, "--json", self.file("v.json"))

    def test_what_was_not_measured_is_said(self):
        found, table = self.verdicts("--from", self.results(reads(400)), "M1", "M8", status=1)
        self.assertEqual(found["M8"]["verdict"], "not measured")
        self.assertIn("no read-by-threads/access_bytes=", found["M8"]["reason"])
        self.assertIn("run `pmlab claims --medium MEDIUM M8`", table)

    def test_a_modelled_drive_stands_beside_the_memory(self):
        results = self.file("measured.json")
        found, _ = self.verdicts("--medium", "simulated:aep", "--results", results, "M22")
        self.assertEqual(found["M22"]["verdict"], "not reproduced", "writes of a P4610 are above half of one DIMM's")
        read, write = found["M22"]["conditions"]
        self.assertLess(read["measured"], 0.5)
        self.assertGreater(write["spread"][0], 0.5)
        again, _ = self.verdicts("--from", results, "M22")
        self.assertEqual(again, found)
        with open(results, encoding="utf-8") as f:
            document = json.load(f)
        for one in document["cases"]:
            if one["name"].startswith("drive-"):
                one["value"] /= 3.2  # a drive of 900 MB/s
        found, _ = self.verdicts("--from", self.results(document), "M22")
        self.assertEqual(found["M22"]["verdict"], "reproduced")
        self.assert_fails(2, ["--ssd"], "claims", "--medium", "simulated:aep", "--ssd", self.folder, "M22")

    def test_the_drive_of_a_folder_of_results(self):
        """It is measured in another run than the memory, and is no medium that claims are judged on."""
        folder = self.file("set")
        name = "{}-random/access_bytes=256/threads={}"
        memory = {"schema": 1, "kind": "microbench", "machine": {"medium": "simulated:aep"}, "cases": [
            case(name.format("load", 4), 6.4, unit="GiB/s"), case(name.format("ntstore", 1), 2.2, unit="GiB/s")]}
        drive = {"schema": 1, "kind": "drive", "machine": {"medium": "simulated:p4610"}, "cases": [
            case("drive-read", 0.8, unit="GiB/s", medium="simulated:p4610"),
            case("drive-write", 0.6, unit="GiB/s", medium="simulated:p4610")]}
        other = {"schema": 1, "kind": "drive", "machine": {"medium": "file:/mnt/nvme/test"}, "cases": [
            case("drive-read", 9, unit="GiB/s"), case("drive-write", 9, unit="GiB/s")]}
        for runs, verdict, status in (((memory, drive, other), "reproduced", 0), ((memory,), "not applicable", 0),
                                      ((drive,), "not measured", 1)):
            for number, document in enumerate(runs):
                os.makedirs(os.path.join(folder, "raw", "e"), exist_ok=True)
                self.write(f"set/raw/e/{number}.json", json.dumps(document).encode())
            self.write("set/manifest.json", json.dumps({"schema": 1, "experiments": [], "runs": [
                {"name": f"e/{number}", "experiment": "e", "values": {}, "status": 0}
                for number in range(len(runs))]}).encode())
            done = pmlab("claims", "--from", folder, "M22")
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(f"M22  {verdict}", done.stdout)
            self.assertEqual(len(os.listdir(os.path.join(folder, "claims"))), 1)

    def test_the_documentation_has_the_rules(self):
        with open(os.path.join(DOCS, "claims.md"), encoding="utf-8") as f:
            text = f.read()
        self.assertIn(self.assert_works("claims", "--list", "--markdown").stdout, text,
                      "put the output of `pmlab claims --list --markdown` into docs/claims.md")

    def test_every_field_is_documented(self):
        path = self.file("v.json")
        self.assert_works("claims", "--from", self.results(reads(400)), "--json", path, "M1")
        with open(path, encoding="utf-8") as f:
            document = json.load(f)
        with open(os.path.join(DOCS, "claims.md"), encoding="utf-8") as f:
            text = f.read()
        one = document["claims"][0]
        for field in (*document, *document["options"], *one, *one["conditions"][0]):
            self.assertIn(f"`{field}`", text)

    def test_list_measures_nothing(self):
        listed = self.assert_works("claims", "--list", "M8").stdout
        self.assertIn("M8   Random reads of up to 256 B", listed)
        self.assertIn("at most 2.50x", listed)
        self.assertNotIn("M9", listed)

    def test_bad_input(self):
        def bad(parts, *arguments):
            self.assert_fails(2, parts, "claims", "--quiet", *arguments)
        bad(["no claim 'M99'", "did you mean"], "M99")
        bad(["has no option --form", "--from"], "--form", "x.json")
        bad(["claim I1 is about indexes", "pmlab run"], "I1")
        bad(["drum", "dram"], "--medium", "drum")
        bad(["--from", "leave them out"], "--from", "x.json", "--medium", "dram")
        bad(["cannot be read"], "--from", self.file("none.json"))
        bad(["is no JSON"], "--from", self.write("b.json", b"{"))
        bad(["schema 1", "pmlab microbench --json"], "--from", self.results({"schema": 7}))
        bad(["has none of the cases", "--suite paper"], "--suite", "quick", "M15")
        bad(["did you mean 'paper'"], "--suite", "papre")
        bad(["no folder"], "--json", self.file("none/v.json"))
        bad(["--markdown"], "--markdown")


if __name__ == "__main__":
    main()
