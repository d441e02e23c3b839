package report

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/agent-ci/agent-ci/gitops/v4a"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
	"github.com/agent-ci/agent-ci/runner/record/transcript/markdown"
	"github.com/agent-ci/agent-ci/tools/dialect"
)

// patchOf returns the patch in a call's arguments, in any of its forms, or nil. alone means that
// the arguments contain nothing else.
func patchOf(tool, input string) (patch v4a.Patch, alone bool) {
	if patch = editPatch(tool, input); patch != nil {
		return patch, true
	}
	patch, alone = patchIn(input)
	isJSON := strings.HasPrefix(strings.TrimSpace(input), "{")
	if patch != nil || !isJSON {
		return patch, alone
	}
	var args map[string]json.RawMessage
	if json.Unmarshal([]byte(input), &args) != nil {
		return nil, false
	}
	if patch = operationPatch(input); patch != nil {
		return patch, true
	}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		for _, text := range jsonStrings(args[name]) {
			if patch, alone = patchIn(text); patch != nil {
				return patch, alone && len(args) == 1
			}
		}
	}
	return nil, false
}

// jsonStrings returns a JSON string, or the strings of a JSON list.
func jsonStrings(raw json.RawMessage) []string {
	var text string
	var list []string
	if json.Unmarshal(raw, &text) == nil {
		return []string{text}
	}
	_ = json.Unmarshal(raw, &list) // if it is no list, there is no text
	return list
}

const (
	patchBegin = "*** Begin Patch"
	patchEnd   = "*** End Patch"
)

// patchIn returns the patch in a text, such as a command that applies it. alone means that the text
// has nothing else.
func patchIn(text string) (patch v4a.Patch, alone bool) {
	from, to := strings.Index(text, patchBegin), strings.LastIndex(text, patchEnd)
	if from < 0 || to < from {
		return nil, false
	}
	to += len(patchEnd)
	patch, err := v4a.Parse(text[from:to])
	if err != nil {
		return nil, false
	}
	return patch, strings.TrimSpace(text[:from]+text[to:]) == ""
}

// operationPatch parses the arguments of the API's own patch tool. It returns nil for other arguments.
func operationPatch(input string) v4a.Patch {
	var o struct {
		Type string `json:"type"`
		Path string `json:"path"`
		Diff string `json:"diff"`
	}
	if json.Unmarshal([]byte(input), &o) != nil {
		return nil
	}
	op, isOperation := strings.CutSuffix(o.Type, "_file")
	if !isOperation {
		return nil
	}
	if op == "create" {
		op = string(v4a.Add)
	}
	patch, err := v4a.ParseDiff(v4a.Op(op), o.Path, o.Diff)
	if err != nil {
		return nil
	}
	return patch
}

// opWritten is the operation of a file that write made or changed. The arguments do not say which.
const opWritten v4a.Op = "write"

// editPatch parses the arguments of the tools edit and write. It returns nil for others.
func editPatch(tool, input string) v4a.Patch {
	t := dialect.Of(tool)
	var a map[string]any
	if t.Kind != dialect.Edits || json.Unmarshal([]byte(input), &a) != nil {
		return nil
	}
	a = t.AsClaude(a)
	path, named := a["file_path"].(string)
	old, _ := a["old_string"].(string)
	replacement, _ := a["new_string"].(string)
	content, _ := a["content"].(string)
	if !named {
		return nil
	}
	section := v4a.ReplaceSection(path, old, replacement+content) // edit gives new_string, write gives content
	switch {
	case t.Claude == dialect.ClaudeWrite:
		section.Op = opWritten
	case old == "":
		section.Op = v4a.Add
	}
	return v4a.Patch{section}
}

// drawDiff draws a patch up to the limit for its size, with a note if it is not complete.
func drawDiff(limit textLimit, p v4a.Patch) g.Node {
	weight, all := patchSize(p)
	d := diffDrawer{remaining: limit(weight)}
	var nodes g.Group
	for _, s := range p {
		nodes = append(nodes, d.file(s))
		if d.remaining <= 0 {
			break
		}
	}
	if hidden := all - d.lines; hidden > 0 {
		nodes = append(nodes, cutNote(transcript.CountNoun(hidden, "line")+" of this patch not shown"))
	}
	return nodes
}

