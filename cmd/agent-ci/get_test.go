package main_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// release is a commit of a release with the action's script in it, and a
// machine with as few programs as the script needs.
type release struct {
	root, programs, temp string
	server               string // where the workflow runs
}

// checksums are those that the commit names: of the binary, and of it compressed; empty for
// the right one of that.
type checksums struct{ binary, packed string }

func newRelease(t *testing.T, asset string, checksums checksums) *release {
	t.Helper()
	r := &release{root: t.TempDir(), programs: t.TempDir(), temp: t.TempDir()}
	script := read(t, "../../.ci/get")
	r.write(t, filepath.Join(r.root, ".ci/get"), script)
	r.write(t, filepath.Join(r.root, "dist/version"), "v1.2.3\n")
	name := "agent-ci-" + runtime.GOOS + "-" + runtime.GOARCH
	packed := compressed(t, asset)
	if checksums.packed == "" {
		checksums.packed = sum(packed)
	}
	r.write(t, filepath.Join(r.root, "dist/checksums.txt"), fmt.Sprintf("%064d  %s.sbom.json\n%s  %s\n%s  %s.gz\n", 0, name, checksums.binary, name, checksums.packed, name))
	r.write(t, filepath.Join(r.temp, "asset"), packed)
	r.write(t, filepath.Join(r.programs, "curl"), "#!/bin/bash\nwhile [ \"$1\" != --output ]; do shift; done\ncp \""+r.temp+"/asset\" \"$2\"\necho \"$3\" >>\""+r.temp+"/asked\"\n")
	for _, program := range []string{"bash", "dirname", "uname", "mkdir", "awk", "sha256sum", "shasum", "cat", "rm", "mv", "cp", "chmod", "gzip"} {
		if path, err := exec.LookPath(program); err == nil {
			must.Do(t, os.Symlink(path, filepath.Join(r.programs, program)))
		}
	}
	return r
}

func compressed(t *testing.T, text string) string {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	must.Do(t, must.Err(io.WriteString(w, text)))
	must.Do(t, w.Close())
	return packed.String()
}

func sum(of string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(of))) }

func (r *release) write(t *testing.T, path, content string) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.Do(t, os.WriteFile(path, []byte(content), 0o755))
}

func (r *release) get(t *testing.T) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(r.programs, "bash"), filepath.Join(r.root, ".ci/get"))
	cmd.Env = []string{"GITHUB_SERVER_URL=" + r.server, "PATH=" + r.programs, "RUNNER_TEMP=" + r.temp, "GITHUB_OUTPUT=" + filepath.Join(r.temp, "output"), "GH_TOKEN=x"}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

const program = "#!/bin/bash\necho agent-ci v1.2.3\n"

func TestInstallChecksReleaseChecksum(t *testing.T) {
	t.Parallel()
	r := newRelease(t, program, checksums{binary: sum(program)})
	out, err := r.get(t)
	if err != nil || !strings.Contains(out, "not verified: there is no gh here") || !strings.Contains(out, "agent-ci v1.2.3") {
		t.Fatalf("%v\n%s", err, out)
	}
	output, err := os.ReadFile(filepath.Join(r.temp, "output"))
	if want := "binary=" + filepath.Join(r.temp, "agent-ci.bin/agent-ci") + "\n"; err != nil || string(output) != want {
		t.Errorf("output %q, %v, want %q", output, err, want)
	}
	asked, err := os.ReadFile(filepath.Join(r.temp, "asked"))
	want := "https://github.com/agent-ci/agent-ci/releases/download/v1.2.3/agent-ci-" + runtime.GOOS + "-" + runtime.GOARCH + ".gz\n"
	if err != nil || string(asked) != want {
		t.Errorf("asked for %q, %v", asked, err)
	}
}

func TestInstallChecksAttestation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ gh, server, says string }{
		"holds":            {"#!/bin/bash\nexit 0\n", "https://github.com", "checksum and attestation are right"},
		"gh is too old":    {"#!/bin/bash\nexit 1\n", "https://github.com", "not verified: gh is too old"},
		"on another forge": {"#!/bin/bash\nexit 1\n", "https://git.example.com", "not verified: the token is not one of github.com"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRelease(t, program, checksums{binary: sum(program)})
			r.server = c.server
			r.write(t, filepath.Join(r.programs, "gh"), c.gh)
			if out, err := r.get(t); err != nil || !strings.Contains(out, c.says) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestInstallRefusesAlteredRelease(t *testing.T) {
	t.Parallel()
	const refuses = "#!/bin/bash\n[ \"$3\" = --help ]\n"
	const evil = "#!/bin/bash\necho evil\n"
	for name, c := range map[string]struct {
		asset     string
		checksums checksums
		gh        string
	}{
		"another file":               {evil, checksums{sum(program), sum(compressed(t, program))}, ""},
		"another binary":             {evil, checksums{binary: sum(program)}, ""},
		"no checksum":                {program, checksums{}, ""},
		"none of the compressed one": {program, checksums{sum(program), "-"}, ""},
		"no attestation":             {program, checksums{binary: sum(program)}, refuses},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRelease(t, c.asset, c.checksums)
			if c.gh != "" {
				r.write(t, filepath.Join(r.programs, "gh"), c.gh)
			}
			out, err := r.get(t)
			if err == nil || !strings.Contains(out, "nothing is run") || strings.Contains(out, "agent-ci v1.2.3") || strings.Contains(out, "evil") {
				t.Errorf("%v\n%s", err, out)
			}
			must.Fail(t, "", must.Err(os.Stat(filepath.Join(r.temp, "output"))), "the binary is given to the next step")
		})
	}
}
