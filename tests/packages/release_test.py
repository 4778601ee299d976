#!/usr/bin/env python3
"""scripts/release.sh: equal trees give equal bytes; version and changelog are checked."""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

from release import SKIPPED, SOURCE, VERSION, is_repository, run

PERSON = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_COMMITTER_NAME": "A",
          "GIT_COMMITTER_EMAIL": "a@example.org", "GIT_CONFIG_GLOBAL": os.devnull}


def hashes_of(folder):
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
            for p in sorted(folder.rglob("*")) if p.is_file()}


class ReleaseTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="pmlab-release-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)

    def clone(self, name, umask="022"):
        """A clone of this working tree with its changes committed, and a changelog of this version."""
        tree = self.folder / name
        listed = run("git", "-C", SOURCE, "ls-files", "-z").split("\0")
        files = [f for f in listed if f and (SOURCE / f).exists() and not f.startswith("results/quick/")]
        script = f'umask {umask}; mkdir -p "$1"; tar -C "$2" --null -T - -c | tar -C "$1" --no-same-permissions -x'
        subprocess.run(["bash", "-euc", script, "clone", str(tree), str(SOURCE)], input="\0".join(files).encode(),
                       check=True)
        changelog = tree / "CHANGELOG.md"
        changes = changelog.read_text()
        if f"\n## {VERSION}" not in changes:  # it is not released yet
            changelog.write_text(changes.replace("## Unreleased", f"## {VERSION} - 2000-01-01", 1))
        when = {"GIT_AUTHOR_DATE": "@946684800 +0000", "GIT_COMMITTER_DATE": "@946684800 +0000"}
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "a commit"]):
            run("git", "-C", tree, *words, env={**os.environ, **PERSON, **when})
        return tree

    def release(self, tree, out, *options, status=0, **environment):
        return run(tree / "scripts/release.sh", "--out", out, *options, status=status,
                   env={**os.environ, **PERSON, **environment})

    def test_equal_commits_give_equal_bytes(self):
        """Two clones have other permissions and times, in another time zone and language."""
        one, two = self.clone("one"), self.clone("two", umask="077")
        for path in (two / "README.md", two / "scripts/run.sh"):
            os.utime(path, (1, 1))
        self.release(one, self.folder / "out-one")
        self.release(two, self.folder / "out-two", TZ="Asia/Tokyo", LANG="de_DE.UTF-8", LC_ALL="", GZIP="-1",
                     TAR_OPTIONS="--exclude=README.md")
        self.release(two, self.folder / "out-two")  # over the old files
        first = hashes_of(self.folder / "out-one")
        self.assertEqual(list(first), list(hashes_of(self.folder / "out-two")))
        self.assertEqual(first, hashes_of(self.folder / "out-two"))
        self.assertEqual(sorted(first), sorted(["SHA256SUMS", f"pmlab-{VERSION}.md", f"pmlab-{VERSION}.tar.gz",
                                                "spack/pmlab/packages/pmlab/package.py", "spack/pmlab/repo.yaml",
                                                "vcpkg/pmlab/portfile.cmake", "vcpkg/pmlab/usage",
                                                "vcpkg/pmlab/vcpkg.json"]))
        self.checks_checksums(self.folder / "out-one")
        self.holds_the_tree(one, self.folder / "out-one")

    def checks_checksums(self, out):
        self.assertNotIn("FAILED", run("sha256sum", "-c", "SHA256SUMS", cwd=out))
        archive = (out / f"pmlab-{VERSION}.tar.gz").read_bytes()
        self.assertIn(hashlib.sha512(archive).hexdigest(), (out / "vcpkg/pmlab/portfile.cmake").read_text())
        self.assertIn(hashlib.sha256(archive).hexdigest(), (out / "spack/pmlab/packages/pmlab/package.py").read_text())
        self.assertTrue((out / f"pmlab-{VERSION}.md").read_text().startswith(f"# pmlab {VERSION}\n\n### Added\n"))
        for path in out.rglob("*"):
            if path.is_file() and path.suffix != ".gz":
                self.assertNotRegex(path.read_text(), r"@[A-Z0-9]+@")

    def holds_the_tree(self, tree, out):
        with tarfile.open(out / f"pmlab-{VERSION}.tar.gz") as archive:
            members = {m.name.removeprefix(f"pmlab-{VERSION}/"): m for m in archive.getmembers()}
            commit = archive.extractfile(members["COMMIT"]).read().decode().strip()
        listed = set(run("git", "-C", tree, "ls-files", "-z").split("\0")) - {""}
        self.assertEqual(set(members), listed | {"COMMIT"})
        self.assertEqual(commit, run("git", "-C", tree, "describe", "--always", "--abbrev=12").strip())
        self.assertEqual({(m.uid, m.gid, m.uname, m.gname, m.mtime) for m in members.values()},
                         {(0, 0, "", "", 946684800)})
        self.assertEqual(members["scripts/run.sh"].mode, 0o755)
        self.assertEqual(members["README.md"].mode, 0o644)

    def test_raw_results_become_an_archive(self):
        tree = self.clone("raw")
        results = self.folder / "results"
        for file in ("manifest.json", "raw/one/cell.json", "claims/aep.json", "index.html", "logs/one.log"):
            (results / file).parent.mkdir(parents=True, exist_ok=True)
            (results / file).write_text(file)
        for out in ("raw-one", "raw-two"):
            self.release(tree, self.folder / out, "--raw", results)
            os.utime(results / "manifest.json", (1, 1))
        name = f"pmlab-{VERSION}-raw.tar.gz"
        self.assertEqual(hashes_of(self.folder / "raw-one")[name], hashes_of(self.folder / "raw-two")[name])
        self.assertIn(name, (self.folder / "raw-one" / "SHA256SUMS").read_text())
        with tarfile.open(self.folder / "raw-one" / name) as archive:
            files = sorted(m.name for m in archive.getmembers() if m.isreg())
        self.assertEqual(files, [f"pmlab-{VERSION}-raw/{f}" for f in ("claims/aep.json", "manifest.json",
                                                                      "raw/one/cell.json")])
        shutil.rmtree(results / "raw")
        self.assertIn("has no raw/", self.release(tree, self.folder / "raw-none", "--raw", results, status=1))

    def test_refusals(self):
        tree = self.clone("refusals")
        out = self.folder / "refused"

        def says(expected, path, old, new):
            before = (tree / path).read_text()
            self.assertIn(old, before)
            (tree / path).write_text(before.replace(old, new, 1))
            run("git", "-C", tree, "commit", "-qam", "x", env={**os.environ, **PERSON})
            self.assertIn(expected, self.release(tree, out, status=1))
            (tree / path).write_text(before)
            run("git", "-C", tree, "commit", "-qam", "y", env={**os.environ, **PERSON})

        for path in ("CITATION.cff", "CITATION.bib", "packaging/debian/changelog", "packaging/vcpkg/vcpkg.json"):
            with self.subTest(path):
                says(f"{path} states version '9.8.7', and VERSION is {VERSION}", path, VERSION, "9.8.7")
        says("VERSION is 'one'; it must be like 1.2.3", "VERSION", VERSION, "one")
        says(f"CHANGELOG.md has no section '## {VERSION}'", "CHANGELOG.md", f"## {VERSION}", "## Unreleased")
        (tree / "README.md").write_text("changed\n")
        self.assertIn("not committed", self.release(tree, out, status=1))
        self.assertFalse(list(out.glob("*")) if out.exists() else [])
        self.assertRegex(self.release(tree, out, "--draft"), "of commit .*-dirty")
        self.assertIn("unknown option --drift", self.release(tree, out, "--drift", status=2))
        shutil.rmtree(tree / ".git")
        self.assertIn("no git repository of its own", self.release(tree, out, status=1))

    def test_a_build_of_the_archive_names_the_commit(self):
        """The commit is the release's, not that of a repository which the archive was unpacked in."""
        tree = self.clone("around") / "unpacked"
        self.release(tree.parent, self.folder / "commit-out", "--draft")
        with tarfile.open(self.folder / "commit-out" / f"pmlab-{VERSION}.tar.gz") as archive:
            archive.extractall(tree)
        unpacked, output = tree / f"pmlab-{VERSION}", self.folder / "build_info.cpp"
        (unpacked / "COMMIT").write_text("0123456789ab\n")
        run("cmake", "-D", f"SOURCE={unpacked / 'bench/support'}", "-D", f"OUTPUT={output}", "-D", "BUILD_FLAGS=-O3",
            "-D", f"BUILD_VERSION={VERSION}", "-P", unpacked / "bench/support/build_info.cmake")
        self.assertIn('build_commit() noexcept { return R"(0123456789ab)"; }', output.read_text())

    def test_debian_knows_every_package(self):
        """Each that scripts/packages.txt requires is a dependency, but for those of the tests and of a clone."""
        of_tests = {"libgtest-dev", "libgmock-dev", "git"}
        required = re.findall(r"(?m)^required +(\S+)", (SOURCE / "scripts/packages.txt").read_text())
        control = set(re.findall(r"[a-z0-9][a-z0-9+.-]+", (SOURCE / "packaging/debian/control").read_text()))
        self.assertEqual(set(required) - control - of_tests, set())

    def test_a_draft_has_the_working_tree(self):
        """Changed files as they are, without those that are deleted; the changes are those that are not released
        yet."""
        tree = self.clone("draft")
        (tree / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n### Added\n- A thing.\n\n## 0.0.1\n- "
                                           "Older.\n")
        (tree / "README.md").unlink()
        (tree / "untracked").touch()
        out = self.folder / "draft-out"
        self.release(tree, out, "--draft")
        self.assertEqual((out / f"pmlab-{VERSION}.md").read_text(), f"# pmlab {VERSION}\n\n### Added\n- A thing.\n")
        with tarfile.open(out / f"pmlab-{VERSION}.tar.gz") as archive:
            names = archive.getnames()
            self.assertNotIn(f"pmlab-{VERSION}/README.md", names)
            self.assertNotIn(f"pmlab-{VERSION}/untracked", names)
            self.assertTrue(archive.extractfile(f"pmlab-{VERSION}/COMMIT").read().strip().endswith(b"-dirty"))


if __name__ == "__main__":
    if not is_repository(SOURCE):
        print("a release is made from a clone, and this source tree is none")
        sys.exit(SKIPPED)
    unittest.main()