// patchSize returns the size of a patch on the page in bytes, and the number of its lines.
func patchSize(p v4a.Patch) (bytes, lines int) {
	for _, s := range p {
		bytes += 2 * lineBytes
		for _, h := range hunks(s) {
			bytes += lineBytes
			for _, l := range h.Lines {
				bytes += plainWeights.weigh(l.Text) + lineBytes
			}
			lines += len(h.Lines)
		}
	}
	return bytes, lines
}

// hunks returns the hunks of a section. An added file has one hunk of added lines.
func hunks(s v4a.Section) []v4a.Hunk {
	if s.Op != v4a.Add || s.Content == "" {
		return s.Hunks
	}
	var lines []v4a.Line
	for text := range strings.SplitSeq(strings.TrimSuffix(s.Content, "\n"), "\n") {
		lines = append(lines, v4a.Line{Kind: v4a.Insert, Text: text})
	}
	return []v4a.Hunk{{Lines: lines}}
}

// diffDrawer draws patches until the space is used up.
type diffDrawer struct {
	remaining int // bytes on the page
	lines     int // lines drawn so far
}

var opName = map[v4a.Op]string{v4a.Add: "Added", v4a.Update: "Changed", v4a.Delete: "Deleted", opWritten: "Wrote"}

// file draws the hunks of a file below its path.
func (d *diffDrawer) file(s v4a.Section) g.Node {
	d.remaining -= 2 * lineBytes
	name := g.Group{g.Text(opName[s.Op] + " "), codeNode(fileField(s.Path))}
	if s.MoveTo != "" {
		name = append(name, g.Text(", now "), codeNode(fileField(s.MoveTo)))
	}
	return h.Div(h.Class("diff"), h.P(h.Class("name"), name), d.hunks(hunks(s)))
}

// hunks draws the hunks of a file. Before each one is its place, or a sign for omitted lines.
func (d *diffDrawer) hunks(all []v4a.Hunk) (nodes g.Group) {
	for i, one := range all {
		if d.remaining <= 0 {
			break
		}
		d.remaining -= lineBytes
		place := Field(strings.Join(one.Context, " › "))
		if place == "" && i > 0 {
			place = "⋯"
		}
		if place != "" {
			nodes = append(nodes, h.P(h.Class("place"), g.Text(place)))
		}
		nodes = append(nodes, d.blocks(one.Lines)...)
	}
	return nodes
}

// blocks draws the lines of a hunk. A block has unchanged lines, or removed and added lines.
func (d *diffDrawer) blocks(lines []v4a.Line) (nodes g.Group) {
	block := blockLines{}
	for _, l := range lines {
		text := d.takeLine(l.Text)
		if d.remaining < 0 {
			break
		}
		d.lines++
		if block.endsBefore(l.Kind) {
			nodes = append(nodes, block.node())
			block = blockLines{}
		}
		block[l.Kind] = append(block[l.Kind], text)
	}
	if len(block) > 0 {
		nodes = append(nodes, block.node())
	}
	return nodes
}

// blockLines holds the lines of a block by kind.
type blockLines map[v4a.Kind][]string

// endsBefore reports whether a line of a kind begins another block.
func (r blockLines) endsBefore(kind v4a.Kind) bool {
	switch kind {
	case v4a.Keep:
		return len(r[v4a.Remove])+len(r[v4a.Insert]) > 0
	case v4a.Remove:
		return len(r[v4a.Keep])+len(r[v4a.Insert]) > 0
	}
	return len(r[v4a.Keep]) > 0
}

// node draws unchanged lines, or removed lines with their replacement.
func (r blockLines) node() g.Node {
	if unchanged := r[v4a.Keep]; len(unchanged) > 0 {
		return h.Pre(h.Class("keep"), g.Text("\n"+strings.Join(unchanged, "\n")))
	}
	old, replacement := compareLines(r[v4a.Remove], r[v4a.Insert])
	return h.Pre(h.Class("change"), g.If(len(old) > 0, h.Del(old)), g.If(len(replacement) > 0, h.Ins(replacement)))
}

// longLine limits a line of a diff, in UTF-16 units.
const longLine = 2000

// takeLine returns a line as the page shows it, and takes its size from the remaining space.
func (d *diffDrawer) takeLine(s string) string {
	s = markdown.Show(markdown.Cut(s, longLine))
	d.remaining -= plainWeights.weigh(s) + lineBytes
	return s
}
