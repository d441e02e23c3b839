package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// TestRunsNothingFromCheckoutOutsideSandbox has a checkout with a folder of programs
// that PATH names, as a virtual environment is: by its path, by a link, by a relative and
// by an empty part. What is there must not run outside of the sandbox, with the rights and
// keys of agent-ci: not as git, as a filter, or for a hook of the origin.
func TestRunsNothingFromCheckoutOutsideSandbox(t *testing.T) {
	t.Parallel()
	w := newPublishing(t)
	proof := filepath.Join(w.dir, "proof")
	w.session("plant", "echo x >> greet.sh; echo x >> a.txt")
	w.write("gitconfig", "[filter \"shout\"]\n\tclean = shout\n\tsmudge = shout\n")
	w.write("seed/.gitattributes", "*.txt filter=shout\n")
	w.write("seed/.gitignore", "/.venv/\n/git\n/shout\n/hooked\n")
	w.write("seed/a.txt", "a\n")
	w.pushSeed()
	cmd, out := w.run("plant")
	clone, link := filepath.Join(w.dir, "clone1"), filepath.Join(w.dir, "programs")
	w.git(clone, "remote", "set-url", "origin", w.repo.Dir)
	w.program("tools/shout", "#!/bin/sh\nexec cat\n")
	w.program(filepath.Join(w.repo.Dir, "hooks", "pre-receive"), "#!/bin/sh\nhooked || true\n")
	must.Do(t, os.MkdirAll(filepath.Join(clone, ".venv", "bin"), 0o755))
	must.Do(t, os.Symlink(filepath.Join(clone, ".venv", "bin"), link))
	for _, name := range []string{"git", "shout", "hooked"} {
		for _, folder := range []string{clone, link} {
			w.program(filepath.Join(folder, name), "#!/bin/sh\necho planted $0 >> "+proof+"\nexec /usr/bin/"+name+" \"$@\"\n")
		}
	}
	cmd.Dir = clone
	cmd.Args = append(cmd.Args, "--publish", "local")
	cmd.Env = append(w.env, "GIT_CONFIG_GLOBAL="+filepath.Join(w.dir, "gitconfig"), "PATH="+filepath.Join(clone, ".venv", "bin")+":"+link+":.venv/bin::"+os.Getenv("PATH")+":"+filepath.Join(w.dir, "tools"))
	if err := cmd.Run(); err != nil || !strings.HasPrefix(out.String(), "changed/") {
		t.Errorf("%v: %s", err, out)
	}
	if raw, err := os.ReadFile(proof); err == nil {
		t.Errorf("it was executed:\n%s", raw)
	}
}

// TestChecksRunNoAgentPrograms has checks whose programs PATH finds in the
// checkout. They are to be those from before the first turn.
func TestChecksRunNoAgentPrograms(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]func(dir, clone string) string{
		"by its path":    func(_, clone string) string { return filepath.Join(clone, ".venv", "bin") },
		"through a link": func(dir, _ string) string { return filepath.Join(dir, "link", ".venv", "bin") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newPublishing(t)
			w.session("plant", `for f in check check2; do printf '#!/bin/sh\nexit 0\n' > .venv/bin/$f && chmod 755 .venv/bin/$f; done; echo x >> greet.sh; touch made`)
			w.write("seed/.gitignore", "/.venv/\n/made\n")
			w.pushSeed()
			cmd, out := w.run("plant", `verify=[{name: own, run: check}, {name: outer, run: check2}, {name: place, run: 'test ! -e "$GITHUB_WORKSPACE/made"'}]`, "verify_attempts=0")
			clone := filepath.Join(w.dir, "clone1")
			must.Do(t, os.Symlink(clone, filepath.Join(w.dir, "link")))
			for _, program := range []string{"clone1/.venv/bin/check", "tools/check", "tools/check2"} {
				w.program(program, "#!/bin/sh\nexit 1\n")
			}
			cmd.Env = append(w.env, "GITHUB_WORKSPACE="+clone, "PATH="+path(w.dir, clone)+":"+filepath.Join(w.dir, "tools")+":"+os.Getenv("PATH"))
			_ = cmd.Run()
			if !strings.HasPrefix(out.String(), "verify_failed/red: ") || !strings.Contains(out.String(), "own") || !strings.Contains(out.String(), "outer") || strings.Contains(out.String(), "place") {
				t.Errorf("the run ended in %s", out)
			}
		})
	}
}
