package main_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox"
)

// startingKeys are keys of git's configuration by which some git or other starts a program. A value that
// has % gets the program and the key there, = is the program alone, and another one is taken as it is.
var startingKeys = [][2]string{
	{"core.fsmonitor", "%"},
	{"core.sshCommand", "%"},
	{"core.askPass", "="},
	{"core.editor", "%"},
	{"core.pager", "%"},
	{"core.gitProxy", "="},
	{"core.alternateRefsCommand", "%"},
	{"credential.helper", "!%"},
	{"diff.external", "%"},
	{"diff.evil.command", "%"},
	{"diff.evil.textconv", "%"},
	{"merge.evil.driver", "% %%O"},
	{"gpg.program", "="},
	{"gpg.openpgp.program", "="},
	{"gpg.x509.program", "="},
	{"gpg.ssh.program", "="},
	{"gpg.ssh.defaultKeyCommand", "%"},
	{"commit.gpgSign", "true"},
	{"tag.gpgSign", "true"},
	{"log.showSignature", "true"},
	{"sequence.editor", "%"},
	{"interactive.diffFilter", "%"},
	{"pager.config", "%"},
	{"pager.grep", "%"},
	{"pager.diff-tree", "%"},
	{"alias.config", "!%"},
	{"alias.grep", "!%"},
	{"alias.agent-ci-find", "!%"},
	{"alias.evil", "!%"},
	{"trailer.evil.command", "%"},
	{"trailer.evil.cmd", "%"},
	{"uploadpack.packObjectsHook", "%"},
	{"remote.origin.uploadpack", "%"},
	{"remote.origin.receivepack", "%"},
	{"protocol.ext.allow", "always"},
	{"mergetool.evil.cmd", "%"},
	{"difftool.evil.cmd", "%"},
	{"browser.evil.cmd", "%"},
	{"sendemail.sendmailCmd", "%"},
	{"submodule.lib.update", "!%"},
	{"submodule.recurse", "true"},
	{"fetch.recurseSubmodules", "true"},
	{"gc.auto", "1"},
	{"gc.recentObjectsHook", "%"},
	{"maintenance.auto", "true"},
	{"core.untrackedCache", "true"},
}

// repositoryHooks are hooks that git starts, by the name of their file.
var repositoryHooks = []string{
	"applypatch-msg", "pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "pre-rebase", "post-checkout", "post-merge", "pre-push",
	"pre-auto-gc", "post-rewrite", "post-index-change", "reference-transaction", "push-to-checkout", "fsmonitor-watchman",
}

// hostile makes a folder of git start a program by whatever may start one. in is its work tree. Where
// filters says so, that is by filters, too.
func (w *publishing) hostile(in string, filters bool) {
	w.t.Helper()
	gitDir := w.git(in, "rev-parse", "--absolute-git-dir")
	evil := filepath.Join(w.dir, "evil")
	var text strings.Builder
	for _, key := range startingKeys {
		section, name, _ := strings.Cut(key[0], ".")
		if last := strings.LastIndexByte(name, '.'); last >= 0 {
			section, name = section+` "`+name[:last]+`"`, name[last+1:]
		}
		if key[1] == "=" {
			key[1] = evil
		}
		text.WriteString("[" + section + "]\n\t" + name + " = \"" + strings.ReplaceAll(strings.ReplaceAll(key[1], "%%", "\x00"), "%", evil+" "+key[0]) + "\"\n")
	}
	attributes := "* diff=evil merge=evil\n"
	if filters {
		text.WriteString("[filter \"evil\"]\n\tclean = " + evil + " filter\n\tsmudge = " + evil + " filter\n\trequired = true\n")
		attributes = "* diff=evil merge=evil filter=evil\n"
	}
	f := must.Get(os.OpenFile(filepath.Join(gitDir, "config"), os.O_APPEND|os.O_WRONLY, 0))(w.t)
	defer f.Close()
	must.Do(w.t, must.Err(f.WriteString(strings.ReplaceAll(text.String(), "\x00", "%"))))
	w.write(filepath.Join(gitDir, "info", "attributes"), attributes)
	for _, name := range repositoryHooks {
		hook := filepath.Join(gitDir, "hooks", name)
		w.program(hook, "#!/bin/sh\nexec "+evil+" hook-"+name+"\n")
	}
}

