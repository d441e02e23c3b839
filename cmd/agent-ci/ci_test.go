package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// ciCheck is what a check of projects asks. Those whose names begin with "red" fail in the CI of the change.
type ciCheck struct{ name, run string }

// ciQuestions are those that do not change the tree. Where git alone is asked, they have the commands of git
// that the tool runs.
var ciQuestions = []ciCheck{
	{"fresh checkout by diff-index", `git diff-index --quiet HEAD --`},
	{"version by describe", `git describe --tags | grep -E '^v1\.0-[0-9]+-g[0-9a-f]+$'`},
	{"red: release by describe", `git describe --tags --exact-match`},
	{"setuptools-scm", `git rev-parse --show-toplevel && git describe --dirty --tags --long --match '*[0-9]*' | grep -v dirty && git -c log.showSignature=false log -n 1 HEAD --format=%cI`},
	{"go build", `git -c log.showsignature=false log -1 --format=%H:%ct && test -z "$(git status --porcelain)"`},
	{"nx affected", `git diff --name-only --no-renames --relative "$(git merge-base origin/main HEAD)" HEAD | grep -x src.txt`},
	{"nx, untracked", `test -z "$(git ls-files --others --exclude-standard)"`},
	{"pre-commit", `git rev-parse --verify origin/main && git diff --name-only --no-ext-diff -z --diff-filter=ACMRT origin/main...HEAD | tr '\0' '\n' | grep -x made.txt`},
	{"red: pre-commit of another file", `git diff --name-only --no-ext-diff --diff-filter=ACMRT origin/main...HEAD | grep -x gen.sh`},
	{"commitlint", `git log --format=%s origin/main..HEAD | tee all && test "$(wc -l < all)" = 1 && grep -E '^(feat|fix)(\(.+\))?: [a-z]' all`},
	{"red: commitlint of another type", `git log --format=%s origin/main..HEAD | grep -E '^docs: '`},
	{"changelog since the release", `git log --format=%s v1.0..HEAD | grep 'feat: '`},
	{"licence headers", `for f in $(git ls-files '*.txt'); do grep -q SPDX $f || exit 1; done`},
	{"licence headers of scripts", `for f in $(git ls-files '*.sh'); do grep -q SPDX $f || exit 1; done`},
	{"branch name", `git rev-parse --abbrev-ref HEAD | grep -x agent-ci/ci`},
	{"archive", `git archive HEAD | tar -tf - | grep -x made.txt`},
	{"old version of a file", `git show origin/main:src.txt | grep base`},
	{"tracked and ignored", `git ls-files --cached --ignored --exclude-standard | grep -x kept.log`},
	{"submodules", `test ! -e .gitmodules || { git submodule status --recursive && ! git submodule status | grep '^[-+U]' && test "$(git -C sub log -1 --format=%s)" = begin; }`},
	{"remote", `git remote get-url origin && git config --get-all remote.origin.fetch`},
	{"no credential", `! git config --list | grep hunter22`},
}

// ciChecks are those that change the tree.
var ciChecks = []ciCheck{
	{"generated code by status", `sh gen.sh && test -z "$(git status --porcelain)"`},
	{"generated code by the index", `sh gen.sh && git add -A && git diff --cached --exit-code`},
	{"generated code by diff", `sh gen.sh && git diff --exit-code`},
	{"generated code by diff-index", `sh gen.sh && git update-index -q --refresh && git diff-index --quiet HEAD --`},
	{"red: stale code by status", `sh gen.sh && echo stale >> gen.txt && test -z "$(git status --porcelain)"`},
	{"red: stale code by the index", `sh gen.sh && echo new > not-committed.txt && git add -A && git diff --cached --exit-code`},
	{"stash", `echo more >> src.txt && git stash && git diff --exit-code && git stash pop && grep more src.txt`},
	{"commit in a check", `git -c user.name=a -c user.email=a@example.invalid commit -q --allow-empty -m more && git log -1 --format=%s | grep -x more`},
	{"another work tree", `d=$(mktemp -d) && git worktree add -q $d/w HEAD~1 && test ! -e $d/w/made.txt`},
	{"line endings", `git add --renormalize . && git diff --cached --exit-code`},
}

