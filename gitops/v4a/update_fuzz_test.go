package v4a

import (
	"bufio"
	"io"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// FuzzUpdate throws bytes at the parser of each dialect and, as what they are
// then, at a text.
func FuzzUpdate(f *testing.F) {
	f.Add("*** Begin Patch\n*** Update File: f\n@@ a\n-b\n+c\n*** End Patch", "a\nb\n")
	f.Add("*** Begin Patch\n*** Update File: f\n*** Move to: g\n@@\n b\n\n@@\n+x\n*** End of File\n*** Add File: f\n+f\n*** Delete File: g\n*** End Patch", "a\r\nb")
	f.Add("<<'EOF'\n*** Begin Patch\n*** Update File: f\n@@\n a\n*** Update File: f\n@@\n+b\n*** End Patch\nEOF", "\ufeffa\r")
	f.Add("@@ a\n-b\n+c\n@@\n \n*** End of File\n", "a\nb\n\n")
	f.Add("+a\n+b\r\n", "")
	f.Fuzz(func(t *testing.T, text, file string) {
		if len(text) > 1<<16 || len(file) > 1<<16 {
			t.Skip("enough is known of smaller ones")
		}
		if patch, err := Parse(text); err == nil {
			checkUpdates(t, patch, file)
		} else if _, ok := err.(*ParseError); !ok {
			t.Errorf("error of Parse: %v", err)
		}
		for _, op := range [...]Op{Add, Update, Delete} {
			if patch, err := ParseDiff(op, "f", text); err == nil {
				checkUpdates(t, patch, file)
			} else if _, ok := err.(*ParseError); !ok {
				t.Errorf("error of ParseDiff: %v", err)
			}
		}
	})
}

// checkUpdates applies the sections of a patch to a text, as if all were about
// one file.
func checkUpdates(t *testing.T, patch Patch, file string) {
	text := file
	for _, s := range patch {
		if s.Op != Update {
			text = s.Content
			continue
		}
		updated, _, err := s.Update(t.Context(), text)
		if err != nil {
			checkMismatch(t, err)
			return
		}
		text = updated
		checkDiff(t, file, text)
	}
	checkDiff(t, file, text)
	checkSize(t, file, text, patch)
	Compare(file, text).WriteHunks(bufio.NewWriter(io.Discard))
}

func checkMismatch(t *testing.T, err error) {
	if _, ok := err.(*MatchError); !ok {
		t.Errorf("error of Update: %v", err)
	}
	if n := len(err.Error()); n > 1<<17 {
		t.Errorf("error of %d bytes", n)
	}
}

// checkDiff checks that the differing lines make the text from the base.
func checkDiff(t *testing.T, base, text string) {
	var patched strings.Builder
	at := 0
	for _, r := range Compare(base, text).ranges {
		patched.WriteString(base[at:r.oldFrom])
		patched.WriteString(text[r.newFrom:r.newTo])
		at = r.oldTo
		if !atLineStart(base, r.oldFrom) || !atLineStart(text, r.newFrom) {
			t.Errorf("%+v of %q and %q starts within a line", r, base, text)
		}
	}
	patched.WriteString(base[at:])
	must.Same(t, text, patched.String(), "differing lines make", base)
}

// checkSize checks that what a file holds grows with the file and the patch
// and no faster: sections can only add what they say, with an ending for each line.
func checkSize(t *testing.T, base, text string, patch Patch) {
	said := 0
	for _, s := range patch {
		said += 2*len(s.Content) + 2
		for _, h := range s.Hunks {
			for _, l := range h.Lines {
				said += len(l.Text) + 2
			}
		}
	}
	if n := len(text); n > len(base)+said {
		t.Errorf("it has %d bytes, from %d and a patch of %d", n, len(base), said)
	}
}

func atLineStart(text string, at int) bool { return at == 0 || text[at-1] == '\n' }
