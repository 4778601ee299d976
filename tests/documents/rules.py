"""How commands_test.py treats each command of a document: the first rule whose pattern occurs in "PAGE: COMMAND"."""
import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Run:
    """The command is run. `options`: in place of those that it has, or added; None: taken away. `long`: only in the
    long part. `status`: of its exit; where that is not 0, the page has the words `stated`."""

    options: dict = dataclasses.field(default_factory=dict)
    long: bool = False
    status: int = 0
    stated: str = ""


@dataclasses.dataclass(frozen=True)
class Elsewhere:
    """Another test runs the command, or more than it."""

    test: str  # its path in the repository


@dataclasses.dataclass(frozen=True)
class NotHere:
    """No test can run the command, for this reason."""

    reason: str


# Sizes of every run of a command of pmlab, if its rule has no others. An option is not added to a command that has one
# of those after it.
SMALL = {
    "bench": {"--records": ("1k", "--trace"), "--operations": ("500", "--trace")},
    "verify": {"--budget": (None,), "--rounds": ("1",), "--quiet": ("",)},
    "stores volumes": {"--operations": ("50",), "--volume-bytes": ("4M",), "--device-bytes": ("64M",),
                       "--repeat": ("1",)},
    "stores pairs": {"--records": ("200",), "--operations": ("100",), "--repeat": ("1",)},
    "run": {"--dry-run": ("", "--list", "--export")},
}