// TestChecksAgreeWithCI has checks run in runs, and in clones of what these published, and compares.
func TestChecksAgreeWithCI(t *testing.T) {
	t.Parallel()
	overlay := overlaid()
	for _, kind := range []struct {
		name    string
		clone   []string
		config  []string                      // of the clone
		seed    func(w *workshop, dir string) // before the first commit of the repository
		make    func(w *workshop, dir, at string) (checkout string)
		inCI    func(w *workshop, dir string) // after the branch was cloned
		setup   string
		overlay bool // what setup commands do to git takes one
		more    []ciCheck
	}{
		{
			name: "plain with hooks", clone: []string{"--recurse-submodules"}, overlay: true, setup: "git config core.hooksPath .husky",
			more: []ciCheck{
				{"husky", `test "$(git config core.hooksPath)" = .husky && git -c user.name=a -c user.email=a@example.invalid commit -q --allow-empty -m more && test -e hook-ran.log`},
			},
		},
		{
			name: "shallow with CRLF and submodules", clone: []string{"--depth", "2", "--config", "core.autocrlf=true", "--recurse-submodules"}, config: []string{"remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"},
			inCI: func(w *workshop, dir string) {
				w.git(dir, "fetch", "--quiet", "--depth", "3", "--tags", "origin", "agent-ci/ci", "main") // one commit more than the checkout has
			},
		},
		{
			name: "linked work tree", setup: "echo SPDX > of-setup.txt",
			make: func(w *workshop, dir, at string) string {
				w.git(dir, "worktree", "add", "--quiet", "-b", "work", at, "main")
				return at
			},
		},
		{
			name: "LFS", seed: (*workshop).useLFS,
			clone: []string{"--config", "filter.lfs.clean=git-lfs clean -- %f", "--config", "filter.lfs.smudge=git-lfs smudge -- %f", "--config", "filter.lfs.required=true"},
			more: []ciCheck{
				{"LFS content", `grep -x changed big.bin`},
				{"LFS pointer", `git show HEAD:big.bin | grep '^oid sha256:' && git show origin/main:big.bin | grep '^oid sha256:'`},
				{"LFS, cleaned again", `touch big.bin && git add big.bin && git diff --cached --exit-code && test -z "$(git status --porcelain)"`},
				{"LFS without its remote", `rm big.bin && git -c remote.origin.url=/none checkout -q -- big.bin && grep -x changed big.bin`},
				{"LFS of the base without its remote", `test ! -e .git/lent || git -c remote.origin.url=/none checkout -q origin/main -- big.bin`},
				{"LFS, another version", `git checkout -q origin/main -- big.bin && grep -x base big.bin && ! grep changed big.bin`},
				{"red: LFS of another content", `echo more >> big.bin && git add big.bin && git diff --cached --exit-code`},
			},
		},
	} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			if kind.overlay && !overlay {
				t.Skip("commands work in no overlay here")
			}
			w := newWorkshop(t)
			origin := w.ciOrigin(kind.seed)
			checkout := filepath.Join(w.dir, "checkout")
			w.git(w.dir, append(append([]string{"-c", "protocol.file.allow=always", "clone", "--quiet"}, kind.clone...), "file://"+origin, checkout)...)
			w.git(checkout, "remote", "set-url", "origin", origin)
			if kind.config != nil {
				w.git(checkout, append([]string{"config"}, kind.config...)...)
			}
			w.git(checkout, "config", "http.https://example.invalid/.extraheader", "hunter22")
			w.write(filepath.Join(checkout, "mine [1].txt"), "untracked before the run\n")
			if kind.make != nil {
				checkout = kind.make(&w, checkout, filepath.Join(w.dir, "linked"))
			}
			checks := slices.Concat(ciQuestions, kind.more, ciChecks)
			log := w.runCheck(checkout, kind.setup, inOneCheck(checks))

			ci := filepath.Join(w.dir, "ci")
			w.git(w.dir, append(append([]string{"-c", "protocol.file.allow=always", "clone", "--quiet", "--branch", "agent-ci/ci"}, kind.clone...), "file://"+origin, ci)...)
			w.git(ci, "remote", "set-url", "origin", origin)
			if kind.config != nil {
				w.git(ci, append([]string{"config"}, kind.config...)...)
			}
			if kind.inCI != nil {
				kind.inCI(&w, ci)
			}
			output := w.inCI(ci, kind.setup+"\n"+inOneCheck(checks))
			here, there := answersIn(log), answersIn(output)
			for _, check := range checks {
				if here[check.name] == "" || here[check.name] != there[check.name] {
					t.Errorf("%s is %q, in CI %q\n%s\nin CI:\n%s", check.name, here[check.name], there[check.name], log, output)
				}
				if kind.overlay && strings.HasPrefix(check.name, "red") != (there[check.name] == "red") {
					t.Errorf("%s is %s in CI: the test is wrong\n%s", check.name, there[check.name], output)
				}
			}
		})
	}
}

