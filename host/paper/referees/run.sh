#!/bin/sh
# Installs the referees by package name and runs them; README.md beside this file has what they said.
#
#   run.sh [bilevel] [trackers] [cleaning]        all three by default
#
# PYTHON          Python for the first two (default: python3, and python3.13 for trackers, which needs that or a newer one)
# TORCH_PYTHON    a Python with PyTorch and NumPy for the third (default: /usr/bin/python3)
# FABSWARM        the command with the feature `large` (default: it is built)
set -eu
cd "$(dirname "$0")/../../.."
here=host/paper/referees
out=target/referees
referees=${*:-bilevel trackers cleaning}
mkdir -p "$out"
[ -n "${FABSWARM:-}" ] || cargo build --release --features large
FABSWARM=$(realpath "${FABSWARM:-target/release/fabswarm}")
export FABSWARM OMP_NUM_THREADS=1

fail() {
    printf 'error: %s\nhelp: %s\n' "$1" "$2" >&2
    exit 1
}

# install NAME LEAST PYTHON PACKAGES...: a virtual environment NAME, of a Python not older than LEAST, with PACKAGES.
install() {
    name=$1 least=$2 python=${PYTHON:-$3}
    shift 3
    "$python" -c "import sys; sys.exit(sys.version_info < ($least))" 2>/dev/null ||
        fail "$python is not Python ($least) or newer, which the referee $name needs" \
            "install it (Debian 13: apt install python3.13 python3.13-venv; pyenv: pyenv install 3.13) or set PYTHON"
    venv=$out/$name
    [ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
    "$venv/bin/pip" install --quiet "$@"
}

for referee in $referees; do
    case $referee in
    bilevel)
        # The Python package is built here: some minutes.
        install bilevel "3, 10" python3 benchopt pandas pyarrow ./host/python
        rm -f "$out/bilevel.parquet"
        "$venv/bin/benchopt" run "$here/bilevel" --config "$here/bilevel/config.yml" --no-cache --no-plot \
            --output "$out/bilevel.parquet" >"$out/bilevel.log" 2>&1 || fail "benchopt failed" "read $out/bilevel.log"
        "$venv/bin/python" "$here/bilevel/table.py" "$out/bilevel.parquet"
        ;;
    trackers)
        # decent-array, which decent-bench needs, is compiled where PyPI has no wheel of it: some minutes, with gcc.
        install trackers "3, 13" python3.13 decent-bench
        "$venv/bin/python" "$here/trackers.py" "$FABSWARM" --problem classification --rounds 960
        "$venv/bin/python" "$here/trackers.py" "$FABSWARM" --problem regions
        ;;
    cleaning)
        python=${TORCH_PYTHON:-/usr/bin/python3}
        "$python" -c 'import numpy, torch' 2>/dev/null ||
            fail "$python has no PyTorch" "apt install python3-torch python3-numpy, or set TORCH_PYTHON to one that has (pip install torch numpy)"
        "$python" "$here/cleaning.py" "$FABSWARM"
        ;;
    *) fail "there is no referee $referee" "name bilevel, trackers or cleaning" ;;
    esac
done
