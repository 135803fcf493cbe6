# Sourced by the commands beside it. Sets `root`, `scripts` and `python` (an interpreter that has everything in
# requirements.txt), making or renewing `.venv` when it is not what requirements.txt says.
set -euo pipefail

scripts=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
root=$(dirname "$scripts")
python=$root/.venv/bin/python

# How messages name a command that can be called, and where contracts/ and fixtures/ are when called from elsewhere.
export ASSISTED_BENCHMARK_COMMAND=$scripts/assisted-benchmark ASSISTED_BENCHMARK_ROOT=$root

# Only the checkout's code is imported, and nothing from where the command was called.
export PYTHONPATH=$scripts PYTHONSAFEPATH=1 PYTHONNOUSERSITE=1
unset PYTHONHOME

refuse() {
  printf '%s: %s\n  %s\n' "${0##*/}" "$1" "$2" >&2
  exit 2
}

case $(uname -s) in
  Linux | Darwin) ;;
  *) refuse "$(uname -s) is not supported" "run it on Linux or macOS" ;;
esac

# Prints the first Python that is new enough.
new_enough() {
  local each
  for each in python3.13 python3.12 python3.11 python3 python; do
    if "$each" -c 'import sys; sys.exit(not sys.version_info >= (3, 11))' 2>/dev/null; then
      command -v "$each"
      return
    fi
  done
  refuse "no Python 3.11 or newer was found" "install one, so that \`python3\` on the PATH is it"
}

if ! { [ -x "$python" ] && cmp -s "$root/requirements.txt" "$root/.venv/requirements.txt"; }; then
  found=$(new_enough) || exit
  "$found" "$scripts/setup_venv.py" "$root" || exit 2
fi