// inOneCheck returns a command that runs all checks. It restores the files after each, except those of setup. On the
// base it runs none.
func inOneCheck(checks []ciCheck) string {
	var all strings.Builder
	all.WriteString("test -e made.txt || exit 0\nset -e\nbegin=$(git rev-parse HEAD)\n")
	for _, check := range checks {
		fmt.Fprintf(&all, "set +e\n(set -e\n%s\n)\ntest $? = 0 && echo '= green: %[2]s' || echo '= red: %[2]s'\nset -e\n", check.run, check.name)
		if !slices.Contains(ciQuestions, check) {
			all.WriteString("git reset --quiet --hard $begin\ngit clean --quiet -fd --exclude=of-setup.txt\n")
		}
	}
	return all.String()
}

// answersIn reads the answers of inOneCheck.
func answersIn(output string) map[string]string {
	answers := map[string]string{}
	for line := range strings.Lines(output) {
		_, answer, is := strings.Cut(strings.TrimSpace(line), "= ")
		if color, name, named := strings.Cut(answer, ": "); is && named {
			answers[name] = color
		}
	}
	return answers
}

// standInLFS works as git-lfs does, and looks for contents in the same places: its own folder, those of lenders
// by their absolute paths, and the origin.
const standInLFS = `#!/bin/sh
set -eu
store=$(git rev-parse --git-common-dir)/lfs
place() { echo "$1/objects/$(echo $2 | cut -c1-2)/$(echo $2 | cut -c3-4)/$2"; }
case $1 in
clean)
	mkdir -p "$store/tmp"
	new=$(mktemp "$store/tmp/XXXXXX")
	cat > "$new"
	oid=$(sha256sum "$new" | cut -c1-64)
	printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n' $oid $(wc -c < "$new")
	to=$(place "$store" $oid)
	test -e "$to" && rm -f "$new" && exit
	mkdir -p "$(dirname "$to")"
	mv "$new" "$to" ;;
smudge)
	oid=$(sed -n 's/^oid sha256://p')
	lenders=$(cat "$store/../objects/info/alternates" 2>/dev/null || :)
	for git in $store/.. $(for l in $lenders; do dirname $l; done) $(git config remote.origin.url | sed s,^file://,,); do
		from=$(place "$git/lfs" $oid)
		test -e "$from" || continue
		own=$(place "$store" $oid)
		mkdir -p "$(dirname "$own")"
		test -e "$own" || cp "$from" "$own"
		exec cat "$own"
	done
	exit 1 ;;
esac
`

// useLFS has a repository keep a file with Git LFS. The program is one of the workshop's own.
func (w *workshop) useLFS(seed string) {
	w.t.Helper()
	program := filepath.Join(w.dir, "bin", "git-lfs")
	w.program(program, standInLFS)
	w.env = append(w.env, "PATH="+filepath.Dir(program)+string(os.PathListSeparator)+os.Getenv("PATH"))
	w.git(seed, "config", "filter.lfs.clean", "git-lfs clean -- %f")
	w.write(filepath.Join(seed, "big.bin"), "base\n")
}

