#!/bin/bash
# Usage: scripts/release.sh [--out DIR] [--raw FOLDER] [--draft] [--help]
#
# Makes a release of the commit that is checked out. DIR (build/release-files) then holds
#
#   pmlab-VERSION.tar.gz     the source; the one archive that every package is built from
#   pmlab-VERSION.md         the changes of this version, from CHANGELOG.md
#   vcpkg/pmlab/             an overlay port for vcpkg, with the checksum of the archive
#   spack/pmlab/             a package repository for Spack, with the checksum of the archive
#   pmlab-VERSION-raw.tar.gz with --raw: the results behind results/quick, which `pmlab report --compare` reads
#   SHA256SUMS               the checksums of all of them: sha256sum -c SHA256SUMS
#
# The version is that of the file VERSION. Everything else that states one (CITATION.cff, packaging/) must agree.
# Equal commits give equal bytes: times in the archive are that of the commit, names are sorted, owners are left out.
#
#   --raw FOLDER   the folder of `pmlab run` that results/quick was published from: its manifest, raw/ and claims/
#   --draft   a trial: files are taken as they are in the working tree, committed or not, and the changes are those of
#             the section "Unreleased" if this version has none. Untracked files are never part of a release.
#
# Status: 0 made; 1 this tree cannot be released: the reason is printed; 2 wrong usage.
set -euo pipefail
. "$(dirname "$0")/lib/common.sh"

out=$root/build/release-files
draft=no
raw=
while [ $# -gt 0 ]; do
  case $1 in
    --out) [ $# -gt 1 ] || die "--out needs a folder"; out=$2; shift ;;
    --raw) [ $# -gt 1 ] || die "--raw needs a folder"; raw=$2; shift ;;
    --draft) draft=yes ;;
    --help | -h) print_help; exit 0 ;;
    *) die "unknown option $1; see --help" ;;
  esac
  shift
done

refuse() { say "release.sh: $*"; exit 1; }

export LC_ALL=C TZ=UTC
unset GZIP TAR_OPTIONS GIT_DIR GIT_WORK_TREE
git=(git -C "$root")
[ "$("${git[@]}" rev-parse --show-toplevel 2>/dev/null)" = "$(cd "$root" && pwd -P)" ] ||
  refuse "$root is no git repository of its own; a release is made from a clone"

version=$(cat "$root/VERSION")
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || refuse "VERSION is '$version'; it must be like 1.2.3"

# must_state FILE PATTERN: the first line of FILE with PATTERN, a sed expression with the version as \1, states VERSION.
must_state() {
  local stated
  stated=$(sed -nE "s/$2/\\1/p" "$root/$1" | head -1)
  [ "$stated" = "$version" ] || refuse "$1 states version '$stated', and VERSION is $version; make them equal"
}
must_state CITATION.cff '^version: (.*)$'
must_state CITATION.bib '^ *version *= *[{](.*)[}],$'
must_state packaging/debian/changelog '^pmlab \((.*)-[^-]*\) .*$'
must_state packaging/vcpkg/vcpkg.json '^ *"version": "(.*)",$'

if [ $draft = no ] && [ -n "$("${git[@]}" status --porcelain --untracked-files=no)" ]; then
  refuse "there are changes that are not committed; commit them, or try with --draft"
fi

if [ -n "$raw" ] && [ ! -d "$raw/raw" ]; then
  refuse "$raw has no raw/; give a folder that 'pmlab run --out' wrote, not one that was published"
fi

# The section of CHANGELOG.md below "## NAME", without empty lines at its ends.
section() {
  awk -v name="$1" '$1 == "##" { inside = ($2 == name || $2 == "[" name "]"); next } inside' "$root/CHANGELOG.md" |
    sed -e '/./,$!d' | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}'
}
changes=$(section "$version")
if [ -z "$changes" ] && [ $draft = yes ]; then changes=$(section Unreleased); fi
[ -n "$changes" ] || refuse "CHANGELOG.md has no section '## $version'; rename 'Unreleased', or try with --draft"

