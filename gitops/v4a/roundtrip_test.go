package v4a_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/go-git/go-billy/v5/memfs"
	"github.com/go-git/go-billy/v5/util"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// edited is a file and an edit of it, line by line.
type edited struct {
	before string
	lines  []editedLine
}

type editedLine struct {
	kind         byte // ' ', '-' or '+'
	text, ending string
}

var fileLine = regexp.MustCompile(`[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+`)

// newEdited reads an edit off bytes: what becomes of each line of a text, and
// what comes in between.
func newEdited(text string, decisions []byte, added []string) edited {
	e := edited{before: text}
	next := func() byte {
		if len(decisions) == 0 {
			return 0
		}
		d := decisions[0]
		decisions = decisions[1:]
		return d
	}
	insert := func(d byte) {
		if d%4 == 3 && len(added) > 0 {
			e.lines = append(e.lines, editedLine{'+', added[int(d/4)%len(added)], ""})
		}
	}
	for _, line := range fileLine.FindAllString(text, -1) {
		insert(next())
		body := strings.TrimRight(line, "\r\n")
		kind := byte(' ')
		if next()%4 == 3 {
			kind = '-'
		}
		e.lines = append(e.lines, editedLine{kind, body, line[len(body):]})
	}
	insert(next())
	return e
}

// after is what the edit makes of the file: new lines get the file's first
// ending, and so does a last line that has none.
func (e edited) after() string {
	own := "\n"
	for _, l := range e.lines {
		if l.ending != "" {
			own = l.ending
			break
		}
	}
	var b strings.Builder
	for _, l := range e.lines {
		if l.kind == '-' {
			continue
		}
		b.WriteString(l.text)
		if l.ending == "" {
			l.ending = own
		}
		b.WriteString(l.ending)
	}
	return b.String()
}

// hunks writes the edit as a patch would. Each hunk has the context that it
// needs to be found, at most what lies above it up to the hunk before.
func (e edited) hunks() string {
	var b strings.Builder
	for from := 0; from < len(e.lines); {
		first := e.nextChange(from)
		if first == len(e.lines) {
			break
		}
		end := e.endOfChanges(first)
		start := first
		for start > from && !e.unique(from, start, end) {
			start--
		}
		b.WriteString("@@\n")
		for _, l := range e.lines[start:end] {
			b.WriteByte(l.kind)
			b.WriteString(l.text + "\n")
		}
		from = end
	}
	return b.String()
}

func (e edited) nextChange(from int) int {
	for from < len(e.lines) && e.lines[from].kind == ' ' {
		from++
	}
	return from
}

// endOfChanges returns the end of a run of changes, with a line that stays when
// no line of the run was in the file.
func (e edited) endOfChanges(from int) int {
	end, old := from, false
	for end < len(e.lines) && e.lines[end].kind != ' ' {
		old = old || e.lines[end].kind == '-'
		end++
	}
	for !old && end < len(e.lines) {
		old = e.lines[end].kind != '+'
		end++
	}
	return end
}

// unique reports whether the old lines of a hunk first occur where it is.
func (e edited) unique(from, start, end int) bool {
	want := e.old(start, end)
	return len(want) > 0 && strings.Index(e.old(from, len(e.lines)), want) == len(e.old(from, start))
}

func (e edited) old(from, to int) string {
	var b strings.Builder
	for _, l := range e.lines[from:to] {
		if l.kind != '+' {
			b.WriteString("\x00" + l.text + "\n")
		}
	}
	return b.String()
}

func (e edited) check(t rapid.TB) {
	t.Helper()
	hunks := e.hunks()
	if hunks == "" {
		return
	}
	fsys := memfs.New()
	if err := util.WriteFile(fsys, "f", []byte(e.before), 0o600); err != nil {
		t.Fatal(err)
	}
	patch, err := v4a.Parse(envelope("*** Update File: f\n" + hunks))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := v4a.NewPlan(context.Background(), v4a.OnBilly(fsys), patch)
	if err != nil {
		t.Fatalf("%v\n%s", err, hunks)
	}
	if err := plan.Commit(context.Background()); err != nil {
		t.Fatal(err)
	}
	got, err := util.ReadFile(fsys, "f")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(e.after(), string(got)); diff != "" {
		t.Fatalf("%q\n%s\n%s", e.before, hunks, diff)
	}
}

// FuzzRoundTrip applies a patch that is made from a file and an edit of it.
func FuzzRoundTrip(f *testing.F) {
	f.Add("a\nb\nc\n", []byte{0, 3, 3, 0}, "x\ny")
	f.Add("a\r\nb\r\na\r\nb", []byte{3, 0, 0, 3, 7, 0}, "")
	f.Add("x\rx\rx\n\n\n", []byte{0, 0, 0, 3, 0, 0, 3, 3, 3, 0, 3}, "x\n")
	f.Add("", []byte{3}, "x")
	f.Fuzz(func(t *testing.T, text string, decisions []byte, added string) {
		if strings.ContainsAny(added, "\r") || strings.Contains(text+added, "\ufeff") || strings.Contains(text, "\x00") {
			t.Skip("a patch cannot say this")
		}
		newEdited(text, decisions, strings.Split(added, "\n")).check(t)
	})
}

// Few different lines make for many places that look alike.
func TestRoundTripOfRepeats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOf(rapid.SampledFrom([]string{"", "a", "b", " a", "a "})).Draw(t, "lines")
		ending := rapid.SampledFrom([]string{"\n", "\r\n", "\r"}).Draw(t, "ending")
		text := strings.Join(lines, ending) + rapid.SampledFrom([]string{"", ending}).Draw(t, "last")
		decisions := rapid.SliceOfN(rapid.Byte(), 0, 2*len(lines)+2).Draw(t, "decisions")
		newEdited(text, decisions, []string{"", "a", "c"}).check(t)
	})
}

