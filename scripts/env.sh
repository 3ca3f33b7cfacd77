# Sourced by try and test: `make_env FOLDER PACKAGE…` makes a Python environment (uv where present, else venv and pip),
# installs the packages from the checkout's root, and prints the commands it runs.

find_python() {
    local name
    if [ -n "${PYTHON:-}" ] && ! "$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        echo "PYTHON=$PYTHON is no Python 3.11 or later." >&2
        return 1
    fi
    for name in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python3.14; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
    echo "clawmark needs Python 3.11 or later; set PYTHON to one." >&2
    return 1
}

run() {
    echo "+ $*" >&2
    "$@"
}

make_env() {
    local folder=$1 python
    shift
    python=$(find_python) || return 1
    if command -v uv >/dev/null 2>&1; then
        [ -x "$folder/bin/python" ] || run uv venv -q --python "$python" "$folder" || return 1
        VIRTUAL_ENV=$folder run uv pip install -q "$@"
        return
    fi
    if [ ! -x "$folder/bin/python" ]; then
        run "$python" -m venv "$folder" || return 1
        run "$folder/bin/python" -m pip install -q --disable-pip-version-check --upgrade 'pip>=25.1' || return 1
    fi
    run "$folder/bin/python" -m pip install -q --disable-pip-version-check "$@"
}
