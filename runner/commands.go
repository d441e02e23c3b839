package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/agent-ci/agent-ci/policy"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/secrets"
)

// logLimit is how many bytes of a command's output are kept in its log.
const logLimit = 16 << 20

// script is a command of the job: a line or more for the shell.
type script struct {
	name    string
	run     string
	dir     string
	timeout time.Duration
	log     string // below the run directory
	place   place
}

// ran is how a script ended.
type ran struct {
	exitCode int
	timedOut bool
	seconds  float64
}

func (r ran) color() string {
	switch {
	case r.timedOut:
		return "timeout"
	case r.exitCode != 0:
		return "red"
	}
	return "green"
}

// runScript runs s to its end or its time limit. Its error is ctx's, or says
// that the command could not be run at all.
func (r *run) runScript(ctx context.Context, s script) (ran, error) {
	log, err := r.dir.create(s.log)
	if err != nil {
		return ran{}, fmt.Errorf("make log of %s: %w", s.name, err)
	}
	defer log.Close()
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	began := time.Now()
	out := newLogWriter(log, r.redactor.Redact, logLimit)
	box, err := r.openSandbox(ctx, s.place)
	if err != nil {
		return ran{}, err
	}
	status, err := box.Run(limited, sandbox.Command{
		Argv: []string{"bash", "-e", "-c", s.run}, Dir: s.dir, Env: r.envAt(s.place.root), Output: out,
	})
	if left := box.Close(); left != nil {
		r.warn("processes_left", "After %s: %v.", s.name, left)
	}
	out.flush()
	took := ran{exitCode: status.ExitCode, seconds: time.Since(began).Seconds()}
	switch {
	case ctx.Err() != nil:
		return took, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		took.timedOut = true
		fmt.Fprintf(log, "\nagent-ci: timed out after %s\n", s.timeout)
		return took, nil
	case errors.Is(err, sandbox.ErrNotStarted):
		took.exitCode = 127
		fmt.Fprintf(log, "agent-ci: %v\n", err)
		return took, nil
	}
	return took, err
}

// commandEnv is the environment that commands see: an allow list, and what the
// job adds.
func (r *run) commandEnv() []string {
	return policy.Environment(r.options.Environ, r.job.Policy.Env.Pass, r.job.Policy.Env.Set)
}

// logWriter keeps the first bytes of an output, without secrets.
type logWriter struct {
	file  io.Writer
	clean secrets.Stream
	left  int
	cut   bool
}

func newLogWriter(file io.Writer, redact func(string) string, most int) *logWriter {
	w := &logWriter{file: file, left: most}
	w.clean = secrets.Stream{Redact: redact, Put: w.put}
	return w
}

func (w *logWriter) Write(p []byte) (int, error) {
	if w.cut {
		return len(p), nil
	}
	return w.clean.Write(p)
}

func (w *logWriter) flush() {
	w.clean.Flush()
	if w.cut {
		fmt.Fprintf(w.file, "\nagent-ci: the output is truncated; only its first %d bytes were kept\n", logLimit)
	}
}

func (w *logWriter) put(text string) {
	if len(text) > w.left {
		text, w.cut = text[:w.left], true
	}
	w.left -= len(text)
	_, _ = io.WriteString(w.file, text) // a log that cannot be written doesn't change what the command did
}

// tail is the end of a log, for the model and for people.
func (d *directory) tail(name string, bytes int64) (string, error) {
	f, err := d.open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	offset := max(0, info.Size()-bytes)
	raw := make([]byte, info.Size()-offset)
	if _, err := f.ReadAt(raw, offset); err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	text := strings.ToValidUTF8(string(raw), "�")
	if _, rest, ok := strings.Cut(text, "\n"); ok && offset > 0 {
		text = "[…]\n" + rest
	}
	return text, nil
}

// ends is a log, or its beginning and its end with how much lies between: a
// compiler's first mistake stands in the one, what tests come to in the other.
func (d *directory) ends(name string, head, tail int64) (string, error) {
	f, err := d.open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if info.Size() <= head+tail {
		return d.tail(name, head+tail)
	}
	raw := make([]byte, head)
	if _, err := f.ReadAt(raw, 0); err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if line := bytes.LastIndexByte(raw, '\n') + 1; line > 0 {
		raw = raw[:line]
	}
	last, err := d.tail(name, tail)
	if err != nil {
		return "", err
	}
	last = strings.TrimPrefix(last, "[…]\n")
	left := info.Size() - int64(len(raw)+len(last))
	return fmt.Sprintf("%s\n[… about %d bytes left out …]\n%s", strings.ToValidUTF8(strings.TrimSuffix(string(raw), "\n"), "�"), left, last), nil
}

// logName is a file name for the log of a command that people named.
func logName(kind string, number int, name string) string {
	clean := strings.Map(func(c rune) rune {
		if c == '-' || c == '_' || c == '.' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			return c
		}
		return '-'
	}, name)
	if len(clean) > 40 {
		clean = clean[:40]
	}
	return filepath.Join(outputsFolder, fmt.Sprintf("%s-%d-%s.log", kind, number, clean))
}

// makeFolder makes a private folder below the run directory.
func (d *directory) makeFolder(name string) (string, error) {
	if err := d.root.MkdirAll(name, 0o700); err != nil {
		return "", fmt.Errorf("make %s: %w", name, err)
	}
	return d.join(name), nil
}

// remove takes working files away, also folders that commands made read-only.
// What cannot be removed stays.
func (d *directory) remove(name string) { _ = sandbox.RemoveScratch(d.join(name)) }
