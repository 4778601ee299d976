"""Shared by the tests of packages: a release of this working tree, commands without a network, and the consumer."""

import functools
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tarfile

SOURCE = pathlib.Path(os.environ.get("PMLAB_SOURCE") or pathlib.Path(__file__).resolve().parents[2])
CONSUMER = SOURCE / "tests/packages/consumer"
EXAMPLE = SOURCE / "examples/embed.cpp"
VERSION = (SOURCE / "VERSION").read_text().strip()
SKIPPED = 77  # the exit status of a test that cannot run here


def run(*words, status=0, **how):
    """Standard output and error of a command that must end with `status`."""
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False, **how)
    called = " ".join(map(str, words))
    assert done.returncode == status, f"{called}: status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


@functools.cache
def without_network():
    """The words that run a command in a network of its own, with nothing in it; none, where that is not permitted."""
    for words in (["unshare", "--net"], ["unshare", "--map-current-user", "--net"]):
        if shutil.which("unshare") and subprocess.run([*words, "true"], capture_output=True,
                                                      check=False).returncode == 0:
            return words
    return []


def offline(*words, **how):
    """As `run`, without a network where that is permitted."""
    return run(*without_network(), *words, **how)


def is_repository(folder):
    """Whether a release can be made there."""
    done = subprocess.run(["git", "-C", str(folder), "rev-parse", "--show-toplevel"], capture_output=True, text=True,
                          check=False)
    return done.returncode == 0 and pathlib.Path(done.stdout.strip()).samefile(folder)


def compiler_cache(base, folder=None):
    """The variables by which a build with CMake uses this machine's compiler cache; none, if it has none. `base`: the
    paths below it are equal in every build. `folder`: where the build finds the cache, if not where it is."""
    if not shutil.which("ccache"):
        return {}
    settings = dict(line.split(") ", 1)[1].split(" = ", 1) for line in run("ccache", "-p").splitlines()
                    if " = " in line)
    # debhelper sets a home folder and LC_ALL of its own: the cache would not be found, and compares the language.
    words = ["env", "-u", "LC_ALL", f"LANG={os.environ.get('LANG', 'C.UTF-8')}",
             f"CCACHE_DIR={folder or settings['cache_dir']}",
             f"CCACHE_BASEDIR={base}", "CCACHE_NOHASHDIR=1", f"CCACHE_MAXSIZE={settings['max_size']}",
             f"CCACHE_SLOPPINESS={settings['sloppiness'].replace(', ', ',')}", "ccache"]
    return {"CMAKE_CXX_COMPILER_LAUNCHER": ";".join(words)}


def compiler_cache_folder():
    """Where this machine's compiler cache is."""
    return re.search(r"cache_dir = (.*)", run("ccache", "-p"))[1]


class Release:
    """What scripts/release.sh makes of this working tree, in `folder`, and the source of its archive, unpacked."""

    def __init__(self, folder):
        self.folder = folder / "release"
        run(SOURCE / "scripts/release.sh", "--draft", "--out", self.folder)
        self.archive = self.folder / f"pmlab-{VERSION}.tar.gz"
        self.sha256 = hashlib.sha256(self.archive.read_bytes()).hexdigest()

    def unpack(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(self.archive) as archive:
            archive.extractall(folder)
        return folder / f"pmlab-{VERSION}"


def build_consumer(build, way, *options, pools=False):
    """Configures and builds the consumer's project in folder `build`, and runs its programs."""
    offline("cmake", "-S", CONSUMER, "-B", build, "-G", "Ninja", f"-DWAY={way}", f"-DPOOLS={'ON' if pools else 'OFF'}",
            f"-DEXAMPLE={EXAMPLE}", *options)
    offline("cmake", "--build", build)
    run_consumer(build, pools)


def run_consumer(folder, pools=False):
    said = run(folder / "in_dram")
    assert said == "1000 entries, 21 -> 42\n", said
    pool = folder / "embed.pool"
    for time in (1, 2) if pools else ():
        said = run(folder / "in_a_pool", pool)
        assert said == f"42 -> 4242, run {time}\n", said
