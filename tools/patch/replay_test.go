package patch_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/utils/diff"
	"github.com/sergi/go-diff/diffmatchpatch"

	"github.com/agent-ci/agent-ci/gitops/editformat"
	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/tools"
	reading "github.com/agent-ci/agent-ci/tools/files"
	"github.com/agent-ci/agent-ci/tools/opencode"
	"github.com/agent-ci/agent-ci/tools/patch"
)

var shown = flag.String("shown", "", "the only variant of BenchmarkReplay, whose wrong edits are shown")

// replayed are modules with two versions, whose difference is replayed.
var replayed = [][3]string{
	{"github.com/spf13/cobra", "v1.7.0", "v1.8.0"},
	{"github.com/stretchr/testify", "v1.8.0", "v1.9.0"},
	{"github.com/go-chi/chi/v5", "v5.0.8", "v5.1.0"},
	{"github.com/sirupsen/logrus", "v1.6.0", "v1.9.0"},
	{"golang.org/x/mod", "v0.10.0", "v0.17.0"},
}

// BenchmarkReplay writes the difference between two versions of public modules as a model would, in
// each format and damaged in many ways, and counts what the tools make of it.
func BenchmarkReplay(b *testing.B) {
	all, hunks := changes(b)
	if hunks < 200 {
		b.Fatalf("there are %d hunks, want 200 or more", hunks)
	}
	var table strings.Builder
	for b.Loop() {
		table.Reset()
		sum := map[string]int{}
		fmt.Fprintf(&table, "replay of %d hunks in %d files of %d modules: right (of these with a note) / another text, with a note / refused / another text without a note / torn\n%-32s", hunks, len(all), len(replayed), "")
		for _, f := range formats {
			fmt.Fprintf(&table, "  %-25s", f.name)
		}
		table.WriteByte('\n')
		for _, v := range variants {
			if *shown != "" && v.name != *shown {
				continue
			}
			fmt.Fprintf(&table, "%-32s", v.name)
			for _, f := range formats {
				counts := replay(b, all, v, f)
				fmt.Fprintf(&table, "  %-25s", counts)
				for outcome, n := range counts {
					sum[outcome] += n
				}
			}
			table.WriteByte('\n')
		}
		fmt.Fprintf(&table, "of all %d: %d another text without a note (limit: 0), %d torn (limit: 0)\n", sum[right]+sum[noted]+sum[told]+sum[refused]+sum[wrong]+sum[torn], sum[wrong], sum[torn])
	}
	fmt.Print("\n" + table.String())
}

// changed is a file in two versions.
type changed struct {
	name     string
	old, now []string // lines; the last one has no ending in a file that ends without
}

