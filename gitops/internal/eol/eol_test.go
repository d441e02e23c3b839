package eol

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/agent-ci/agent-ci/gitops/rules"
)

func gitIn(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "HOME="+dir)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, complaint.String())
	}
	return out.String()
}

var contents = map[string]string{
	"lf": "a\nb\n", "crlf": "a\r\nb\r\n", "mixed": "a\r\nb\n", "lone-cr": "a\rb\r\n", "nul": "a\x00\r\nb\n", "empty": "",
	"no-end": "a\r\nb", "cr-at-end": "a\r\nb\r", "control": strings.Repeat("\x01", 40) + "\r\n", "dos-eof": "a\r\n\x1a", "high": "ä\r\n\xff\n",
	"one-control": strings.Repeat("x", 200) + "\x01\r\n",
}

// Every attribute line with every setting and content, both ways, against git.
func TestAsGitDoes(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"", "* text", "* -text", "* text=auto", "* eol=crlf", "* eol=lf", "* text=auto eol=crlf", "* text=auto eol=lf", "* crlf", "* -crlf", "* crlf=input", "* binary"} {
		for _, settings := range []Settings{{}, {AutoCRLF: "true"}, {AutoCRLF: "input"}, {EOL: "crlf"}, {AutoCRLF: "true", EOL: "lf"}} {
			t.Run(line+" "+settings.AutoCRLF+" "+settings.EOL, func(t *testing.T) {
				t.Parallel()
				compare(t, line, settings)
			})
		}
	}
}

func compare(t *testing.T, line string, settings Settings) {
	dir := t.TempDir()
	gitIn(t, dir, "init", "-q")
	gitIn(t, dir, "config", "core.safecrlf", "false")
	write(t, filepath.Join(dir, ".gitattributes"), line+"\n")
	for name, content := range contents {
		write(t, filepath.Join(dir, name), content)
	}
	gitIn(t, dir, "-c", "core.autocrlf=false", "-c", "core.attributesFile="+os.DevNull, "add", "-A")
	if settings.AutoCRLF != "" {
		gitIn(t, dir, "config", "core.autocrlf", settings.AutoCRLF)
	}
	if settings.EOL != "" {
		gitIn(t, dir, "config", "core.eol", settings.EOL)
	}
	action := settings.Decide(rules.Resolve("any", false, rules.ParseAttributes([]byte(line), "")))
	for name, content := range contents {
		blob := strings.TrimSpace(gitIn(t, dir, "hash-object", "-w", name))
		if want, got := gitIn(t, dir, "cat-file", "blob", blob), clean(t, action, content); got != want {
			t.Errorf("into the repository, %s: %q, git: %q", name, got, want)
		}
		raw := strings.TrimSpace(gitIn(t, dir, "hash-object", "-w", "--no-filters", name))
		if want, got := gitIn(t, dir, "cat-file", "--filters", "--path="+name, raw), smudge(t, action, content); got != want {
			t.Errorf("into the work tree, %s: %q, git: %q", name, got, want)
		}
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
}

// look is Look, which has no errors but the reader's.
func look(content string) Content {
	c, _ := Look(strings.NewReader(content))
	return c
}

func clean(t *testing.T, action Action, content string) string {
	t.Helper()
	if !action.Strips(look(content), nil) {
		return content
	}
	return all(t, ToLF(strings.NewReader(content)))
}

func smudge(t *testing.T, action Action, content string) string {
	t.Helper()
	if !action.Adds(look(content)) {
		return content
	}
	return all(t, ToCRLF(strings.NewReader(content)))
}

func all(t *testing.T, r io.Reader) string {
	t.Helper()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A file that was committed with CRLF keeps it where git has to guess.
func TestStripsAsksWhatIsIndexed(t *testing.T) {
	t.Parallel()
	action := Settings{AutoCRLF: "true"}.Decide(nil)
	crlf, lf := look("a\r\n"), look("a\n")
	if action.Strips(crlf, &crlf) || !action.Strips(crlf, &lf) || !action.Strips(crlf, nil) {
		t.Error("CRLF of the repository is not kept")
	}
}

func TestStreamsInSmallSteps(t *testing.T) {
	t.Parallel()
	const text = "a\r\n\rb\n\r\r\nc"
	for name, read := range map[string]func(io.Reader) io.Reader{"to LF": ToLF, "to CRLF": ToCRLF} {
		whole := all(t, read(strings.NewReader(text)))
		steps := all(t, iotest.OneByteReader(read(iotest.OneByteReader(strings.NewReader(text)))))
		if whole != steps {
			t.Errorf("%s: %q, in steps %q", name, whole, steps)
		}
	}
}

func TestSizeAfterStripping(t *testing.T) {
	t.Parallel()
	for name, content := range contents {
		c := look(content)
		if got := len(all(t, ToLF(strings.NewReader(content)))); int64(got) != c.Size-c.CRLF {
			t.Errorf("%s: %d bytes, counted %d", name, got, c.Size-c.CRLF)
		}
	}
}
