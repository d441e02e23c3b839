#!/bin/sh
# Runs a whole job on an example repository: run.sh BINARY. The results are in demo/ at the
# top of this repository. Needs git, go and bash, no network, no keys.
set -eu

if [ $# -ne 1 ]; then
	echo "usage: $0 BINARY" >&2
	exit 2
fi
for program in git go bash; do
	if ! command -v "$program" >/dev/null; then
		echo "The demonstration needs $program, and there is none in PATH." >&2
		exit 2
	fi
done
binary=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "$0")"
example=$(pwd)
demo=$(cd ../.. && pwd)/demo

# Ignores the user's git settings and any repository around this one. The date is fixed, so the
# same files give the same commit: a second run can then reuse the first one's origin.
unset CDPATH GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
quiet_git() {
	GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 \
		GIT_AUTHOR_DATE='2026-01-01T00:00:00Z' GIT_COMMITTER_DATE='2026-01-01T00:00:00Z' \
		git -c init.defaultBranch=main -c user.name=demo -c user.email=demo@example.invalid \
		-c core.autocrlf=false -c advice.detachedHead=false "$@"
}

make_origin() {
	rm -rf "$demo/seed"
	mkdir -p "$demo"
	cp -R "$example/repository" "$demo/seed"
	quiet_git -C "$demo/seed" init --quiet
	quiet_git -C "$demo/seed" add --all
	quiet_git -C "$demo/seed" commit --quiet --message 'Order versions'
	base=$(quiet_git -C "$demo/seed" rev-parse HEAD)
	if [ "$(quiet_git --git-dir "$demo/origin.git" rev-parse HEAD 2>/dev/null || true)" != "$base" ]; then
		rm -rf "$demo/origin.git"
		quiet_git clone --quiet --bare "$demo/seed" "$demo/origin.git"
		quiet_git --git-dir "$demo/origin.git" remote remove origin
	fi
	rm -rf "$demo/seed"
}

make_checkout() {
	rm -rf "$demo/checkout"
	quiet_git clone --quiet "$demo/origin.git" "$demo/checkout"
}

next_run() {
	n=1
	while [ -e "$demo/run-$n" ]; do n=$((n + 1)); done
	echo "run-$n"
}

cat <<'TEXT'
This is a demonstration. The model's answers are scripted (examples/demo/session.yml),
and no model is asked. All else is real: tools, commands, tests, commit and push. Commands
run confined if this machine supports it; those of this example only run go test and go vet.
With empty caches, the step "compile" takes longest.

TEXT

make_origin
make_checkout
run_job() {
	"$binary" run "$example/job.yml" --repo "$demo/checkout" --publish local \
		--replay "$example/session.yml" --out "$demo/$run" "$@"
}

run=$(next_run)
status=0
run_job || status=$?
if [ "$status" -eq 9 ]; then
	echo
	echo 'This machine cannot confine commands. The demonstration continues UNCONFINED, with all'
	echo 'rights of your user.'
	echo
	run=$(next_run)
	status=0
	run_job --set policy.sandbox=danger-full-access || status=$?
fi

show() {
	if [ -e "$demo/$run/$2" ]; then echo "$1  demo/$run/$2"; fi
}
echo
show 'The change as a pull request would show it:' pull_request.md
show 'The run as a page, for a browser:           ' report.html
show 'How the run ended, for programs:           ' result.json
show 'What happened, event by event:             ' transcript.jsonl
pushed=$(quiet_git --git-dir "$demo/origin.git" rev-parse --verify --quiet refs/heads/agent-ci/fix-compare || true)
if [ -n "$pushed" ] && grep -q "\"head_sha\": \"$pushed\"" "$demo/$run/result.json" 2>/dev/null; then
	echo 'The branch that was pushed:                  git --git-dir demo/origin.git log --patch main..agent-ci/fix-compare'
fi
exit "$status"