mkdir -p "$out"
out=$(cd "$out" && pwd)
name=pmlab-$version
time=$("${git[@]}" log -1 --format=%ct)

unfinished=$(mktemp -d "$out/.unfinished.XXXXXX")
trap 'rm -rf "$unfinished"' EXIT

# Which commit a build of the archive names in its results: git describe has no repository there.
commit=$("${git[@]}" describe --always --dirty --abbrev=12)
printf '%s\n' "$commit" >"$unfinished/COMMIT"

# A file that is deleted, but not yet committed, is left out of a draft.
"${git[@]}" ls-files -z | (cd "$root" && while IFS= read -r -d '' file; do
  if [ -e "$file" ] || [ -L "$file" ]; then printf '%s\0' "$file"; fi
done) >"$unfinished/files"
# The owner and the bits of permission differ from clone to clone; executable files stay so.
tar=(tar --format=gnu --mtime="@$time" --owner=0 --group=0 --numeric-owner --mode=u+rw,go=u,go-w
  --no-recursion "--transform=flags=rhS;s,^,$name/,")
"${tar[@]}" -C "$root" --null --verbatim-files-from -T "$unfinished/files" -cf "$unfinished/source.tar"
"${tar[@]}" -C "$unfinished" -rf "$unfinished/source.tar" COMMIT
gzip -9n <"$unfinished/source.tar" >"$unfinished/$name.tar.gz"

# The results of another run have other times, so the bytes of two runs differ.
if [ -n "$raw" ]; then
  results=()
  for part in manifest.json raw claims; do [ ! -e "$raw/$part" ] || results+=("$part"); done
  tar --format=gnu --sort=name --mtime="@$time" --owner=0 --group=0 --numeric-owner --mode=u+rw,go=u,go-w,a+X \
    "--transform=flags=r;s,^,$name-raw/," -C "$raw" -c "${results[@]}" | gzip -9n >"$unfinished/$name-raw.tar.gz"
fi

printf '# pmlab %s\n\n%s\n' "$version" "$changes" >"$unfinished/$name.md"

# The recipes that name the archive by its checksum cannot be inside it.
sha256=$(sha256sum <"$unfinished/$name.tar.gz" | cut -d' ' -f1)
sha512=$(sha512sum <"$unfinished/$name.tar.gz" | cut -d' ' -f1)
filled() { sed -e "s/@VERSION@/$version/g" -e "s/@SHA256@/$sha256/g" -e "s/@SHA512@/$sha512/g" "$root/packaging/$1"; }
mkdir -p "$unfinished"/{vcpkg/pmlab,spack/pmlab/packages/pmlab}
filled vcpkg/portfile.cmake.in >"$unfinished/vcpkg/pmlab/portfile.cmake"
filled vcpkg/vcpkg.json >"$unfinished/vcpkg/pmlab/vcpkg.json"
filled vcpkg/usage >"$unfinished/vcpkg/pmlab/usage"
filled spack/package.py.in >"$unfinished/spack/pmlab/packages/pmlab/package.py"
filled spack/repo.yaml >"$unfinished/spack/pmlab/repo.yaml"

rm -r "$unfinished"/{COMMIT,files,source.tar}
(cd "$unfinished" && find . -type f -printf '%P\n' | sort | xargs sha256sum) >"$out/.SHA256SUMS"
rm -rf "$out/vcpkg" "$out/spack"
mv "$unfinished"/* "$out"
mv "$out/.SHA256SUMS" "$out/SHA256SUMS"
say "release: $out/$name.tar.gz, of commit $commit"
# A tag that was pushed is there for good: the maintainer sets it, when the files have been looked at.
[ $draft = yes ] || say "to publish it: git tag -a v$version -m 'pmlab $version' && git push origin v$version"
