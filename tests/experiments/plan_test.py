"""Plans: which calls an experiment stands for, and that those which come with pmlab feed every claim."""
import collections
import itertools
import sys
import unittest

from package import HEAD, INDEXES, OPTIONS
from pmlab.claims.catalogue import every_claim
from pmlab.claims.index_cases import case_name
from pmlab.claims.pair_cases import BESIDE, PAIRS
from pmlab.claims.pair_cases import case_name as case_name_of_pairs
from pmlab.claims.result_set import prefix_of
from pmlab.claims.store_cases import case_name as case_name_of_store
from pmlab.errors import Failure
from pmlab.indexes import swept
from pmlab.run.experiment import SCALES, experiment_names, load_experiment, parse_experiment
from pmlab.run.plan import plan
from pmlab.run.time_left import bytes_of, count_of, guess
from pmlab.spelling import shell_form, split_list


DEVICE_CACHE_BYTES = 2 << 20  # cpu_cache_bytes of the device profiles


def read(text):
    return parse_experiment(HEAD + text, "mine.toml", OPTIONS)


class Plan(unittest.TestCase):
    def test_crosses_the_matrix_and_takes_the_scale(self):
        e = read('[arguments]\nindex = "a"\nrecords = "1M"\n'
                 '[matrix]\nmedium = ["simulated:aep", "pmem:{pool}"]\ndistribution = ["uniform", "zipfian:0.99"]\n'
                 '[scale.smoke]\nrecords = "1k"\ndistribution = ["uniform"]\n')
        smoke = plan(e, "smoke")
        self.assertEqual([c.name for c in smoke], ["mine/simulated-aep_uniform", "mine/pmem-pool_uniform"])
        self.assertEqual(shell_form(smoke[0].words),
                         "pmlab bench --medium simulated:aep --distribution uniform --index a --records 1k --verify")
        quick = plan(e, "quick")
        self.assertEqual(len(quick), 4)
        self.assertEqual(quick[3].values["distribution"], "zipfian:0.99")
        self.assertGreater(guess(quick[0]), guess(smoke[0]))

    def test_a_value_may_stand_for_each_index(self):
        e = read('[arguments]\nrecords = "1k"\n[matrix]\n'
                 'index = ["{index}", "cache({ordered})", "hybrid(hash={unordered},tree={ordered})", "a"]\nmedium = '
                 '["m"]\n')
        self.assertEqual([c.values["index"] for c in plan(e, "quick", INDEXES)],
                         ["cceh", "fast_fair", "fp_tree", "cache(fast_fair)", "cache(fp_tree)",
                          "hybrid(hash=cceh,tree=fast_fair)", "hybrid(hash=cceh,tree=fp_tree)", "a"])

    def test_a_list_of_arguments_may_stand_for_indexes(self):
        def indexes_of(value):
            [cell] = plan(read(f"[arguments]\nindex = {value}\n"), "quick", INDEXES)
            return cell.value("--index")
        self.assertEqual(indexes_of('["{unordered}", "{ordered}", "tbb_hash"]'), "cceh,fast_fair,fp_tree,tbb_hash")
        self.assertEqual(indexes_of('["cache(a,strings({ordered}),x=y)"]'),
                         "cache(a,strings(fast_fair),x=y),cache(a,strings(fp_tree),x=y)")
        self.assertEqual(indexes_of('["a(b,c(d))", "e"]'), "a(b,c(d)),e")

    def test_a_family_may_be_without_some(self):
        e = read('[arguments]\nindex = ["{index except cceh, fp_tree}", "b"]\n[matrix]\nmedium = ["m"]\n'
                 '[scale.smoke]\nindex = "{ordered except fast_fiar}"\n'
                 '[scale.full]\nindex = ["{unordered except fast_fair}"]\n')
        self.assertEqual(plan(e, "quick", INDEXES)[0].value("--index"), "fast_fair,b")
        for scale, remedy in (("smoke", "fast_fiar is none of them; did you mean fast_fair?"),
                              ("full", "did you mean cceh?")):
            with self.assertRaisesRegex(Failure, remedy):
                plan(e, scale, INDEXES)

    def test_families_are_those_of_the_facts(self):
        """An index that is added comes into each experiment by itself, except where the file chooses a few."""
        added = [*swept(), {"name": "zz_added", "ordered": True}]
        for name in ("answers", "counted", "ordered", "recovery", "scans", "trace", "which_index", "which_strings",
                     "ycsb"):
            with self.subTest(experiment=name):
                cells = plan(load_experiment(name, OPTIONS), "full", added)
                self.assertTrue(any("zz_added" in cell.value("--index") for cell in cells))

    def test_answers_are_checked_unless_the_file_is_against_it(self):
        def command(text):
            return shell_form(plan(read(text), "quick")[0].words)
        self.assertEqual(command('[arguments]\nindex = "a"\n'), "pmlab bench --index a --verify")
        self.assertEqual(command('[arguments]\nindex = "a"\nverify = false\n'), "pmlab bench --index a")
        self.assertEqual(command('kind = "microbench"\n[arguments]\nsuite = "a b"\n'), "pmlab microbench --suite 'a b'")

    def test_what_repeats_to_the_digit_is_not_repeated(self):
        """Indexes on a simulated medium, and stores in virtual time, have another layout in each repeat."""
        text = ('[arguments]\nindex = "a"\nrepeat = 5\n'
                '[matrix]\nmedium = ["simulated:aep", "counted:dram", "emulated:aep", "pmem:{pool}"]\n')
        self.assertEqual([c.value("--repeat") for c in plan(read(text), "quick")], ["5", "", "5", "5"])
        caches = plan(read(text.replace("repeat = 5", 'cpu_cache = "64K"')), "quick")
        self.assertEqual([c.value("--cpu-cache") for c in caches], ["64K", "", "", ""])
        stores = ('kind = "stores_pairs"\n[arguments]\nstore = "a"\nrepeat = 5\n'
                  '[matrix]\n"medium + device" = ["simulated:aep + simulated:p4610", "counted:dram + memory"]\n')
        self.assertEqual([c.value("--repeat") for c in plan(read(stores), "quick")], ["5", ""])

    def test_a_device_stands_in_the_place_of_a_medium(self):
        text = ('kind = "microbench"\n[arguments]\nsuite = "quick"\n'
                '[matrix]\ndevice = ["simulated:p4610", "file:{drive}"]\n')
        simulated, file = plan(read(text), "quick")
        self.assertEqual((simulated.medium, file.medium), ("simulated:p4610", "file:{drive}"))
        self.assertFalse(simulated.has_real_clock)
        self.assertTrue(file.has_real_clock)
        self.assertGreater(guess(file), guess(simulated))

    def test_quick_cells_do_not_fit_into_caches(self):
        """And those of a real clock are repeated. Not those that count answers, have sizes as their axis, or are
        about what each of several hosts has in its caches."""
        bytes_of_entry = 27  # at least, of any index here
        # The ratio of data to all caches, with most threads, where caches are smaller: the paper has 24 with one
        # thread.
        ratios = {"hybrid": 7, "adaptive_hybrid": 10, "cache": 20, "cache_parallel": 20, "adaptive_cache": 15}
        # One thread has smaller caches: those of two cores, without the second one's own.
        of_one_thread = {"which_index": 5 * DEVICE_CACHE_BYTES // 2 // bytes_of_entry,
                         "which_strings": 5 * DEVICE_CACHE_BYTES // 2 // 90}
        of_device = 4 * DEVICE_CACHE_BYTES // bytes_of_entry
        least = {"simulated": of_device, "emulated": of_device, "counted": 2_000_000, "pmem": 2_000_000,
                 "dram": 2_000_000}
        for name in set(experiment_names()) - {"answers", "trace", "recovery", "memory", "drive", "hosts"}:
            experiment = load_experiment(name, OPTIONS)
            for c in plan(experiment, "quick", swept()) if experiment.kind == "bench" else ():
                with self.subTest(cell=c.name):
                    records = of_one_thread.get(name, least[c.medium.split(":")[0]])
                    self.assertGreaterEqual(count_of(c.value("--records"), "--records"), records)
                    if c.value("--cpu-cache") and name in ratios:
                        threads = max(map(int, c.value("--threads", "1").split(",")))
                        cores = 1 + threads + (c.value("--index").count("cache(") > 0)
                        cache = cores * max(bytes_of(c.value("--cpu-cache")), 64 << 10)
                        self.assertGreaterEqual(count_of(c.value("--records"), "--records") * bytes_of_entry,
                                                ratios[name] * cache)
                    if c.has_real_clock:
                        self.assertGreaterEqual(int(c.value("--repeat", "1")), 5)

    def test_a_key_of_the_matrix_may_name_several_options(self):
        text = ('kind = "stores_volumes"\n[arguments]\nsize = ["4K", "16K"]\nrepeat = 3\n[matrix]\nring = [16]\n'
                '"medium + device + store" = ["simulated:aep + simulated:p4610 + raw,chunk_store", "dram + memory + '
                'raw"]\n')
        simulated, real = plan(read(text), "quick")
        self.assertEqual(simulated.name, "mine/16_simulated-aep-simulated-p4610")
        self.assertEqual(shell_form(simulated.words), "pmlab stores volumes --ring 16 --medium simulated:aep --device "
                         "simulated:p4610 "
                                                      "--store raw,chunk_store --repeat 3 --size 4K,16K")
        self.assertEqual(simulated.values, {"ring": "16", "medium": "simulated:aep", "device": "simulated:p4610",
                                            "store": "raw,chunk_store"})
        self.assertEqual((simulated.medium, real.medium), ("simulated:aep", "dram"), "of a store that has a drive, too")
        self.assertEqual(real.value("--repeat"), "3")
        self.assertGreater(guess(real), 0)
        for bad in ('"medium + devise" = ["a + b"]', '"medium + device" = ["a"]', '"medium + size" = ["a + 4K"]',
                    '"medium + device" = ["a + b"]\nmedium = ["a"]'):
            with self.assertRaises(Failure):
                read(f'kind = "stores_volumes"\n[arguments]\nsize = "4K"\n[matrix]\n{bad}\n')

    def test_a_chart_may_be_restricted(self):
        text = ('kind = "stores_volumes"\n[arguments]\nsize = "4K"\n[[chart]]\nkind = "lines"\nx = "size"\ny = '
                '"thousand"\n'
                'series = "store"\nonly = ["depth=1"]\n')
        self.assertEqual(read(text).charts[0].only, ["depth=1"])
        for bad in ("dept=1", "depth"):
            with self.assertRaises(Failure):
                read(text.replace("depth=1", bad))

    def test_cells_of_one_name_are_refused(self):
        with self.assertRaises(Failure):
            plan(read('[arguments]\nindex = "a"\n[matrix]\nmedium = ["a:b", "a-b"]\n'), "quick")


def cases_of(cell):
    """The cases that results of this cell become (claims/result_set.py)."""
    more = "".join(f"/{key}={value}" for key, value in sorted(cell.values.items())
                   if key not in ("medium", "index", "threads"))

    def listed(option):
        return [one for value in cell.all_values(option) for one in split_list(value)]
    for index, phase, threads in itertools.product(listed("--index"), listed("--phases") + listed("--workload"),
                                                   (listed("--threads") or ["1"]) + ["most"]):
        yield case_name(cell.experiment + more, index, threads, phase)


def of_pairs(cell):
    return cell.words[1] == "pairs"


def patterns_of(cell):
    """Phases of YCSB have their own."""
    return cell.value("--pattern").split(",") if cell.value("--pattern") else ["zipfian", "latest"]


def judged_as(cell):
    """The medium that its results are judged on (claims/result_set.py)."""
    return PAIRS if of_pairs(cell) or cell.experiment in BESIDE else cell.medium


def cases_of_stores(cell):
    """As `cases_of`. A phase that is named twice is numbered."""
    def listed(option):
        return cell.value(option).split(",")
    phases = listed("--phases")
    named = [f"{p}-{phases[:n].count(p) + 1}" if p in phases[:n] else p for n, p in enumerate(phases)]
    if of_pairs(cell):
        prefix = prefix_of(cell.experiment, cell.values, "pairs")
        for place in itertools.product(listed("--store"), named, patterns_of(cell), listed("--value"),
                                       listed("--depth")):
            yield case_name_of_pairs(prefix, *place)
        return
    prefix = prefix_of(cell.experiment, cell.values, "volumes")
    for place in itertools.product(listed("--store"), named, listed("--pattern"), listed("--size"), listed("--depth")):
        yield case_name_of_store(prefix, *place)


CASES_OF = {"bench": cases_of, "stores_volumes": cases_of_stores, "stores_pairs": cases_of_stores}


class Experiments(unittest.TestCase):
    def test_all_that_come_with_pmlab_have_a_plan_at_every_scale(self):
        self.assertGreater(len(experiment_names()), 15)
        for name in experiment_names():
            e = load_experiment(name, OPTIONS)
            for scale in SCALES:
                self.assertTrue(plan(e, scale, swept()), name)
            self.assertTrue(e.kind == "microbench" or name in ("answers", "trace") or e.charts, name)

    def test_feed_every_claim_on_one_medium_at_least(self):
        for scale in ("quick", "full"):
            # A claim is fed by one medium alone, or by several: then each may be whole.
            by_medium, fed_by = collections.defaultdict(set), collections.defaultdict(set)
            for e in (load_experiment(name, OPTIONS) for name in experiment_names()):
                for claim in e.claims:
                    fed_by[claim].add(e.name)
                for cell in plan(e, scale, swept()):
                    by_medium[judged_as(cell)].update(CASES_OF.get(e.kind, lambda _: ())(cell))
            others = [claim for claim in every_claim() if not claim.of_memory and not claim.missing
                      and "verify" not in claim.needs]
            self.assertGreater(len(others), 10)
            for claim in others:
                needed = set(claim.cases)
                self.assertTrue(needed, claim.id)
                self.assertTrue(any(needed <= cases for cases in by_medium.values()), f"{claim.id} at scale {scale}")
                for name in needed:
                    self.assertIn(name.split("/")[0], fed_by[claim.id],
                                  f"{name} does not name {claim.id}, which it feeds")
            self.assertLessEqual({f"M{m}" for m in range(1, 27)}, fed_by.keys())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