// newHostileCheckout has a clone and in it a submodule that is checked out, both of which start a program
// whenever git looks at them. The program notes by what it was started.
func newHostileCheckout(t *testing.T) (w *publishing, clone, proof string) {
	t.Helper()
	w = newPublishing(t)
	lib, seed := filepath.Join(w.dir, "lib"), filepath.Join(w.dir, "seed")
	clone, proof = filepath.Join(w.dir, "clone"), filepath.Join(w.dir, "proof")
	w.program("evil", "#!/bin/sh\necho \"$1 in $PWD\" >>"+proof+"\ncase $1 in filter) exec cat;; esac\n")
	w.write("lib/l.txt", "l\n")
	w.repository(lib)
	w.git(seed, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib, "lib")
	w.git(seed, "commit", "--quiet", "--message=lib")
	w.git(seed, "push", "--quiet", w.repo.Dir, "main")
	w.git(w.dir, "-c", "protocol.file.allow=always", "clone", "--quiet", "--recurse-submodules", w.repo.Dir, clone)
	w.git(clone, "remote", "set-url", "origin", w.forge.URL+"/octo/widgets.git")
	w.hostile(filepath.Join(clone, "lib"), true)
	w.hostile(clone, false)
	must.Do(t, os.RemoveAll(proof))
	return w, clone, proof
}

// TestStartsNothingConfiguredByCheckout has each command work in that checkout.
func TestStartsNothingConfiguredByCheckout(t *testing.T) {
	t.Parallel()
	if confines() == sandbox.LevelNone {
		t.Skip("needs a sandbox")
	}
	w, clone, proof := newHostileCheckout(t)
	w.session("both", "echo more >>greet.sh; git status >/dev/null; echo more >>lib/l.txt")
	run := func(want string, args ...string) {
		t.Helper()
		w.write(filepath.Join(clone, "lib", "l.txt"), "x\n") // of the same size, so that git has to look into it
		cmd, out := w.command(args...)
		cmd.Dir = clone
		_ = cmd.Run()
		must.Same(t, true, strings.Contains(out.String(), want), args, "end in", want, out)
		if raw, err := os.ReadFile(proof); err == nil {
			t.Errorf("%q started:\n%s", args, raw)
			os.Remove(proof)
		}
		w.gitQuietly(clone, "reset", "--quiet", "--hard")
		w.gitQuietly(clone, "checkout", "--quiet", "main")
	}
	task := []string{"--prompt", "x", "--quiet", "--replay", filepath.Join(w.dir, "both.yml"), "--set", `verify=[{name: look, run: git status}]`, "--set", "policy.change.submodules=allow"}
	for way, want := range map[string]string{"workspace-write": "changed/", "read-only": "no_changes/", "danger-full-access": "changed/"} { // the last two in a private tree
		run(want, append([]string{"run", "--out", w.dir + "/pull-" + way, "--set", "name=" + way, "--set", "policy.sandbox=" + way}, task...)...)
	}
	run("changed/", append([]string{"run", "--out", w.dir + "/bundle", "--publish", "none"}, task...)...)
	run("changed/", "publish", w.dir+"/bundle", "--repo", clone)
	run("", "replay", w.dir+"/bundle", "--repo", clone)
	run("", "resume", w.dir+"/bundle", "--repo", clone)
	run("", "sandbox", "--", "git", "status")
	run("full", "doctor")
	run("", "validate", "--prompt", "x")
	run("", "validate", ".github/agent-ci.yml")
	run("", "init", "--dry-run")
	w.git(clone, "config", "remote.origin.url", w.repo.Dir)
	task[1] = "y"
	run("changed/", append([]string{"run", "--out", w.dir + "/local", "--publish", "local"}, task...)...)

	// The same starts plenty where git is asked.
	w.write(filepath.Join(clone, "lib", "l.txt"), "y\n")
	w.write(filepath.Join(clone, "greet.sh"), "echo TWO\n")
	for _, args := range [][]string{{"status"}, {"diff"}, {"evil"}, {"fetch", "origin"}, {"commit", "--allow-empty", "--message=x"}, {"commit-tree", "-S", "-m", "x", "HEAD^{tree}"}} {
		w.gitStarting(clone, args...)
	}
	raw := read(t, proof)
	for _, kind := range []string{"core.fsmonitor in " + clone + "\n", "core.fsmonitor in " + clone + "/lib\n", "filter in " + clone + "/lib\n", "hook-", "diff.", "alias.evil", "--status-fd", "remote.origin.uploadpack"} {
		must.Same(t, true, strings.Contains(raw, kind), "git itself does not start", kind, raw)
	}
}

