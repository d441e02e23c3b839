#!/bin/sh
# Runs a campaign over three small repositories that it makes: run.sh BINARY. All of it is in
# demo/campaign/ at the top of this repository. Needs git, no network, no keys.
set -eu

if [ $# -ne 1 ]; then
	echo "usage: $0 BINARY" >&2
	exit 2
fi
binary=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
unset CDPATH GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
cd "$(dirname "$0")"
demo=$(cd ../../.. && pwd)/demo/campaign
rm -rf "$demo"
mkdir -p "$demo"
cp campaign.yml session.yml "$demo"
cd "$demo"

quiet_git() {
	GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 git -c init.defaultBranch=main \
		-c user.name=demo -c user.email=demo@example.invalid "$@"
}

# make_repository NAME GREP makes repositories/octo-org/NAME.git, whose count.sh calls GREP.
make_repository() {
	mkdir seed
	printf '%s -c '\''^(a|b)'\'' "$1"\n' "$2" >seed/count.sh
	printf 'apple\nbanana\ncherry\n' >seed/words.txt
	quiet_git -C seed init --quiet
	quiet_git -C seed add --all
	quiet_git -C seed commit --quiet --message 'Count words'
	quiet_git clone --quiet --bare seed "repositories/octo-org/$1.git"
	rm -rf seed
}

# agent_ci runs a subcommand of agent-ci campaign and shows it.
agent_ci() {
	subcommand=$1
	shift
	echo
	echo "\$ agent-ci campaign $subcommand campaign.yml --ledger ledger${*:+ $*}"
	"$binary" campaign "$subcommand" campaign.yml --ledger ledger "$@"
}

make_repository widgets egrep
make_repository gadgets egrep
make_repository gizmos 'grep -E'

echo 'The model of this campaign is scripted (examples/campaigns/local/session.yml). All else is real.'
agent_ci plan
agent_ci run --replay session.yml
agent_ci approve
agent_ci run --replay session.yml

echo
echo 'The change of a repository: git -C demo/campaign/repositories/octo-org/widgets.git log --all --patch'
