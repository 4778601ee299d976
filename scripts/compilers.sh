#!/bin/bash
# Usage: scripts/compilers.sh [--here] [--keep DIR] [--help]
#
# The library with other compilers than the two of the build, without a warning: each header alone, and the examples
# with -O2, where g++ finds more. Those of this machine are tried here (clang++-16), those of Debian 13 (g++-13, g++-14,
# clang++-19, with its C++ library; g++-13 is Ubuntu 24.04's, too) in a root folder of that release.
#
#   --here       only those of this machine
#   --keep DIR   a root folder of Debian 13 to use again: made if it is not there, and left
#
# Status: 0 no warning; 1 a warning or an error; 2 wrong usage; 77 no compiler was available.
set -euo pipefail
. "$(dirname "$0")/lib/common.sh"

of_this_machine=(clang++-16)
of_debian_13=(g++-13 g++-14 clang++-19)
# check_layers is Python; headers of the media that need a library include those of the library.
debian_13_packages=(g++-13 g++-14 clang-19 python3 libpmemobj-dev libjemalloc-dev libnuma-dev liburing-dev libxxhash-dev)

here=no keep=
while [ $# -gt 0 ]; do
  case $1 in
    --here) here=yes ;;
    --keep) [ $# -gt 1 ] || die "--keep needs a folder"; keep=$2; shift ;;
    --help | -h) print_help; exit 0 ;;
    *) die "unknown option $1; see --help" ;;
  esac
  shift
done

# Runs in a shell of its own, also below another root: compilers, and then the source's folder as the current one.
try_compilers='
warnings="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror"
status=0
for compiler; do
  flags=""
  for flag in $warnings; do flags="$flags --flag=$flag"; done
  good=yes
  python3 scripts/check_layers --compile library --compiler "$compiler" $flags || good=no
  for source in examples/*.cpp tests/packages/consumer/in_dram.cpp; do
    "$compiler" -std=c++20 -O2 $warnings $(python3 scripts/check_layers --includes) -c -o /dev/null "$source" || good=no
  done
  version=$("$compiler" --version | head -1)
  if [ $good = yes ]; then echo "$compiler: no warning ($version)"; else echo "$compiler: WARNINGS ($version)"; status=1; fi
done
exit $status
'

tried=0 status=0
cd "$root"
for compiler in "${of_this_machine[@]}"; do
  if ! command -v "$compiler" >/dev/null; then
    echo "$compiler: not tried, it is not here: apt-get install ${compiler/++/}"
    continue
  fi
  tried=1
  sh -c "$try_compilers" try "$compiler" || status=1
done
if [ $here = yes ]; then
  [ $tried = 1 ] || exit 77
  exit $status
fi

other=$keep
if [ -z "$other" ]; then
  other=$(mktemp -d)
  trap 'rm -rf "$other"' EXIT
fi
made=0
if [ ! -e "$other/usr/bin/g++-14" ]; then
  "$scripts/debian_root" trixie "$other" "${debian_13_packages[@]}" || made=$?
fi
if [ $made != 0 ]; then
  echo "${of_debian_13[*]}: not tried, there is no root folder of Debian 13"
  [ $tried = 1 ] || exit 77
  exit $status
fi
rm -rf "$other/source"
mkdir -p "$other/source"
tar -c CMakeLists.txt base media indexes cache hybrid strings stores checker bench microbench tools examples scripts docs \
  tests/packages | tar -C "$other/source" -x --no-same-owner
chroot "$other" sh -c "cd /source; $try_compilers" try "${of_debian_13[@]}" || status=1
exit $status
