#!/bin/sh
# Runs weekly.yml once, never twice at the same time. Prints only after a failure.
set -eu
cd "$(dirname "$0")"
umask 077

exec 9>lock
if ! flock --nonblock 9; then
	echo "the previous run is still active" >&2
	exit 75
fi

set -a # what the file sets, agent-ci sees; its commands do not
. ./credentials
set +a

# Run directories are kept for a month.
agent-ci runs prune --older-than 30d --resumable --unpublished >prune.log 2>&1 || cat prune.log

status=0
agent-ci run weekly.yml >last.log 2>&1 || status=$?
if [ "$status" -ne 0 ]; then cat last.log; fi
exit "$status"