// Many sections for one file in one patch make of it what they make one patch
// after the other, or are refused as the first one of those is.
func TestSectionsTogether(t *testing.T) {
	applied, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		distinct := rapid.SampledFrom([]int{5, 50, 500}).Draw(t, "distinct lines")
		line := rapid.Custom(func(t *rapid.T) string { return fmt.Sprint(rapid.IntRange(1, distinct).Draw(t, "line")) })
		ending := rapid.SampledFrom([]string{"\n", "\n", "\r\n", "\r"}).Draw(t, "ending")
		text := strings.Join(rapid.SliceOfN(line, 30, 60).Draw(t, "lines"), ending) + ending
		want, all, fits := text, "", true
		for range rapid.IntRange(6, 14).Draw(t, "sections") {
			section := drawUpdate(t, want, ending, line)
			all += section
			if want, fits = planOn(t, want, section); !fits {
				break
			}
		}
		got, ok := planOn(t, text, all)
		if ok != fits || ok && got != want {
			t.Fatalf("%q\n%s\nis %q (%v), want %q (%v)", text, all, got, ok, want, fits)
		}
		if ok {
			applied++
		} else {
			refused++
		}
	})
	if applied == 0 || refused == 0 {
		t.Errorf("%d applied, %d refused", applied, refused)
	}
}

// drawUpdate changes a few lines somewhere in a text.
func drawUpdate(t *rapid.T, text, ending string, line *rapid.Generator[string]) string {
	lines := strings.Split(strings.TrimSuffix(text, ending), ending)
	at := rapid.IntRange(0, len(lines)-1).Draw(t, "at")
	var b strings.Builder
	b.WriteString("*** Update File: f\n@@")
	if above := rapid.IntRange(-5, 3).Draw(t, "above"); above > 0 && at >= above {
		b.WriteString(" " + lines[at-above])
	}
	b.WriteString("\n")
	for _, l := range lines[at:min(len(lines), at+rapid.IntRange(1, 4).Draw(t, "length"))] {
		switch rapid.IntRange(0, 9).Draw(t, "change") {
		case 0, 1:
			b.WriteString("-" + l + "\n")
		case 2, 3:
			b.WriteString(" " + l + "\n+" + line.Draw(t, "added") + "\n")
		case 4:
			b.WriteString(" " + l + rapid.SampledFrom([]string{"", "", "", " ", "x"}).Draw(t, "loose") + "\n")
		default:
			b.WriteString(" " + l + "\n")
		}
	}
	return b.String()
}

// planOn returns what sections make of a file, unless they are refused.
func planOn(t *rapid.T, text, sections string) (string, bool) {
	fsys := memfs.New()
	if err := util.WriteFile(fsys, "f", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	patch, err := v4a.Parse(envelope(sections))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := v4a.NewPlan(context.Background(), v4a.OnBilly(fsys), patch)
	if err != nil {
		return text, false
	}
	if err := plan.Commit(context.Background()); err != nil {
		t.Fatal(err)
	}
	got, err := util.ReadFile(fsys, "f")
	if err != nil {
		t.Fatal(err)
	}
	return string(got), true
}

// A patch of random sections is applied or leaves the tree byte for byte as it
// was.
func TestRefusedPatchChangesNothing(t *testing.T) {
	parent := t.TempDir()
	refused := 0
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(parent, "")
		if err != nil {
			t.Fatal(err)
		}
		before := randomTree(t, dir)
		patch, err := v4a.Parse(envelope(strings.Join(rapid.SliceOfN(rapid.Custom(randomSection), 1, 6).Draw(t, "sections"), "")))
		if err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		plan, err := v4a.NewPlan(context.Background(), v4a.OnRoot(root), patch)
		if err != nil {
			refused++
			if diff := cmp.Diff(before, readTree(t, dir)); diff != "" {
				t.Fatalf("%v\n%s", err, diff)
			}
			return
		}
		if err := plan.Commit(context.Background()); err != nil {
			t.Fatal(err)
		}
		for name := range readTree(t, dir) {
			if strings.Contains(name, ".apply-patch-") {
				t.Errorf("%s lies about", name)
			}
		}
	})
	if refused == 0 {
		t.Error("no patch was refused")
	}
}

var someNames = []string{"a", "b", "d/a", "d/b", "d", "e/f/g", "link", "out", "d/../b", "../x", ".git/config"}

func randomTree(t *rapid.T, dir string) tree {
	files := tree{}
	for _, name := range []string{"a", "b", "d/a", "e/f/g", ".git/config"} {
		if rapid.Bool().Draw(t, "has "+name) {
			files[name] = rapid.SampledFrom([]string{"", "x\n", "x\ny\n", "y\nx"}).Draw(t, "text")
		}
	}
	files.write(t, dir)
	for link, target := range map[string]string{"link": "a", "out": ".."} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	return readTree(t, dir)
}

func randomSection(t *rapid.T) string {
	name := rapid.SampledFrom(someNames)
	switch rapid.IntRange(0, 3).Draw(t, "operation") {
	case 0:
		return "*** Add File: " + name.Draw(t, "path") + "\n+x\n+y\n"
	case 1:
		return "*** Delete File: " + name.Draw(t, "path") + "\n"
	case 2:
		return "*** Update File: " + name.Draw(t, "path") + "\n*** Move to: " + name.Draw(t, "new path") + "\n@@\n-x\n+z\n"
	}
	return "*** Update File: " + name.Draw(t, "path") + "\n@@\n-x\n+x\n+y\n"
}
