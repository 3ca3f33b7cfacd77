# Sourced by try and test: `make_env FOLDER PACKAGE…` makes a Python environment (uv where present, else venv and pip) and
# installs the packages from the checkout's root. PYTHON names the Python to use. Prints the commands it runs.

find_python() {
    local name
    if [ -n "${PYTHON:-}" ]; then
        is_new_enough "$PYTHON" && command -v "$PYTHON" && return
        echo "PYTHON=$PYTHON is no Python 3.11 or later." >&2
        return 1
    fi
    for name in python3 python3.13 python3.12 python3.11 python3.14; do
        is_new_enough "$name" && command -v "$name" && return
    done
    echo "clawmark needs Python 3.11 or later; set PYTHON to one." >&2
    return 1
}

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

run() {
    { printf '+'; printf ' %q' "$@"; echo; } >&2
    "$@"
}

# Whether the environment in $1 is whole and, where PYTHON names one, of that Python's version.
is_whole() {
    [ -x "$1/bin/python" ] || return 1
    command -v uv >/dev/null 2>&1 || "$1/bin/python" -m pip --version >/dev/null 2>&1 || return 1
    [ -z "${PYTHON:-}" ] || [ "$("$1/bin/python" -V 2>&1)" = "$("$PYTHON" -V 2>&1)" ]
}

make_env() {
    local folder=$1 python
    shift
    if ! is_whole "$folder"; then
        python=$(find_python) || exit 1
        if command -v uv >/dev/null 2>&1; then
            run uv venv -q --clear --python "$python" "$folder" || return 1
        else
            run "$python" -m venv --clear "$folder" || return 1
            run "$folder/bin/python" -m pip install -q --disable-pip-version-check --upgrade 'pip>=25.1' || return 1
        fi
    fi
    if command -v uv >/dev/null 2>&1; then
        VIRTUAL_ENV=$folder run uv pip install -q "$@"
    else
        run "$folder/bin/python" -m pip install -q --disable-pip-version-check "$@"
    fi
}
