package tools

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/policy/clip"
)

// Default limits of outputs.
const (
	DefaultBudget    = 10_000   // tokens
	DefaultFileLimit = 64 << 20 // bytes
)

// bytesPerToken is the reference implementation's estimate. A tokenizer would slow the start.
const bytesPerToken = 4

// Outputs processes every output for the model: it removes secrets, repairs the text, cuts it to a
// budget, and stores the whole for the model. The zero value neither removes nor stores. It is safe
// for concurrent use.
type Outputs struct {
	// Create opens a new file below the run directory for a cut output. name is "outputs/" and a
	// unique file name. path is told to the model and accepted by read_file. May be nil.
	Create func(name string) (file io.WriteCloser, path string, err error)
	// NamePrefix begins the names of files, and tells those of several agents apart; it may be empty.
	NamePrefix string
	// WithheldFiles keeps files of Create from the model until a Gate permits the output. Nil makes them
	// readable at once.
	WithheldFiles WithheldFiles
	Redact        func(text string) string // removes secrets; may be nil
	Budget        int                      // tokens of one output; 0 means DefaultBudget
	FileLimit     int64                    // bytes kept of one output; 0 means DefaultFileLimit

	mu   sync.Mutex
	used map[string]int
}

// UncutOutput describes an output as it was before it was cut.
type UncutOutput struct {
	Truncated bool
	File      string // where the whole is, below the run directory; empty when it is not kept
	Bytes     int64
	Err       error // why it was not kept, or not to its end

	parts []outputPart
}

// outputPart is a part of an output: the text for the model, and the file with the whole, or "".
type outputPart struct{ text, file string }

// WithheldFiles keeps output files from the model, by their names for Create.
type WithheldFiles interface {
	Read(name string) ([]byte, error)
	Release(name string) error // into its reach
	Drop(name string)
}

// whole returns the stored output before the cut.
func (o *Outputs) whole(w UncutOutput) (string, error) {
	var all strings.Builder
	for _, part := range w.parts {
		all.WriteString(part.text)
		if part.file == "" || o.WithheldFiles == nil {
			continue
		}
		text, err := o.WithheldFiles.Read(part.file)
		if err != nil {
			return "", fmt.Errorf("read the whole output: %w", err)
		}
		all.WriteString(o.clean(string(text)))
	}
	return all.String(), nil
}

// releaseOrDrop lets the model have the files of an output, or drops them.
func (o *Outputs) releaseOrDrop(w UncutOutput, let bool) UncutOutput {
	if o.WithheldFiles == nil {
		return w
	}
	for _, part := range w.parts {
		switch {
		case part.file == "":
		case let:
			w.Err = errors.Join(w.Err, o.WithheldFiles.Release(part.file))
		default:
			o.WithheldFiles.Drop(part.file)
			w.File = ""
		}
	}
	return w
}

// finish converts a tool's result to the model's.
func (o *Outputs) finish(call Call, r Result) (Result, UncutOutput) {
	if r.Recorded {
		r.Output = o.clean(r.Output)
		return r, UncutOutput{Truncated: strings.Contains(r.Output, CutWarning), Bytes: int64(len(r.Output))}
	}
	limit, whole := o.budget(r.Budget), UncutOutput{}
	switch {
	case len(r.Parts) > 0:
		return o.parts(call, r, limit)
	case len(r.Commands) == 0:
		return o.printed(call, r, limit)
	}
	var all []string
	for i, ran := range r.Commands {
		text, each := o.text(call, ran.Output, ran.Printed, limit/len(r.Commands))
		r.Commands[i].Output, r.Commands[i].Printed = text, nil
		head := fmt.Sprintf("Exit code: %d\nWall time: %.1f seconds\nOutput:\n", ran.ExitCode, ran.Took.Seconds())
		whole.parts = append(whole.parts, outputPart{text: head})
		whole = whole.combine(each)
		whole.parts = append(whole.parts, outputPart{text: "\n"})
		all = append(all, head+text)
	}
	r.Output = strings.Join(all, "\n")
	return r, whole
}

// printed finishes a result with a single text.
func (o *Outputs) printed(call Call, r Result, limit int) (Result, UncutOutput) {
	text, whole := o.text(call, r.Output, r.Printed, limit)
	if r.Object = o.cleaned(r.Object); r.Printed != nil {
		if fields, is := r.Object.(map[string]any); is {
			fields["output"] = strings.TrimPrefix(text, o.clean(r.Output))
		}
	}
	r.Output, r.Printed = text, nil
	return r, whole
}

// cleaned cleans the texts of a JSON value.
func (o *Outputs) cleaned(value any) any {
	switch v := value.(type) {
	case string:
		return o.clean(v)
	case []any:
		all := make([]any, len(v))
		for i, each := range v {
			all[i] = o.cleaned(each)
		}
		return all
	case map[string]any:
		all := make(map[string]any, len(v))
		for name, each := range v {
			all[o.clean(name)] = o.cleaned(each)
		}
		return all
	}
	return value
}

// parts is a result of several items. Where their texts are too long together, one text stands for
// all of them, before the images.
func (o *Outputs) parts(call Call, r Result, limit int) (Result, UncutOutput) {
	var texts []string
	var shown, images []Part
	for _, part := range r.Parts {
		if part.Image != nil {
			images = append(images, part)
		} else {
			texts = append(texts, part.Text)
		}
	}
	text, whole := o.text(call, strings.Join(texts, "\n"), nil, limit)
	if whole.Truncated {
		shown = append([]Part{{Text: text}}, images...)
	} else {
		for _, part := range r.Parts {
			part.Text = o.clean(part.Text)
			shown = append(shown, part)
		}
	}
	header := o.clean(r.Output)
	r.Parts = append([]Part{{Text: header}}, shown...)
	r.Output = strings.TrimSuffix(header+"\n"+text, "\n")
	whole.parts = append([]outputPart{{text: header + "\n"}}, whole.parts...)
	return r, whole
}

