#!/bin/sh
# Builds rbt, runs the project beside this script, and reads what it left with
# two public readers of dbt's artifacts, in a virtual environment that is thrown
# away ($ARTIFACTS_VENV names one to use instead). Not part of the test run: it
# needs Python and packages.
set -eu
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
venv=${ARTIFACTS_VENV:-}
if [ -z "$venv" ]; then
	venv=$work/venv
	python3 -m venv "$venv"
	"$venv/bin/pip" install --quiet 'dbt-artifacts-parser==0.15.*' 'dbt-bouncer==4.*'
fi
(cd "$here/../.." && go build -o "$work/rbt" ./cmd/rbt)
cp -r "$here/project" "$work/project"
cp "$here/bouncer.yml" "$work/project/dbt-bouncer.yml"
cd "$work/project"
"$work/rbt" run --quiet
"$work/rbt" source freshness --quiet
"$work/rbt" catalog --quiet
"$venv/bin/python" "$here/read.py" target
"$venv/bin/dbt-bouncer" run --config-file dbt-bouncer.yml
# What a run that fails leaves is read as well.
echo "select error('no') as x" >models/orders.sql
"$work/rbt" run --quiet >/dev/null && exit 1
"$venv/bin/python" "$here/read.py" target
echo 'the artifacts are read by both'
