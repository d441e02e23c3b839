package opencode

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"pgregory.net/rapid"
)

// Notes of what was overlooked.
const (
	trailingNote = "oldString was found with blanks at the ends of lines left aside"
	indentedNote = "oldString was found with another indentation"
	trimmedNote  = "oldString was found with indentation left aside"
	spacedNote   = "oldString was found with the blanks in its lines left aside"
	escapesNote  = "oldString was found with its backslashes taken for escapes"
)

func TestReplace(t *testing.T) {
	for name, test := range map[string]struct {
		file, old, new string
		all            bool
		want, note     string
		refused        string
	}{
		"a part of a line":                 {file: "a b c\n", old: "b", new: "B", want: "a B c\n"},
		"lines":                            {file: "a\nb\nc\n", old: "b\nc\n", new: "x\n", want: "a\nx\n"},
		"nothing in its place":             {file: "a\nb\nc\n", old: "b\n", want: "a\nc\n"},
		"at two places":                    {file: "a\nb\na\n", old: "a", new: "x", refused: "oldString stands at more than one place: lines 1, 3; give more"},
		"at places that lie across":        {file: "aaa", old: "aa", new: "x", refused: "more than one place: lines 1, 1"},
		"all over":                         {file: "a\nb\na\n", old: "a", new: "x", all: true, want: "x\nb\nx\n"},
		"all over, apart":                  {file: "aaaa", old: "aa", new: "x", all: true, want: "xx"},
		"CRLF in the file":                 {file: "a\r\nb\r\nc\r\n", old: "a\nb\n", new: "x\ny\nz\n", want: "x\r\ny\r\nz\r\nc\r\n"},
		"CRLF in the file, in a line":      {file: "a\r\nb\r\n", old: "b", new: "b\nc", want: "a\r\nb\r\nc\r\n"},
		"CRLF in the file, in the last":    {file: "a\r\nb", old: "b", new: "b\nc", want: "a\r\nb\r\nc"},
		"CRLF in the arguments":            {file: "a\nb\n", old: "a\r\nb", new: "x\r\ny", want: "x\ny\n"},
		"CRLF in both":                     {file: "a\r\nb\r\n", old: "a\r\nb", new: "x\r\ny", want: "x\r\ny\r\n"},
		"behind a mark":                    {file: "\ufeffa\nb\n", old: "a\nb", new: "x", want: "\ufeffx\n"},
		"behind a mark, with loose spaces": {file: "\ufeff  a\nb\n", old: "a \nb", new: "x", want: "\ufeffx\n", note: trimmedNote},
		"trailing space":                   {file: "a  \nb\n", old: "a\nb\n", new: "x\n", want: "x\n", note: trailingNote},
		"trailing space in oldString":      {file: "a\nb\n", old: "a \nb", new: "x", want: "x\n", note: trailingNote},
		"without indentation": {
			file: "if x {\n\tfor {\n\t\ta()\n\t}\n}\n", old: "for {\n\ta()\n}\n", new: "for {\n\tif y {\n\t\ta()\n\t}\n}\n",
			want: "if x {\n\tfor {\n\t\tif y {\n\t\t\ta()\n\t\t}\n\t}\n}\n", note: indentedNote + "; newString was indented as the lines that it replaces are",
		},
		"spaces for tabs": {
			file: "\tif x {\n\t\ta()\n\t}\n", old: "    if x {\n        a()\n    }", new: "    if y {\n        b()\n    }",
			want: "\tif y {\n\t\tb()\n\t}\n", note: trimmedNote + "; newString was indented as the lines that it replaces are",
		},
		"indentation that says nothing": {
			file: "  a\n    b\n", old: "a\nb\n", new: "x\ny\n", want: "x\ny\n", note: trimmedNote,
		},
		"told apart by indentation": {
			file: "a\n  b\n---\na\nb\n", old: " a\n   b\n", new: " a\n   c\n",
			want: "a\n  c\n---\na\nb\n", note: indentedNote + "; line 4 fits too, with indentation left aside; make sure that the place is right; newString was indented as the lines that it replaces are",
		},
		"not told apart":             {file: "a\n  b\n---\n  a\n    b\n", old: " a\n   b\n", new: "x", refused: "more than one place: lines 1, 4"},
		"all over, with loose space": {file: " a\n a\n", old: "a \n", new: "b\n", all: true, want: " b\n b\n", note: indentedNote + "; newString was indented as the lines that it replaces are"},
		"behind the first indentation": {
			file: "\ta()\n}\n", old: "a()\n}\n", new: "a()\nb()\n}\n", want: "\ta()\nb()\n}\n",
			note: "oldString begins behind the indentation of its first line, and newString was put there as it is",
		},
		"behind an indentation, blank lines below": {
			file: "\ta()\n\n", old: "a()\n\n", new: "a()\nb()\n\n", want: "\ta()\nb()\n\n",
			note: "oldString begins behind the indentation of its first line, and newString was put there as it is",
		},
		"behind an indentation that the new lines have": {file: "\ta()\n}\n", old: "a()\n", new: "a()\n\n\tb()\n", want: "\ta()\n\n\tb()\n}\n"},
		"a last line without ending":                    {file: "a\n b", old: "a \nb\n", new: "c\nd\n", want: "c\nd", note: trimmedNote},
		"inner space":                                   {file: "one  two\tthree\nb\n", old: "one two three\n", new: "x\n", want: "x\nb\n", note: spacedNote},
		"inner space, at two":                           {file: "a b\na\tb\n", old: "a  b\n", new: "x\n", refused: "more than one place: lines 1, 2"},
		"inner space, all over":                         {file: "a b\n", old: "a  b\n", new: "x", all: true, refused: "oldString is not in the file"},
		"escaped quotes":                                {file: "say(\"hi\")\n", old: `say(\"hi\")`, new: `say(\"you\")`, want: "say(\"you\")\n", note: escapesNote + ", and so were those of newString"},
		"escaped, the new one not":                      {file: "it's `${a}`\n", old: "it\\'s `\\${a}`", new: `it's C:\b`, want: "it's C:\\b\n", note: escapesNote},
		"escaped ends of lines":                         {file: "a\nb\n", old: `a\nb`, new: "c", want: "c\n", note: escapesNote},
		"escaped backslashes":                           {file: "C:\\x\n", old: `C:\\x`, new: "D:", want: "D:\n", note: escapesNote},
		"escaped, at two places":                        {file: "\"a\"\n\"a\"\n", old: `\"a\"`, new: "x", refused: "more than one place: lines 1, 2"},
		"exact, and but for blanks": {
			file: "\tif x {\n\t\ta()\n\t}\nif x {\n\ta()\n}\n", old: "if x {\n\ta()\n}\n", new: "b()\n", want: "\tif x {\n\t\ta()\n\t}\nb()\n",
			note: "line 1 fits too, with another indentation; make sure that the place is right",
		},
		"nothing looser: a middle":   {file: "a\nb\nc\n", old: "a\nx\nc\n", new: "y", refused: "nearest place: line 1 (- in oldString, + in the file)\n a\n-x\n+b\n c"},
		"nothing looser: half lines": {file: "abc\ndef\n", old: "bc \n de", new: "y", refused: "oldString is not in the file"},
		"blank lines alone":          {file: "a\n\n\nb\n", old: " \n \n", new: "y", refused: "oldString is not in the file"},
		"nothing like it":            {file: "a\nb\n", old: "quite another thing", new: "y", refused: "and nothing like it"},
		"an empty file":              {file: "", old: "a", new: "b", refused: "the file is empty"},
		"nothing changes":            {file: "a\r\n", old: "a\r\n", new: "a\n", refused: "nothing would change"},
		"an end of a line in CRLF":   {file: "a\r\n", old: "\n", new: "x\n", want: "ax\r\n"},
		"both endings":               {file: "a\nb\n--\r\na\r\nb\r\n", old: "a\nb", new: "x", refused: "more than one place: lines 1, 4"},
		"both endings, all over":     {file: "a\nb\n--\r\na\r\nb\r\n", old: "a\nb", new: "x\ny", all: true, want: "x\ny\n--\r\nx\r\ny\r\n"},
		"bytes that are no text":     {file: "\xff\x00\nb\n", old: "b", new: "c", want: "\xff\x00\nc\n"},
	} {
		t.Run(name, func(t *testing.T) {
			now, note, err := replacement{test.old, test.new, test.all}.apply(test.file)
			if test.refused != "" {
				must.Fail(t, test.refused, err, now)
				return
			}
			if err != nil || now != test.want || note != test.note {
				t.Errorf("it is %q (%s), %v, want %q (%s)", now, note, err, test.want, test.note)
			}
		})
	}
}

