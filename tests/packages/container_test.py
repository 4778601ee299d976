#!/usr/bin/env python3
"""packaging/container/Containerfile, built by buildah from a release, and its program run. The base image is Debian's,
where a registry gives it; otherwise one that debootstrap makes from this machine's mirror, and the output states so. A
quarter of an hour; needs root, buildah and debootstrap."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from release import SKIPPED, SOURCE, VERSION, Release, compiler_cache, compiler_cache_folder, is_repository, run

BASE = "localhost/pmlab-base"
# No overlay file systems and no network of their own: these work in a virtual machine's or a container's root, too.
SETTINGS = {"BUILDAH_ISOLATION": "chroot"}


class Buildah:
    def __init__(self, folder):
        self.words = ["buildah", "--storage-driver", "vfs", "--root", str(folder / "store"), "--runroot",
                      str(folder / "run")]

    def __call__(self, *words, **how):
        return run(*self.words, *words, env={**os.environ, **SETTINGS}, **how)

    def said(self, *words):
        """Standard output alone."""
        return subprocess.run([*self.words, *map(str, words)], env={**os.environ, **SETTINGS}, check=True,
                              stdout=subprocess.PIPE, text=True).stdout


def base_image(buildah, folder):
    """The name of the base image, or None if none is available."""
    wanted = next(line.removeprefix("ARG BASE=").strip()
                  for line in (SOURCE / "packaging/container/Containerfile").read_text().splitlines()
                  if line.startswith("ARG BASE="))
    pulled = subprocess.run([*buildah.words, "pull", "--quiet", wanted], env={**os.environ, **SETTINGS},
                            capture_output=True, check=False, timeout=300)
    if pulled.returncode == 0:
        print(f"base image: {wanted}")
        return wanted
    root = folder / "root"
    made = subprocess.run([SOURCE / "scripts/debian_root", "bookworm", root], capture_output=True, text=True,
                          check=False)
    if made.returncode:
        print(f"no {wanted} from a registry, and {made.stderr.strip().splitlines()[-1]}")
        return None
    archive = folder / "root.tar"
    run("tar", "-C", root, "-cf", archive, ".")
    shutil.rmtree(root)
    container = buildah.said("from", "scratch").strip()
    buildah("add", "--quiet", container, archive, "/")
    archive.unlink()
    buildah("commit", "--quiet", "--rm", "--disable-compression", container, BASE)
    print(f"base image: {wanted} is not available here; one was made by debootstrap from this machine's mirror")
    return BASE


def main():
    missing = [program for program in ("buildah", "debootstrap") if not shutil.which(program)]
    if missing or os.getuid() != 0 or not is_repository(SOURCE):
        print(f"missing here: apt-get install {' '.join(missing)}" if missing
              else "only root, in a clone, can try this")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="pmlab-container-") as name:
        folder = pathlib.Path(name)
        buildah = Buildah(folder)
        tree = Release(folder).unpack(folder)
        base = base_image(buildah, folder)
        if base is None:
            return SKIPPED
        began = time.monotonic()
        arguments = [f"BASE={base}"]
        volumes = []
        if cache := compiler_cache("/source", "/ccache"):
            arguments += ["MORE_PACKAGES=ccache", *(f"{name}={value}" for name, value in cache.items())]
            volumes = ["--volume", f"{compiler_cache_folder()}:/ccache"]
        buildah("bud", "--quiet", *(f"--build-arg={a}" for a in arguments), *volumes, "-t", "pmlab", "-f",
                tree / "packaging/container/Containerfile", tree)
        print(f"built in {time.monotonic() - began:.0f} s")
        started = buildah.said("inspect", "--type", "image", "--format",
                               "{{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.Cmd}}", "pmlab").strip()
        assert started == "[pmlab] [doctor]", started
        container = buildah.said("from", "pmlab").strip()

        def pmlab(*words):
            return buildah("run", container, "--", "pmlab", *words)
        assert "cpu" in pmlab("doctor")
        assert VERSION in pmlab("--version")
        assert "cceh" in pmlab("bench", "--index", "cceh", "--medium", "simulated:aep", "--records", "1k",
                               "--operations", "1k")
        pmlab("run", "trace", "--scale", "smoke", "--out", "mine")
        assert "mine/index.html" in pmlab("report", "mine")
    print("the image runs pmlab")
    return 0


if __name__ == "__main__":
    sys.exit(main())