// text returns an uncut header with the printed output, or without one the cut output.
func (o *Outputs) text(call Call, output string, printed *Printed, limit int) (string, UncutOutput) {
	header := ""
	if printed == nil {
		printed = o.asPrinted(call, output)
	} else {
		header = o.clean(output)
	}
	text, whole := o.cutToBudget(call, printed, limit)
	whole.parts = []outputPart{{header + text, ""}}
	if whole.File != "" {
		whole.parts = []outputPart{{header, whole.File}}
	}
	return header + text, whole
}

// asPrinted treats a text like a command's output, which keeps only the ends of a long one in
// memory for redaction.
func (o *Outputs) asPrinted(call Call, text string) *Printed {
	const piece = 64 << 10
	c := o.Capture(call.ID)
	for rest := text; rest != ""; rest = rest[min(piece, len(rest)):] {
		_, _ = c.Write([]byte(rest[:min(piece, len(rest))])) // it can't fail
	}
	printed := c.Take()
	printed.lines = strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1
	return printed
}

// combine joins the accounts of two outputs of one call. Only the first File is kept.
func (w UncutOutput) combine(other UncutOutput) UncutOutput {
	w.Truncated = w.Truncated || other.Truncated
	w.Bytes += other.Bytes
	w.Err = errors.Join(w.Err, other.Err)
	w.File = cmp.Or(w.File, other.File)
	w.parts = append(w.parts, other.parts...)
	return w
}

// budget returns the bytes for a call's requested tokens.
func (o *Outputs) budget(asked int) int {
	most := cmp.Or(o.Budget, DefaultBudget)
	return min(cmp.Or(asked, most), most) * bytesPerToken
}

// cutToBudget returns the output without secrets. If it is longer than limit bytes, the whole goes to a file
// and the two ends are returned.
func (o *Outputs) cutToBudget(call Call, p *Printed, limit int) (string, UncutOutput) {
	whole := UncutOutput{Bytes: p.bytes}
	head := o.clean(string(p.head))
	if p.spool == nil && len(head) <= limit {
		return head, whole
	}
	tail, file := head, p.spool
	if file == nil {
		file = o.spool(call.ID)
		file.writeClean(head)
	} else { // a secret may lie across the inner end of either
		tail = o.clean(string(p.tail))
		head, tail = firstBytes(head, max(len(head)-redactionMargin, 0)), lastBytes(tail, max(len(tail)-redactionMargin, 0))
	}
	whole.Truncated = true
	whole.Err = file.close()
	whole.File = file.name
	return p.cut(head, tail, limit, file.describePlace()), whole
}

// redactionMargin is the number of bytes dropped beside the cut of an output too long for a complete
// redaction. Fragments identify longer secrets.
const redactionMargin = 32 << 10

// clean makes text fit to be sent: valid UTF-8, no NUL, no secrets.
func (o *Outputs) clean(text string) string {
	const replacement = "\uFFFD"
	text = strings.ToValidUTF8(text, replacement)
	text = strings.ReplaceAll(text, "\x00", replacement)
	if o.Redact != nil {
		text = o.Redact(text)
	}
	return text
}

// line returns words in a line of their own, or "" for none.
func (o *Outputs) line(words string) string {
	if words == "" {
		return ""
	}
	return o.clean(words) + "\n"
}

// Tokens estimates how many tokens some bytes of text are.
func Tokens(bytes int64) int64 {
	return int64(math.Ceil(float64(bytes) / bytesPerToken))
}

// AskedTokens converts a number of tokens that a call asks for into a Result's Budget.
func AskedTokens(asked float64) int {
	const most = 1 << 30
	return int(min(max(asked, 0), most))
}

// CutWarning begins a cut output.
const CutWarning = "Warning: truncated output"

// cut returns both ends of an output in limit bytes. head and tail are its ends, each at least as
// long as its share. It uses the reference implementation's warning and marker, known to models,
// followed by the place of the whole.
func (p *Printed) cut(head, tail string, limit int, kept string) string {
	head = firstBytes(head, limit/2)
	tail = lastBytes(tail, limit-limit/2)
	missing := max(p.bytes-int64(len(head)+len(tail)), 1)
	if !strings.HasSuffix(head, "\n") && head != "" {
		head += "\n"
	}
	return fmt.Sprintf(CutWarning+" (original token count: %d)\nTotal output lines: %d\n\n%s…%d tokens truncated; %s…\n%s",
		Tokens(p.bytes), p.lines, head, Tokens(missing), kept, tail)
}

// firstBytes returns the beginning of a text up to n bytes, ending at a line if that costs at most
// a quarter, and always between runes.
func firstBytes(text string, n int) string {
	if len(text) <= n {
		return text
	}
	if line := strings.LastIndexByte(text[:n], '\n') + 1; line >= n-n/4 && line > 0 {
		return text[:line]
	}
	return clip.Start(text, n)
}

// lastBytes is the end of text in at most n bytes, by the same rule.
func lastBytes(text string, n int) string {
	if len(text) <= n {
		return text
	}
	start := len(text) - n
	if text[start-1] == '\n' {
		return text[start:]
	}
	if line := strings.IndexByte(text[start:], '\n') + 1; line > 0 && line <= n/4 {
		return text[start+line:]
	}
	return clip.End(text, n)
}