// An edit of a file, written as the text before and the text after, with as much around it as makes
// it the only one, gives the edit.
func TestReplaceExpressesAnyEdit(t *testing.T) {
	lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "  a\n", "\tb\n", "\n", "}\n", "c \n", "é\n", "x y\n"}), 1, 40)
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(lines.Draw(t, "file"), "") + rapid.SampledFrom([]string{"", "end"}).Draw(t, "end")
		from := rapid.IntRange(0, len(text)-1).Draw(t, "from")
		to := rapid.IntRange(from+1, len(text)).Draw(t, "to")
		next := strings.Join(lines.Draw(t, "new"), "")
		for strings.Count(text, text[from:to]) > 1 || overlaps(text, text[from:to]) {
			from, to = max(0, from-1), min(len(text), to+1)
		}
		if next == text[from:to] {
			t.Skip("no edit")
		}
		want := text[:from] + next + text[to:]
		for _, crs := range []bool{false, true} {
			file, want := text, want
			if crs {
				if !strings.Contains(text, "\n") {
					continue
				}
				file, want = strings.ReplaceAll(text, "\n", "\r\n"), strings.ReplaceAll(want, "\n", "\r\n")
			}
			if got, note, err := (replacement{text[from:to], next, false}).apply(file); err != nil || got != want || note != "" && !strings.Contains(note, "fits too") && !strings.Contains(note, "begins behind") {
				t.Fatalf("%q to %q in %q: %q (%s), %v, want %q", text[from:to], next, file, got, note, err, want)
			}
		}
	})
}

func overlaps(text, old string) bool {
	first := strings.Index(text, old)
	return strings.Contains(text[first+1:], old)
}

// words are what is left of a text without its blanks.
func words(text string) string { return strings.Join(strings.Fields(text), "") }

// No old text changes a file that does not have all of its words in order, whatever blanks are around them.
func FuzzReplace(f *testing.F) {
	f.Add("a\n  b\n", "a\nb\n", "x\n", false)
	f.Add("\ufeffa\r\nb", "a\nb", "y", true)
	f.Add(" a\n a\n\ta", "a", "", true)
	f.Fuzz(func(t *testing.T, file, old, next string, all bool) {
		if old == "" || old == next {
			t.Skip("refused before")
		}
		got, _, err := replacement{old, next, all}.apply(file)
		if err != nil {
			must.Same(t, "", got, "refused")
			return
		}
		if got == file {
			t.Error("nothing changed")
		}
		if !strings.Contains(words(file), words(old)) && !strings.Contains(words(file), words(escapes.Replace(old))) {
			t.Errorf("%q changed %q to %q", old, file, got)
		}
	})
}
