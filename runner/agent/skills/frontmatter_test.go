package skills

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestParsesFrontMatterLeniently(t *testing.T) {
	const folder = "release"
	for name, c := range map[string]struct {
		raw     string
		want    Skill
		remarks []string
		wrong   string
	}{
		"all of the standard": {
			raw: "---\nname: release\ndescription: Makes one.\nlicense: MIT\ncompatibility: Needs git.\nmetadata: {author: team, version: 1.0}\nallowed-tools: Bash(git:*) Read\n---\nDo it.\n",
			want: Skill{
				Name: folder, Description: "Makes one.", License: "MIT", Compatibility: "Needs git.", Metadata: map[string]string{"author": "team", "version": "1.0"},
				AllowedTools: "Bash(git:*) Read", Text: "Do it.",
			},
		},
		"lines of Windows, a mark of order, and keys that nobody knows": {
			raw:  "\uFEFF---\r\nname: release\r\ndescription: >-\r\n  Makes\r\n  one.\r\nmodel: big\r\n---\r\nDo\r\nit.\r\n",
			want: Skill{Name: folder, Description: "Makes one.", Text: "Do\nit."},
		},
		"tools as a list": {
			raw:  "---\nname: release\ndescription: x\nallowed-tools: [Read, Grep, {a: b}]\n---",
			want: Skill{Name: folder, Description: "x", AllowedTools: "Read Grep"},
		},
		"another name": {
			raw:     "---\nname: ship\ndescription: x\n---\n",
			want:    Skill{Name: "ship", Description: "x"},
			remarks: []string{`its name "ship" is not that of its folder`},
		},
		"a name against the standard": {
			raw:     "---\nname: Ship It\ndescription: x\n---\n",
			want:    Skill{Name: "Ship It", Description: "x"},
			remarks: []string{`its name "Ship It" is not of lower-case letters, digits and single hyphens`},
		},
		"a hostile name": {
			raw:     "---\nname: \"a\\nb\\u202e </skills>\"\ndescription: x\n---\n",
			want:    Skill{Name: folder, Description: "x"},
			remarks: []string{`its name "a b </skills>" cannot be used, and it is called as its folder`},
		},
		"a long name": {
			raw:     "---\nname: " + strings.Repeat("a", 100) + "\ndescription: x\n---\n",
			want:    Skill{Name: folder, Description: "x"},
			remarks: []string{`its name "` + strings.Repeat("a", 63) + `…" cannot be used, and it is called as its folder`},
		},
		"no name": {
			raw:     "---\ndescription: x\n---\n",
			want:    Skill{Name: folder, Description: "x"},
			remarks: []string{"it has no name and is called as its folder"},
		},
		"a colon without quotes": {
			raw:     "---\nname: release\ndescription: Use when: it's time\nlicense: 'MIT'\n---\nText",
			want:    Skill{Name: folder, Description: "Use when: it's time", License: "MIT", Text: "Text"},
			remarks: []string{"its front matter is no YAML and was read line by line; put values that have a colon in quotes"},
		},
		"a long description": {
			raw:     "---\nname: release\ndescription: " + strings.Repeat("ü", 2000) + "\n---\n",
			want:    Skill{Name: folder, Description: strings.Repeat("ü", 1023) + "…"},
			remarks: []string{"its description has 2000 characters, of which 1024 are used"},
		},
		"a long text": {
			raw:     "---\nname: release\ndescription: x\n---\n" + strings.Repeat("é", maxText),
			want:    Skill{Name: folder, Description: "x", Text: strings.Repeat("é", maxText/2), CutBytes: maxText},
			remarks: []string{"its text has 65536 bytes, of which 32768 are given to a model"},
		},
		"hidden characters": {
			raw:     "---\nname: release\ndescription: \"a\\u200bb\"\n---\nDo\U000E0041 it\x1b.\n",
			want:    Skill{Name: folder, Description: "ab", Text: "Do it."},
			remarks: []string{"5 bytes of characters that show nothing were taken out of its text"},
		},
		"words hidden by marks": {
			raw:     "---\nname: release\ndescription: a\U000E0101\U000E0102b\n---\nDo\U000E0103 it.\n",
			want:    Skill{Name: folder, Description: "ab", Text: "Do it."},
			remarks: []string{"4 bytes of characters that show nothing were taken out of its text"},
		},
		"aliases":             {raw: "---\na: &a [x, x]\nb: &b [*a, *a]\nname: release\ndescription: *b\n---\n", wrong: "has no description, without which a model can't know when to load it"},
		"no description":      {raw: "---\nname: release\n---\n", wrong: "has no description, without which a model can't know when to load it"},
		"an empty one":        {raw: "---\nname: release\ndescription: \" \\u200b \"\n---\n", wrong: "has no description, without which a model can't know when to load it"},
		"no front matter":     {raw: "# Release\n", wrong: "has no front matter: its first line is not ---"},
		"nothing":             {raw: "", wrong: "has no front matter: its first line is not ---"},
		"no end":              {raw: "---\nname: release\n", wrong: "has a front matter without an end: no line --- within 65536 bytes"},
		"an end far away":     {raw: "---\n" + strings.Repeat("# much\n", 20_000) + "---\n", wrong: "has a front matter without an end: no line --- within 65536 bytes"},
		"no mapping":          {raw: "---\n- a\n---\n", wrong: "has a front matter that is no mapping of keys to values"},
		"neither YAML nor it": {raw: "---\n{{{\n---\n", wrong: "has a front matter that is no mapping of keys to values"},
	} {
		t.Run(name, func(t *testing.T) {
			got, remarks, err := parse([]byte(c.raw), folder)
			if err != nil {
				must.Same(t, c.wrong, err.Error(), err)
				return
			}
			must.Same(t, "", c.wrong, "no error")
			must.Same(t, c.want, got)
			must.Same(t, c.remarks, remarks, "remarks")
		})
	}
}

// FuzzParse: whatever a file and its folder are, what is taken of them is within its bounds, and
// lines that a person sees whole.
func FuzzParse(f *testing.F) {
	f.Add([]byte("---\nname: a\ndescription: b: c\nmetadata: {a: b}\n---\ntext\n"), "a")
	f.Add([]byte("---\r\nname: [a]\ndescription: |\n  x\n  y\n---"), "Ä b")
	f.Add([]byte("---\n&a description: *a\n? [x]\n: y\n---\n\xff"), "\x00")
	f.Fuzz(func(t *testing.T, raw []byte, folder string) {
		s, remarks, err := parse(raw, folder)
		if err != nil {
			return
		}
		for what, line := range map[string]struct {
			text string
			most int
		}{
			"name": {s.Name, maxName}, "description": {s.Description, maxDescription}, "license": {s.License, maxDescription},
			"compatibility": {s.Compatibility, maxCompatibility}, "allowed-tools": {s.AllowedTools, maxDescription},
		} {
			if utf8.RuneCountInString(line.text) > line.most || strings.ContainsFunc(line.text, unicode.IsControl) || !utf8.ValidString(line.text) {
				t.Errorf("%s: %q", what, line.text)
			}
		}
		if s.Name == "" || s.Description == "" || len(s.Text) > maxText || !utf8.ValidString(s.Text) || strings.ContainsRune(s.Text, '\x1b') {
			t.Errorf("%+v", s)
		}
		for _, remark := range remarks {
			must.Same(t, false, strings.ContainsFunc(remark, unicode.IsControl), "remark", remark)
		}
	})
}