// changes downloads the modules and drops them when the benchmark ends.
func changes(b *testing.B) (all []changed, hunks int) {
	b.Helper()
	cache := b.TempDir()
	for _, module := range replayed {
		var dirs []string
		for _, version := range module[1:] {
			cmd := exec.CommandContext(b.Context(), "go", "mod", "download", "-json", module[0]+"@"+version)
			cmd.Dir, cmd.Env = cache, append(os.Environ(), "GOMODCACHE="+cache, "GOFLAGS=-modcacherw")
			raw, err := cmd.Output()
			var found struct{ Dir string }
			if err != nil || json.Unmarshal(raw, &found) != nil {
				b.Skipf("%s is not on this machine: %v %s", module[0], err, raw)
			}
			dirs = append(dirs, found.Dir)
		}
		err := fs.WalkDir(os.DirFS(dirs[0]), ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			old, err := os.ReadFile(filepath.Join(dirs[0], path))
			now, newErr := os.ReadFile(filepath.Join(dirs[1], path))
			if err != nil || newErr != nil || bytes.Equal(old, now) || bytes.ContainsAny(append(old, now...), "\x00\r") || len(old) > 1<<17 {
				return nil
			}
			c := changed{module[0] + "/" + path, strings.Split(string(old), "\n"), strings.Split(string(now), "\n")}
			if bytes.HasSuffix(old, []byte("\n")) != bytes.HasSuffix(now, []byte("\n")) {
				return nil // which no format but one can say
			}
			found := hunksOf(c, 3)
			if len(found) > 40 || len(found) == 0 {
				return nil
			}
			hunks += len(found)
			all = append(all, c)
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return all, hunks
}

// A change is a hunk at its place in a file.
type change struct {
	at    int // the first of its old lines
	lines []v4a.Line
	// What stands after "@@": anchors, or line numbers.
	anchors []string
	marked  bool   // the text has "@@ " and then anchors[0] as a range
	bare    []bool // by line, those that lack the blank in front
}

func (c change) old() (lines []string) { return c.side(v4a.Insert) }
func (c change) now() (lines []string) { return c.side(v4a.Remove) }

func (c change) side(without v4a.Kind) (lines []string) {
	for _, l := range c.lines {
		if l.Kind != without {
			lines = append(lines, l.Text)
		}
	}
	return lines
}

// difference is a run of lines that others stand for.
type difference struct{ from, to, newFrom, newTo int }

// differing are the lines by which texts differ.
func differing(old, now []string) (all []difference) {
	var at difference
	note := func() {
		if at.to > at.from || at.newTo > at.newFrom {
			all = append(all, at)
		}
	}
	for _, d := range diff.Do(strings.Join(old, "\n")+"\n", strings.Join(now, "\n")+"\n") {
		lines := strings.Count(d.Text, "\n")
		switch d.Type {
		case diffmatchpatch.DiffDelete:
			at.to += lines
		case diffmatchpatch.DiffInsert:
			at.newTo += lines
		default:
			note()
			at = difference{at.to + lines, at.to + lines, at.newTo + lines, at.newTo + lines}
		}
	}
	note()
	return all
}

// hunksOf are the hunks with so many lines of context.
func hunksOf(c changed, context int) (all []change) {
	old, now := c.old, c.now
	if old[len(old)-1] == "" && now[len(now)-1] == "" {
		old, now = old[:len(old)-1], now[:len(now)-1]
	}
	found := differing(old, now)
	for i := 0; i < len(found); {
		k := i
		for k+1 < len(found) && found[k+1].from-found[k].to <= 2*context {
			k++
		}
		from, to := max(0, found[i].from-context), min(len(old), found[k].to+context)
		h := change{at: from}
		at := from
		for _, f := range found[i : k+1] {
			h.add(v4a.Keep, old[at:f.from])
			h.add(v4a.Remove, old[f.from:f.to])
			h.add(v4a.Insert, now[f.newFrom:f.newTo])
			at = f.to
		}
		h.add(v4a.Keep, old[at:to])
		if len(h.old()) > 0 {
			all = append(all, h)
		}
		i = k + 1
	}
	return all
}

func (c *change) add(kind v4a.Kind, texts []string) {
	for _, text := range texts {
		c.lines = append(c.lines, v4a.Line{Kind: kind, Text: text})
	}
}

// trial is a file, what is to become of it, and the edit as it is written.
type trial struct {
	name         string
	before, want []string
	changes      []change
	crlf         bool // of the file
	crlfPatch    bool
	loose        bool // blanks at the ends of lines are of no account
}

// result applies changes by their places.
func result(lines []string, changes []change) []string {
	var out []string
	at := 0
	for _, c := range changes {
		out = append(out, lines[at:c.at]...)
		at = c.at
		for _, l := range c.lines {
			switch l.Kind {
			case v4a.Keep:
				out = append(out, lines[at])
				at++
			case v4a.Remove:
				at++
			case v4a.Insert:
				out = append(out, l.Text)
			}
		}
	}
	return append(out, lines[at:]...)
}

var heading = regexp.MustCompile(`^[[:alpha:]$_]`)

// headingOf is the line above which git shows for a hunk, or -1.
func (t *trial) headingOf(at int) int {
	for i := at - 1; i >= 0; i-- {
		if heading.MatchString(t.before[i]) {
			return i
		}
	}
	return -1
}

// places counts where lines stand at or below a line.
func places(lines, want []string, from int) (n int) {
	for i := from; i+len(want) <= len(lines); i++ {
		if slices.Equal(lines[i:i+len(want)], want) {
			n++
		}
	}
	return n
}

// anchored gives a heading to each change that does not stand in one place only.
func anchored(t *trial) bool {
	cursor := 0
	for i := range t.changes {
		c := &t.changes[i]
		if at := t.headingOf(c.at); places(t.before, c.old(), cursor) > 1 && at >= cursor {
			c.anchors = []string{t.before[at]}
		}
		cursor = c.at + len(c.old())
	}
	return true
}

// unique gives each change as much context as makes its place the only one, where the format has no
// anchors.
func unique(t *trial) bool {
	end := 0
	for i := range t.changes {
		c := &t.changes[i]
		for places(t.before, c.old(), 0) > 1 {
			above := c.at > 0
			if above {
				c.at--
				c.lines = slices.Insert(c.lines, 0, v4a.Line{Kind: v4a.Keep, Text: t.before[c.at]})
			}
			below := c.at+len(c.old()) < len(t.before)
			if below {
				c.lines = append(c.lines, v4a.Line{Kind: v4a.Keep, Text: t.before[c.at+len(c.old())]})
			}
			if !above && !below {
				return false
			}
		}
		if c.at < end { // the lines of another change
			return false
		}
		end = c.at + len(c.old())
	}
	return true
}

func hashed(parts ...any) int {
	h := fnv.New32a()
	fmt.Fprint(h, parts...)
	return int(h.Sum32() >> 1)
}

// eachLine changes lines of the edit, old ones or all, where the old ones show it.
func eachLine(all bool, damage func(string) string) func(*trial) bool {
	return func(t *trial) bool {
		some := false
		for i := range t.changes {
			if !slices.ContainsFunc(t.changes[i].old(), func(line string) bool { return damage(line) != line }) {
				continue
			}
			some = true
			for k := range t.changes[i].lines {
				if l := &t.changes[i].lines[k]; all || l.Kind != v4a.Insert {
					l.Text = damage(l.Text)
				}
			}
		}
		return some
	}
}

func deeper(text string) string {
	if text == "" {
		return text
	}
	return "\t" + text
}

func lessDeep(text string) string { return strings.TrimPrefix(text, "\t") }

func spaced(text string) string {
	bare := strings.TrimLeft(text, "\t")
	return strings.Repeat("    ", len(text)-len(bare)) + bare
}

func typographic(text string) string {
	return strings.NewReplacer(" - ", " – ", "'", "’", `"`, "”").Replace(text)
}

// oneOf picks a line that stays, with lines that stay or go on both sides of it, and damages it.
func oneOf(damage func(c *change, at int)) func(*trial) bool {
	return func(t *trial) bool {
		i := hashed(t.name) % len(t.changes)
		c := &t.changes[i]
		var inner []int
		for k, l := range c.lines {
			before := slices.ContainsFunc(c.lines[:k], func(l v4a.Line) bool { return l.Kind != v4a.Insert })
			after := slices.ContainsFunc(c.lines[k+1:], func(l v4a.Line) bool { return l.Kind != v4a.Insert })
			if l.Kind == v4a.Keep && before && after && strings.TrimSpace(l.Text) != "" {
				inner = append(inner, k)
			}
		}
		if len(inner) == 0 {
			return false
		}
		damage(c, inner[hashed(t.name, "line")%len(inner)])
		return true
	}
}

// twice leaves one change, whose old lines stand in the file twice.
func twice(second, headed, between bool) func(*trial) bool {
	return func(t *trial) bool {
		c := t.changes[hashed(t.name)%len(t.changes)]
		if len(strings.TrimSpace(strings.Join(c.old(), ""))) == 0 {
			return false
		}
		top, middle := []string{"func headingOfBoth() {"}, []string{"", "// between the two", ""}
		copied := slices.Concat(top, c.old(), middle)
		if !second {
			copied = slices.Concat(middle, c.old(), []string{""})
		}
		at := c.at
		if !second {
			at += len(c.old())
			copied = slices.Concat(copied, []string{""})
			t.before = slices.Insert(slices.Clone(t.before), at, copied...)
		} else {
			t.before = slices.Insert(slices.Clone(t.before), at, copied...)
			c.at += len(copied)
		}
		switch {
		case headed:
			c.anchors = top
		case between:
			c.anchors = middle[1:2]
		}
		t.changes = []change{c}
		t.want = result(t.before, t.changes)
		return true
	}
}

// additions leaves the first change that adds one run of lines, without its context: an anchor names
// the line above.
func additions(t *trial) bool {
	for _, c := range t.changes {
		first := slices.IndexFunc(c.lines, func(l v4a.Line) bool { return l.Kind == v4a.Insert })
		last := first
		for last >= 0 && last < len(c.lines) && c.lines[last].Kind == v4a.Insert {
			last++
		}
		if first > 0 && strings.TrimSpace(c.lines[first-1].Text) != "" && !slices.ContainsFunc(slices.Concat(c.lines[:first], c.lines[last:]), func(l v4a.Line) bool { return l.Kind != v4a.Keep }) {
			t.want = result(t.before, []change{c})
			t.changes = []change{{at: c.at + first, lines: c.lines[first:last], anchors: []string{c.lines[first-1].Text}}}
			return true
		}
	}
	return false
}

// numbered gives line numbers, so far off.
func numbered(off int) func(*trial) bool {
	return func(t *trial) bool {
		shift := 0
		for i := range t.changes {
			c := &t.changes[i]
			old, now := len(c.old()), len(c.now())
			c.anchors, c.marked = []string{fmt.Sprintf("-%d,%d +%d,%d @@", max(1, c.at+1+off), old, max(1, c.at+1+shift+off), now)}, true
			shift += now - old
		}
		return true
	}
}

type variant struct {
	name    string
	context int
	unique  bool // formats without anchors get more context
	alone   bool // only the format that has anchors
	damage  []func(*trial) bool
}

var variants = []variant{
	{"context 3, anchors where needed", 3, true, false, []func(*trial) bool{anchored}},
	{"context 3, every heading kept", 3, false, true, []func(*trial) bool{func(t *trial) bool {
		for i := range t.changes {
			if at := t.headingOf(t.changes[i].at); at >= 0 {
				t.changes[i].anchors = []string{t.before[at]}
			}
		}
		return true
	}}},
	{"context 3, no anchor", 3, false, false, nil},
	{"context 1, anchors where needed", 1, false, false, []func(*trial) bool{anchored}},
	{"context 1, no anchor", 1, false, false, nil},
	{"line numbers", 3, false, true, []func(*trial) bool{numbered(0)}},
	{"line numbers, context 1", 1, false, true, []func(*trial) bool{numbered(0)}},
	{"line numbers, 3 too low", 3, false, true, []func(*trial) bool{numbered(3)}},
	{"line numbers, 9 too high", 1, false, true, []func(*trial) bool{numbered(-9)}},
	{"CRLF in the file", 3, true, false, []func(*trial) bool{anchored, func(t *trial) bool { t.crlf = true; return true }}},
	{"CRLF in the edit", 3, true, false, []func(*trial) bool{anchored, func(t *trial) bool { t.crlfPatch = true; return true }}},
	{"blanks at line ends lost", 3, true, false, []func(*trial) bool{anchored, func(t *trial) bool {
		for i, line := range t.before {
			if line != "" && hashed(line)%3 == 0 {
				t.before[i] += "  "
			}
		}
		t.loose = true
		t.want = result(t.before, t.changes)
		return true
	}}},
	{"blanks at one line end lost", 1, false, false, []func(*trial) bool{func(t *trial) bool {
		c := t.changes[hashed(t.name)%len(t.changes)]
		if t.before[c.at] == "" {
			return false
		}
		t.before[c.at] += " "
		t.loose = true
		t.want = result(t.before, t.changes)
		return true
	}}},
	{"blanks at line ends added", 3, true, false, []func(*trial) bool{anchored, func(t *trial) bool { t.loose = true; return true }, eachLine(false, func(s string) string {
		if hashed(s)%3 == 0 {
			return s + "  "
		}
		return s
	})}},
	{"spaces for tabs, old lines", 3, true, false, []func(*trial) bool{anchored, eachLine(false, spaced)}},
	{"deeper, old lines", 3, true, false, []func(*trial) bool{anchored, eachLine(false, deeper)}},
	{"spaces for tabs, all lines", 3, true, false, []func(*trial) bool{anchored, eachLine(true, spaced)}},
	{"deeper, all lines", 3, true, false, []func(*trial) bool{anchored, eachLine(true, deeper)}},
	{"less deep, all lines", 3, true, false, []func(*trial) bool{anchored, eachLine(true, lessDeep)}},
	{"typographic quotes, old lines", 3, true, false, []func(*trial) bool{anchored, eachLine(false, typographic)}},
	{"blank in front lost, one line", 3, true, true, []func(*trial) bool{anchored, oneOf(func(c *change, at int) {
		c.bare = make([]bool, len(c.lines))
		c.bare[at] = true
	})}},
	{"blank in front lost, all lines", 3, true, true, []func(*trial) bool{anchored, func(t *trial) bool {
		for i := range t.changes {
			c := &t.changes[i]
			c.bare = make([]bool, len(c.lines))
			for k, l := range c.lines {
				c.bare[k] = l.Kind == v4a.Keep
			}
		}
		return true
	}}},
	{"a line left out", 3, true, false, []func(*trial) bool{anchored, oneOf(func(c *change, at int) { c.lines = slices.Delete(c.lines, at, at+1) })}},
	{"a line too many", 3, true, false, []func(*trial) bool{anchored, oneOf(func(c *change, at int) {
		c.lines = slices.Insert(c.lines, at, v4a.Line{Kind: v4a.Keep, Text: "\tlog.Print(\"here\")"})
	})}},
	{"a line paraphrased", 3, true, false, []func(*trial) bool{anchored, oneOf(func(c *change, at int) { c.lines[at].Text += " // as before" })}},
	{"hunks in reverse order", 3, false, false, []func(*trial) bool{func(t *trial) bool {
		slices.Reverse(t.changes)
		return len(t.changes) > 1
	}}},
	{"additions below an anchor", 3, false, true, []func(*trial) bool{additions}},
	{"twice, the lower is meant", 3, false, false, []func(*trial) bool{twice(true, false, false)}},
	{"twice, the upper is meant", 3, false, false, []func(*trial) bool{twice(false, false, false)}},
	{"twice, a heading above both", 3, false, false, []func(*trial) bool{twice(true, true, false)}},
	{"twice, an anchor between", 3, false, true, []func(*trial) bool{twice(true, false, true)}},
}

type format struct {
	name    string
	anchors bool
	write   func(*trial) []tools.Call
	written editformat.Format
}

var formats = []format{
	{"apply_patch", true, func(t *trial) []tools.Call {
		return []tools.Call{{Input: envelope("*** Update File: other.go", "@@", "-one", "+two", "*** Update File: file.go", strings.Join(t.hunks(), t.ending())), Form: tools.Freeform}}
	}, ""},
	{"built-in", true, func(t *trial) []tools.Call {
		input, _ := json.Marshal(map[string]string{"type": "update_file", "path": "file.go", "diff": strings.Join(t.hunks(), t.ending()) + "\n"})
		return []tools.Call{{Input: string(input), Form: tools.Operation}}
	}, ""},
	{"aider-diff", false, func(t *trial) []tools.Call {
		text := t.fence() + "go\nother.go\n<<<<<<< SEARCH\none\n=======\ntwo\n>>>>>>> REPLACE\n" + t.fence() + "\n"
		for _, c := range t.changes {
			text += t.fence() + "go\nfile.go\n<<<<<<< SEARCH\n" + t.joined(c.old()) + "=======\n" + t.joined(c.now()) + ">>>>>>> REPLACE\n" + t.fence() + "\n"
		}
		return []tools.Call{{Input: text, Form: tools.Written}}
	}, editformat.Diff},
	{"aider-udiff", true, func(t *trial) []tools.Call {
		text := t.fence() + "diff\n--- a/other.go\n+++ b/other.go\n@@ @@\n-one\n+two\n--- a/file.go\n+++ b/file.go\n" + strings.Join(t.hunks(), t.ending()) + "\n" + t.fence() + "\n"
		return []tools.Call{{Input: text, Form: tools.Written}}
	}, editformat.Udiff},
	{"opencode", false, func(t *trial) (calls []tools.Call) {
		for _, c := range t.changes {
			input, _ := json.Marshal(map[string]string{"filePath": "file.go", "oldString": t.joined(c.old()), "newString": t.joined(c.now())})
			calls = append(calls, tools.Call{Name: "edit", Input: string(input)})
		}
		return calls
	}, ""},
}

func (t *trial) ending() string {
	if t.crlfPatch {
		return "\r\n"
	}
	return "\n"
}

func (t *trial) joined(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, t.ending()) + t.ending()
}

// fence is longer than those that files have.
func (t *trial) fence() string { return "``````" }

func (t *trial) hunks() (lines []string) {
	for _, c := range t.changes {
		if len(c.anchors) == 0 {
			lines = append(lines, "@@")
		}
		for _, anchor := range c.anchors {
			lines = append(lines, "@@ "+anchor)
		}
		for i, l := range c.lines {
			if c.bare != nil && c.bare[i] {
				lines = append(lines, l.Text)
				continue
			}
			lines = append(lines, string(rune(l.Kind))+l.Text)
		}
	}
	return lines
}

// What becomes of an edit.
const (
	right   = "right"
	noted   = "right, with a note"
	told    = "another text, with a note"
	refused = "refused"
	wrong   = "another text without a note"
	torn    = "torn" // refused, or applied, in part
)

// outcomes are how often each came.
type outcomes map[string]int

func (o outcomes) String() string {
	if len(o) == 0 {
		return "–"
	}
	fits := fmt.Sprint(o[right] + o[noted])
	if o[noted] > 0 {
		fits += fmt.Sprintf(" (%d)", o[noted])
	}
	return fmt.Sprintf("%s / %d / %d / %d / %d", fits, o[told], o[refused], o[wrong], o[torn])
}

// replay counts what becomes of one variant in one format.
func replay(b *testing.B, all []changed, v variant, f format) outcomes {
	b.Helper()
	counts := outcomes{}
	for _, c := range all {
		if v.alone && !f.anchors {
			continue
		}
		context := hunksOf(c, v.context)
		trials := [][]change{context}
		if f.name == "opencode" { // whose edits are calls of their own
			trials = nil
			for i := range context {
				trials = append(trials, context[i:i+1])
			}
		}
		for i, changes := range trials {
			t := &trial{name: c.name, before: slices.Clone(c.old), changes: changes}
			t.want = result(t.before, changes)
			if f.name == "opencode" {
				t.name = fmt.Sprint(c.name, i)
			}
			fits := true
			if v.unique && (!f.anchors || f.written != "") {
				fits = unique(t)
			}
			for _, damage := range v.damage {
				fits = fits && damage(t)
			}
			if !fits {
				continue
			}
			outcome, said := carryOut(b, t, f)
			counts[outcome]++
			if *shown == v.name && (outcome == wrong || outcome == torn) {
				fmt.Printf("%s: %s %s\n%s\n%s\n", f.name, t.name, outcome, strings.Join(t.hunks(), "\n"), said)
			}
		}
	}
	return counts
}

// carryOut makes the edit in a folder of its own.
func carryOut(b *testing.B, t *trial, f format) (outcome, said string) {
	b.Helper()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	text := func(lines []string) string {
		if t.crlf {
			return strings.Join(lines, "\r\n")
		}
		return strings.Join(lines, "\n")
	}
	names := []string{"file.go", "other.go"}
	before := text(t.before)
	for i, content := range []string{before, "one\n"} {
		if err := os.WriteFile(filepath.Join(dir, names[i]), []byte(content), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer root.Close()
	folder := tools.Folder{Path: dir, Root: func() (*os.Root, error) { return root, nil }}
	o := patch.Options{Dir: folder, Offer: tools.Freeform}
	if f.written != "" {
		o.Written = &patch.Written{Format: f.written, Known: func() []string { return names }}
	}
	patcher := patch.New(o)
	registry := []tools.Tool{patcher.Tool()}
	if f.name == "opencode" {
		registry = opencode.New(opencode.Options{Files: reading.Options{Dir: folder, Outputs: dir}, Seen: new(opencode.Seen), Patcher: patcher})
	}
	run := func(call tools.Call) tools.Result {
		i := slices.IndexFunc(registry, func(t tools.Tool) bool { return t.Spec.Name == cmp.Or(call.Name, "apply_patch") })
		result, err := registry[i].Run(b.Context(), call)
		if err != nil {
			b.Fatal(err)
		}
		return result
	}
	if f.name == "opencode" {
		run(tools.Call{Name: "read", Input: `{"filePath":"file.go"}`})
	}
	failed := false
	for _, call := range f.write(t) {
		result := run(call)
		failed = failed || result.Failed
		said += result.Output
	}
	after, err := os.ReadFile(filepath.Join(dir, names[0]))
	other, otherErr := os.ReadFile(filepath.Join(dir, names[1]))
	if err != nil || otherErr != nil {
		b.Fatal(err, otherErr)
	}
	hasNote := strings.Contains(said, "Note: ") || strings.Contains(said, "block ")
	both := f.name == "built-in" || f.name == "opencode"
	switch {
	case failed && (string(after) != before || string(other) != "one\n"), !failed && !both && string(other) != "two\n":
		return torn, said
	case failed:
		return refused, said
	case t.is(string(after), text(t.want)) && hasNote:
		return noted, said
	case t.is(string(after), text(t.want)):
		return right, said
	case hasNote:
		return told, said
	}
	return wrong, said
}

var blanks = regexp.MustCompile(`[ \t]+(\n|$)`)

func (t *trial) is(text, want string) bool {
	if t.loose {
		text, want = blanks.ReplaceAllString(text, "$1"), blanks.ReplaceAllString(want, "$1")
	}
	return text == want
}