RULES = [(re.compile(pattern), treatment) for pattern, treatment in [
    # Pages with a test of their own.
    (r"^docs/tutorial\.md: ", Elsewhere("tests/documents/tutorial_test.py")),
    (r"^docs/own-index\.md: ", Elsewhere("tests/own_index/document_test.py")),

    # To install.
    (r": git clone ", NotHere("needs a network")),
    (r": scripts/run\.sh", NotHere("installs packages as root, and takes up to an hour; each of its steps has a test")),
    (r"scripts/setup\.sh", Elsewhere("tests/scripts/setup_test.py")),
    (r"^README\.md: (cmake -S|cmake --install|export PKG_CONFIG|c\+\+ .*embed|\./embed)",
     Elsewhere("tests/packages/packages_test.py")),
    (r": cmake (-S|--install headers)", Elsewhere("tests/packages/ways_test.py")),
    (r": cmake --(preset|build) ", NotHere("compiles for a quarter of an hour what this test runs")),
    (r": cmake --install build/release", Elsewhere("tests/experiments/installed_test.py")),
    (r": (tar xf|cp -r packaging/debian|apt-get|dpkg-buildpackage)",
     Elsewhere("tests/packages/program_package_test.py")),
    (r": podman ", Elsewhere("tests/packages/container_test.py")),
    (r": (conan|vcpkg|spack|pip) ", Elsewhere("tests/packages/ways_test.py")),
    (r": scripts/release\.sh", Elsewhere("tests/packages/release_test.py")),

    # Examples, and programs of others.
    (r"examples/own_medium\.cpp|: \./own_medium", Elsewhere("tests/examples/examples_test.py")),
    (r"examples/(block_device|tiered_events)\.cpp|\./(block_device|tiered_events|kv_ssd) |examples/kv_ssd\.c",
     Elsewhere("tests/examples/examples_test.py")),
    (r": (nbdinfo|nbdcopy|kill -9) ", Elsewhere("tests/examples/examples_test.py")),
    (r"PiBench build/", NotHere("PiBench is a program of others; tools/tests/pibench has its interface and these "
                                "libraries")),
    (r"snakemake --", Elsewhere("tests/cluster/slurm_test.py")),

    # Scripts of the repository.
    (r": scripts/test\.sh", Elsewhere("tests/scripts/test_sh_test.py")),
    (r": scripts/campaign\.sh", NotHere("takes days; every command that it calls has a test")),
    (r": scripts/which_index", Elsewhere("tests/experiments/which_index_test.py")),
    (r"pinned_test\.py", Elsewhere("tests/experiments/pinned_test.py")),
    (r": scripts/compare_device_model", Elsewhere("tests/scripts/compare_device_model_test.py")),
    (r": scripts/real_keys ", Run()),
    (r": scripts/make_traces\.sh", Run({"--records": "1000", "--operations": "1000"})),
    (r": cp bench/", Run()),
    (r"^README\.md: scripts/pmlab-c\+\+", Run(long=True)),
    (r"^docs/instrument\.md: scripts/pmlab-c\+\+", Run(long=True)),
    (r"libslots\.so", Elsewhere("tests/own_index/hosts_test.py")),

    # Verification.
    (r"^README\.md: .*libtable\.so", Run(long=True, status=1, stated="finds its planted bug")),
    (r"verify --program", Elsewhere("checker/tests/verify/program_test.py")),
    (r"verify --io-log", Elsewhere("checker/tests/verify/io_log_test.cpp")),
    (r"verify --subject", Elsewhere("checker/tests/verify/all_test.py")),
    (r"verify .*--scoreboard", Elsewhere("checker/tests/verify/scoreboard/command_test.py")),
    (r"verify --index NAME", Elsewhere("tests/scripts/adding_an_index_test.py")),
    (r"libmine\.so --all ", Elsewhere("checker/tests/verify/all_test.py")),
    (r"verify .*--as-is", Elsewhere("checker/tests/verify/hosts_test.py")),
    (r": pmlab pod .*--omit", Run({"--rounds": "10", "--folder": "."}, status=1, stated="must find a violation")),
    (r": pmlab pod ", Run({"--rounds": "1"})),
    (r"verify --library", Run(long=True)),
    (r"verify .*--performance", Run(long=True)),
    (r"verify .*--exhaustive", Run({"--operations": "20", "--rounds": None})),
    (r"verify .*--every-death", Run({"--operations": "2", "--rounds": None})),
    (r"verify .*--seeds 1\.\.100 ", Run({"--seeds": "1..1", "--rounds": None})),
    (r"verify .*--seeds 101\.\.200 ", Run({"--seeds": "2..2", "--rounds": None})),
    (r"verify .*--seeds ", Run({"--seeds": "1..2", "--rounds": None}, long=True)),
    (r"^docs/(README|cache|hybrid)\.md: pmlab verify|cceh,fast_fair,tiered", Run(long=True)),
    (r"pmlab verify ", Run()),

    # Measurements.
    (r"bench --library build/release/lib", Run(long=True)),
    (r"bench --library", Elsewhere("tests/own_index/bench_test.py")),
    (r"bench --index NAME", Elsewhere("tests/scripts/adding_an_index_test.py")),
    (r"bench .*(emulated:|--repeat)", Run({"--repeat": "1"}, long=True)),
    (r"bench .*--trace", Run()),
    (r"pmlab bench .*", Run()),
    (r"stores (volumes|pairs) ", Run(long=True)),
    (r"microbench .*--list", Run()),
    (r"microbench .*--prefetchers off", NotHere("needs root, and a night")),
    (r"microbench --device file:", Elsewhere("microbench/tests/drive/program_test.py")),
    (r"microbench --device ", Run({"--filter": "random-read"}, long=True)),
    (r"microbench --medium simulated.*--suite quick", Run({"--filter": "read-latency"}, long=True)),
    (r"microbench --medium simulated", Run({"--filter": "idle-read"}, long=True)),
    (r"microbench", Elsewhere("microbench/tests/memory/program_test.py")),
    (r"pmlab calibrate", Elsewhere("microbench/tests/memory/calibrate_test.py")),

    # Experiments, claims, pages.
    (r"pmlab claims --list", Run()),
    (r"pmlab claims", Elsewhere("tests/claims/program_test.py")),
    (r"pmlab run ", Run()),
    (r"pmlab merge", Elsewhere("tests/cluster/merge_test.py")),
    (r"pmlab compare", Run()),
    (r"pmlab report", Elsewhere("tests/scripts/report_test.py")),

    # Pools.
    (r"pmlab pool ", Run()),
]]