// ciOrigin makes a repository with a release, a submodule and a change since. begin may add to its first commit.
func (w *workshop) ciOrigin(begin func(w *workshop, dir string)) string {
	w.t.Helper()
	inner, seed, origin := filepath.Join(w.dir, "inner"), filepath.Join(w.dir, "seed"), filepath.Join(w.dir, "origin.git")
	w.write("inner/inner.md", "inner\n")
	w.repository(inner)
	w.git(w.dir, "init", "--quiet", "--initial-branch=main", seed)
	w.write("seed/src.txt", "SPDX\nbase\n")
	w.write("seed/gen.sh", "echo \"SPDX of $(tail -n 1 src.txt | tr -d '\\r')\" > gen.txt\n")
	w.write("seed/gen.txt", "SPDX of base\n")
	w.write("seed/.gitattributes", "gen.txt text eol=lf\n*.sh text eol=lf\n.husky/* text eol=lf\n*.bin filter=lfs diff=lfs merge=lfs -text\n")
	w.write("seed/.gitignore", "*.log\n/all\n")
	w.write("seed/kept.log", "tracked and ignored\n")
	w.program("seed/.husky/pre-commit", "#!/bin/sh\ntouch hook-ran.log\n")
	if begin != nil {
		begin(w, seed)
	}
	w.git(seed, "add", "--all", "--force")
	w.git(seed, "commit", "--quiet", "--message=begin")
	w.git(seed, "tag", "-a", "-m", "first", "v1.0")
	w.git(seed, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner, "sub")
	w.git(seed, "commit", "--quiet", "--message=more")
	w.git(w.dir, "clone", "--quiet", "--bare", seed, origin)
	if lfs := filepath.Join(seed, ".git", "lfs"); begin != nil {
		must.Do(w.t, os.CopyFS(filepath.Join(origin, "lfs"), os.DirFS(lfs)))
	}
	return origin
}

// runCheck changes src.txt, made.txt and the files generated from them, runs a check, and publishes. It returns the
// check's output.
func (w *workshop) runCheck(checkout, setup, check string) string {
	w.t.Helper()
	job := map[string]any{
		"version": 1, "name": "ci", "task": map[string]any{"prompt": "Change it."}, "on_verify_failed": "draft", "verify_attempts": 0,
		"pull_request": map[string]any{"title": "feat: greet"}, "verify": []any{map[string]any{"name": "all", "run": check, "rerun": 0}},
	}
	if setup != "" {
		job["setup"] = []map[string]any{{"run": setup}}
	}
	w.write("job.yml", asJSON(w.t, job))
	w.write("session.yml", "version: 1\nturns:\n  - output: [{call: exec_command, arguments: {cmd: 'echo changed >> src.txt; echo SPDX > made.txt; sh gen.sh; test ! -e big.bin || echo changed >> big.bin'}}]\n  - output: [{say: Done.}]\n")
	said, err := w.agent("run", "job.yml", "--repo", checkout, "--replay", "session.yml", "--out", "run", "--publish", "local")
	var result struct{ Verify []struct{ After, Log string } }
	readJSON(w.t, filepath.Join(w.dir, "run", "result.json"), &result)
	if len(result.Verify) != 1 {
		w.t.Fatalf("%v\n%s", err, said)
	}
	log := read(w.t, filepath.Join(w.dir, "run", result.Verify[0].Log))
	must.Same(w.t, "green", result.Verify[0].After, err, said, log)
	return log
}

// inCI runs a script in a clone as a step of CI does.
func (w *workshop) inCI(clone, script string) string {
	w.t.Helper()
	cmd := exec.Command("bash", "-e", "-o", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = clone, w.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Errorf("in CI: %v\n%s", err, out)
	}
	return string(out)
}
