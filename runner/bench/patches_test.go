package bench

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/agent-ci/agent-ci/policy/must"
)

// change is what a patch makes of files.
type change struct {
	before, after map[string]string // contents by name
	hunks         []string          // for each file, with its header
}

// BenchmarkApplyPatchProgram applies patches by the program that commands find as apply_patch.
func BenchmarkApplyPatchProgram(b *testing.B) {
	const lines, hunks, files = 200_000, 1000, 300
	large, many := largeChange(lines, hunks), ordinaryChanges(b, files)
	for _, of := range []struct {
		figure string
		change
		patches []string
		all     int // a rate of so many; 0 for a duration
		goal    float64
		times   int
	}{
		{fmt.Sprintf("apply_patch as a program: %d hunks in %d lines", hunks, lines), large, []string{strings.Join(large.hunks, "")}, 0, 0.5, runs},
		{fmt.Sprintf("%d patches of Go's sources in one process", files), many, []string{strings.Join(many.hunks, "")}, files, 3, runs},
		{fmt.Sprintf("%d patches of Go's sources, a process each", files), many, many.hunks, files, 3, runsOfCodex},
	} {
		var ours, byCodex []time.Duration
		for range of.times {
			ours = append(ours, of.apply(b, *binary, of.patches))
			if codexIsThere() {
				byCodex = append(byCodex, of.apply(b, *codex, of.patches))
			}
		}
		value := duration
		if of.all > 0 {
			value = func(took time.Duration) quantity { return rate(of.all, took, time.Second, "a second") }
		}
		results.besideCodex(of.figure, value(medianOf(ours)), value(medianOf(byCodex)), of.goal)
	}
}

// apply is how long a program takes for patches, in a process each.
func (c change) apply(b *testing.B, program string, patches []string) (took time.Duration) {
	b.Helper()
	dir, home := b.TempDir(), b.TempDir()
	writeAll(b, dir, c.before)
	program = must.Get(filepath.Abs(program))(b)
	name := filepath.Join(home, "apply_patch")
	must.Do(b, os.Symlink(program, name))
	began := time.Now()
	for _, patch := range patches {
		cmd := exec.CommandContext(b.Context(), name)
		cmd.Dir, cmd.Env = dir, []string{"HOME=" + home, "CODEX_HOME=" + home, "PATH=" + os.Getenv("PATH")}
		cmd.Stdin = strings.NewReader("*** Begin Patch\n" + patch + "*** End Patch\n")
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%s: %v\n%s", program, err, out)
		}
	}
	took = time.Since(began)
	for file, want := range c.after {
		if got, err := os.ReadFile(filepath.Join(dir, file)); err != nil || string(got) != want {
			b.Fatalf("%s did not change %s as the patch says (%v)", program, file, err)
		}
	}
	return took
}

func largeChange(lines, hunks int) change {
	var before, after, patch strings.Builder
	for i := range lines {
		line := fmt.Sprintf("line %d\n", i)
		before.WriteString(line)
		if i%(lines/hunks) == 0 {
			fmt.Fprintf(&patch, "@@\n-%s+changed %s line %d\n", line, line, i+1)
			line = "changed " + line
		}
		after.WriteString(line)
	}
	return change{map[string]string{"file": before.String()}, map[string]string{"file": after.String()}, []string{"*** Update File: file\n" + patch.String()}}
}

// ordinaryChanges are of n files of Go's sources: three lines of each, with three lines of context around.
func ordinaryChanges(b *testing.B, n int) change {
	c := change{map[string]string{}, map[string]string{}, nil}
	must.Do(b, filepath.WalkDir(goSources(b), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || len(c.hunks) == n || entry.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		raw, err := os.ReadFile(path)
		text, name := string(raw), fmt.Sprintf("f%03d.go", len(c.hunks))
		lines := strings.SplitAfter(text, "\n")
		if err != nil || len(lines) < 100 || !utf8.Valid(raw) || strings.Contains(text, "\r") {
			return err
		}
		patch := "*** Update File: " + name + "\n"
		for quarter := 1; quarter <= 3; quarter++ {
			at := quarter * len(lines) / 4
			around := lines[at-3 : at+4]
			if strings.Count(text, strings.Join(around, "")) > 1 {
				return nil
			}
			changed := "// changed: " + lines[at]
			patch += "@@\n " + strings.Join(around[:3], " ") + "-" + lines[at] + "+" + changed + " " + strings.Join(around[4:], " ")
			lines[at] = changed
		}
		c.before[name], c.after[name] = text, strings.Join(lines, "")
		c.hunks = append(c.hunks, patch)
		return nil
	}))
	return c
}
