#!/bin/bash
# Usage: scripts/api.sh [--help]
#
# Builds the API reference from the comments of the headers: build/api/html/index.html. A public name without a comment
# is an error. Needs doxygen (scripts/setup.sh --with-dev-tools installs it).
#
# Status: 0 built; 1 something is not documented, or its comment cannot be read; 2 wrong usage, no doxygen.
set -euo pipefail
. "$(dirname "$0")/lib/common.sh"

case ${1:-} in
  "") ;;
  --help | -h) print_help; exit 0 ;;
  *) die "unknown option $1; see --help" ;;
esac
command -v doxygen >/dev/null || die "there is no doxygen; scripts/setup.sh --with-dev-tools installs it"

mkdir -p "$root/build/api"
cd "$root/build/api"
# Headers are named as programs include them; the link stands for a path that the configuration can name.
ln -sfn "$root" source
trap 'rm source' EXIT
rm -rf html
doxygen source/docs/Doxyfile || exit 1
say "api: build/api/html/index.html"
