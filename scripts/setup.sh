#!/bin/bash
# Usage: scripts/setup.sh [--minimal] [--with-dev-tools] [--with-cluster-tools] [--with-browser] [--check] [--help]
#
# Installs the packages of scripts/packages.txt that are missing: with apt-get, as root or through sudo, without
# questions. When all are there it does nothing, so it is safe to run again.
#
#   --minimal              only what pmlab needs: not the packages of its peers, without which they are left out
#   --with-dev-tools       also clang, clang-format, clang-tidy, ccache, doxygen, pandas, a kernel for notebooks
#   --with-cluster-tools   also Slurm and Snakemake
#   --with-browser         also Chromium, for the test that opens the report's page (scripts/test.sh --all)
#   --check                installs nothing; lists missing packages, status 1 if anything required is
#
# libpmemobj-cpp-dev is not part of Debian 12. There it comes from release 11 of the mirror that this machine's apt
# uses, checked with Debian's archive keyring, through an apt state of its own: no source is added to this machine.
#
# Status: 0 all required packages are there; 1 one is missing (named, with its purpose); 2 wrong usage.
set -euo pipefail
. "$(dirname "$0")/lib/common.sh"

groups=(required)
check_only=no
minimal=no
for argument in "$@"; do
  case $argument in
    --minimal) minimal=yes ;;
    --with-dev-tools) groups+=(dev) ;;
    --with-cluster-tools) groups+=(cluster) ;;
    --with-browser) groups+=(browser) ;;
    --check) check_only=yes ;;
    --help | -h) print_help; exit 0 ;;
    *) die "unknown option $argument; see --help" ;;
  esac
done

[ $minimal = yes ] || groups+=(optional)

command -v dpkg-query >/dev/null || die "needs a Debian-like system; elsewhere install the packages of scripts/packages.txt"

# The release of Debian that still has libpmemobj-cpp-dev.
older_release=bullseye

as_root() {
  if [ "$(id -u)" = 0 ]; then
    env DEBIAN_FRONTEND=noninteractive "$@"
  elif command -v sudo >/dev/null; then
    sudo env DEBIAN_FRONTEND=noninteractive "$@"
  else
    die "needs root to install packages; run it as root, or install sudo"
  fi
}

install_packages() { as_root apt-get install -y -q --no-install-recommends -o Dpkg::Use-Pty=0 "$@" >&2; }

can_be_had() { [ -n "$(apt-cache policy "$1" 2>/dev/null | awk '$1 == "Candidate:" && $2 != "(none)"')" ]; }

# Installs package $1 from the older release without telling this machine's apt about that release.
install_from_older_release() (
  package=$1
  keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  mirror=$(debian_mirror)
  [ -n "$mirror" ] || { say "  apt here uses no Debian mirror to take $package from"; return 1; }
  [ -r "$keyring" ] || install_packages debian-archive-keyring || return 1

  state=$(mktemp -d)
  trap 'rm -rf "$state"' EXIT
  chmod 755 "$state"  # apt's unprivileged user reads the package from here
  mkdir -p "$state"/lists/partial "$state"/cache/archives/partial
  printf 'deb [signed-by=%s] %s %s main\n' "$keyring" "$mirror" "$older_release" >"$state/sources.list"
  private=(-o Dir::Etc::SourceList="$state/sources.list" -o Dir::Etc::SourceParts=- -o Dir::State::Lists="$state/lists"
    -o Dir::Cache="$state/cache" -o APT::Sandbox::User=root)

  say "  $package is not in this release: taking it from release $older_release of the same mirror"
  apt-get "${private[@]}" -q update >&2 || return 1
  cd "$state"
  apt-get "${private[@]}" -q download "$package" >&2 || return 1
  install_packages "$state/$package"_*.deb
)

missing=()
for group in "${groups[@]}"; do
  mapfile -t -O "${#missing[@]}" missing < <(missing_packages "$group")
done

if [ ${#missing[@]} = 0 ]; then
  say "setup: nothing to do, all packages are there"
  exit 0
fi
say "setup: missing: ${missing[*]}"

if [ $check_only = no ]; then
  as_root apt-get -q update >&2 || say "  apt-get update failed: going on with the package lists that are here"
  ordinary=()
  for package in "${missing[@]}"; do
    can_be_had "$package" && ordinary+=("$package")
  done
  # All at once is quick; one at a time after a failure, so that one bad package does not keep the others out.
  if [ ${#ordinary[@]} -gt 0 ] && ! install_packages "${ordinary[@]}"; then
    for package in "${ordinary[@]}"; do install_packages "$package" || true; done
  fi
  if [ $minimal = no ] && ! is_installed libpmemobj-cpp-dev && ! can_be_had libpmemobj-cpp-dev; then
    install_from_older_release libpmemobj-cpp-dev || true
  fi
fi

status=0
for group in "${groups[@]}"; do
  for package in $(missing_packages "$group"); do
    if [ "$group" = required ]; then
      say "setup: MISSING $package (required), needed for: $(purpose_of "$package")"
      status=1
    else
      say "setup: missing $package (optional), needed for: $(purpose_of "$package")"
    fi
  done
done
[ $status = 0 ] && say "setup: all required packages are there"
exit $status