// gitQuietly runs git without anything that the checkout starts.
func (w *publishing) gitQuietly(dir string, args ...string) {
	w.t.Helper()
	w.git(dir, append([]string{"-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "submodule.recurse=false", "-c", "gc.auto=0"}, args...)...)
}

// gitStarting runs git with all that the checkout starts, which makes it fail.
func (w *publishing) gitStarting(dir string, args ...string) {
	cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
	cmd.Env = w.env
	_ = cmd.Run()
}

// TestCheckoutCannotRedirectRun has settings by which git fetches and pushes elsewhere, or by somebody's
// proxy. A run does what it does without them, or refuses.
func TestCheckoutCannotRedirectRun(t *testing.T) {
	t.Parallel()
	elsewhere := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	var called atomic.Int64
	go func() {
		for {
			conn, err := elsewhere.Accept()
			if err != nil {
				return
			}
			called.Add(1)
			conn.Close()
		}
	}()
	t.Cleanup(func() { elsewhere.Close() })
	there := "http://" + elsewhere.Addr().String()
	w := newPublishing(t)
	forge := w.forge.URL + "/octo/widgets.git"
	for i, c := range []struct {
		settings [][2]string
		refused  bool
	}{
		{settings: [][2]string{
			{"http.proxy", there},
			{"https.proxy", there},
			{"http." + w.forge.URL + ".proxy", there},
			{"remote.origin.proxy", there},
			{"http.sslVerify", "false"},
			{"http.curloptResolve", "github.com:443:127.0.0.1"},
			{"http.cookieFile", "/etc/passwd"},
			{"http.extraHeader", "X-Evil: 1"},
			{"http.followRedirects", "true"},
			{"core.gitProxy", "nc 127.0.0.1"},
			{"remote.other.url", there + "/other.git"},
		}},
		{[][2]string{{"url." + there + "/.insteadOf", w.forge.URL + "/"}}, true},
		{[][2]string{{"url." + there + "/.pushInsteadOf", w.forge.URL + "/"}}, true},
		{[][2]string{{"url.ext::sh -c evil %S .insteadOf", w.forge.URL + "/"}}, true},
		{[][2]string{{"remote.origin.pushurl", there + "/octo/widgets.git"}}, true},
		{[][2]string{{"remote.pushDefault", "other"}, {"remote.other.url", there + "/other.git"}}, true},
	} {
		cmd, out := w.run("louder")
		for _, setting := range c.settings {
			w.git(cmd.Args[slices.Index(cmd.Args, "--repo")+1], "config", setting[0], setting[1])
		}
		_ = cmd.Run()
		want := "changed/pull_request"
		if c.refused {
			want = "invalid_input/push_elsewhere"
		}
		must.Same(t, true, strings.HasPrefix(out.String(), want), i, "with", c.settings, "a run to", forge, "ended in", out)
		must.Same(t, 0, called.Swap(0), "somebody else was called with", c.settings)
	}
}
