package tools

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/policy/clip"
)

// Default limits of outputs.
const (
	DefaultBudget    = 10_000   // tokens
	DefaultFileLimit = 64 << 20 // bytes
)

// bytesPerToken is the estimate of the reference implementation. A tokenizer would slow down the start.
const bytesPerToken = 4

// Outputs prepares outputs for the model. It removes secrets, repairs the text, and cuts it to a budget. It saves the
// complete output of a cut one in a file that the model can read. The zero value neither removes secrets nor saves
// outputs. It is safe for concurrent use.
type Outputs struct {
	// Create creates a file below the run directory for the complete output. name is "outputs/" and a unique file name.
	// path is what the model gets and read_file accepts. It may be nil.
	Create func(name string) (file io.WriteCloser, path string, err error)
	// NamePrefix begins the file names, to keep those of several agents apart. It may be empty.
	NamePrefix string
	// WithheldFiles keeps the files from the model until a Gate has allowed the output. Nil means that the model can
	// read them at once.
	WithheldFiles WithheldFiles
	Redact        func(text string) string // removes secrets; may be nil
	Budget        int                      // maximum tokens of one output; 0 means DefaultBudget
	FileLimit     int64                    // maximum bytes saved of one output; 0 means DefaultFileLimit

	mu        sync.Mutex
	usedNames map[string]int
}

// UncutOutput describes the complete output of a call.
type UncutOutput struct {
	Truncated bool
	File      string // file with the complete output, relative to the run directory; "" if it is not saved
	Bytes     int64
	Err       error // why it was not saved completely

	parts []outputPart
}

// outputPart is one text of an output for the model, and the file with the complete text, or "".
type outputPart struct{ text, file string }

// WithheldFiles keeps saved outputs from the model. Files have the names that Create got.
type WithheldFiles interface {
	Read(name string) ([]byte, error)
	Release(name string) error // makes the file readable for the model
	Drop(name string)
}

// readUncut returns the complete output, including the texts in withheld files.
func (o *Outputs) readUncut(uncut UncutOutput) (string, error) {
	var all strings.Builder
	for _, part := range uncut.parts {
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

// releaseOrDrop makes the withheld files of an output readable for the model if release is true, or deletes them. It
// returns the updated description of the output.
func (o *Outputs) releaseOrDrop(uncut UncutOutput, release bool) UncutOutput {
	if o.WithheldFiles == nil {
		return uncut
	}
	for _, part := range uncut.parts {
		switch {
		case part.file == "": // nothing was withheld
		case release:
			uncut.Err = errors.Join(uncut.Err, o.WithheldFiles.Release(part.file))
		default:
			o.WithheldFiles.Drop(part.file)
			uncut.File = ""
		}
	}
	return uncut
}

// finish converts a tool's result to the result for the model: without secrets, and cut to the budget.
func (o *Outputs) finish(call Call, r Result) (Result, UncutOutput) {
	if r.Recorded {
		r.Output = o.clean(r.Output)
		return r, UncutOutput{Truncated: strings.Contains(r.Output, CutWarning), Bytes: int64(len(r.Output))}
	}
	limit, uncut := o.byteLimit(r.Budget), UncutOutput{}
	switch {
	case len(r.Parts) > 0:
		return o.finishParts(call, r, limit)
	case len(r.Commands) == 0:
		return o.finishPrinted(call, r, limit)
	}
	var all []string
	for i, ran := range r.Commands {
		text, commandUncut := o.cutWithHeader(call, ran.Output, ran.Printed, limit/len(r.Commands))
		r.Commands[i].Output, r.Commands[i].Printed = text, nil
		head := fmt.Sprintf("Exit code: %d\nWall time: %.1f seconds\nOutput:\n", ran.ExitCode, ran.Took.Seconds())
		uncut.parts = append(uncut.parts, outputPart{text: head})
		uncut = uncut.combine(commandUncut)
		uncut.parts = append(uncut.parts, outputPart{text: "\n"})
		all = append(all, head+text)
	}
	r.Output = strings.Join(all, "\n")
	return r, uncut
}

// finishPrinted returns a result as the model gets it: Output has also what was in Printed, up to limit bytes. If there
// is printed output, it also sets the field output of Object.
func (o *Outputs) finishPrinted(call Call, r Result, limit int) (Result, UncutOutput) {
	text, uncut := o.cutWithHeader(call, r.Output, r.Printed, limit)
	r.Object = o.cleanJSON(r.Object)
	if r.Printed != nil {
		if fields, isObject := r.Object.(map[string]any); isObject {
			fields["output"] = strings.TrimPrefix(text, o.clean(r.Output))
		}
	}
	r.Output, r.Printed = text, nil
	return r, uncut
}

// cleanJSON returns a decoded JSON value with clean applied to all of its texts.
func (o *Outputs) cleanJSON(value any) any {
	switch v := value.(type) {
	case string:
		return o.clean(v)
	case []any:
		all := make([]any, len(v))
		for i, each := range v {
			all[i] = o.cleanJSON(each)
		}
		return all
	case map[string]any:
		all := make(map[string]any, len(v))
		for name, each := range v {
			all[o.clean(name)] = o.cleanJSON(each)
		}
		return all
	}
	return value
}

// finishParts returns a result with Parts as the model gets it. If the texts of Parts together exceed limit bytes, one
// cut text before the images replaces them. Output was a header, which is never cut: it becomes the first part.
// The new Output has the header and the same texts, without images.
func (o *Outputs) finishParts(call Call, r Result, limit int) (Result, UncutOutput) {
	var texts []string
	var images []Part
	for _, part := range r.Parts {
		if part.Image != nil {
			images = append(images, part)
		} else {
			texts = append(texts, part.Text)
		}
	}
	text, uncut := o.cutWithHeader(call, strings.Join(texts, "\n"), nil, limit)
	shownParts := append([]Part{{Text: text}}, images...)
	if !uncut.Truncated {
		shownParts = slices.Clone(r.Parts)
		for i := range shownParts {
			shownParts[i].Text = o.clean(shownParts[i].Text)
		}
	}
	header := o.clean(r.Output)
	r.Parts = append([]Part{{Text: header}}, shownParts...)
	r.Output = strings.TrimSuffix(header+"\n"+text, "\n")
	uncut.parts = append([]outputPart{{text: header + "\n"}}, uncut.parts...)
	return r, uncut
}

// cutWithHeader returns the header and the printed output for the model, with printed cut to limit bytes. Without
// printed output, it cuts header instead.
func (o *Outputs) cutWithHeader(call Call, header string, printed *Printed, limit int) (string, UncutOutput) {
	if printed == nil {
		header, printed = "", o.asPrinted(call, header)
	}
	header = o.clean(header)
	text, uncut := o.cutToBudget(call, printed, limit)
	uncut.parts = []outputPart{{header + text, ""}}
	if uncut.File != "" {
		uncut.parts = []outputPart{{header, uncut.File}}
	}
	return header + text, uncut
}

// asPrinted converts a text to a Printed, which keeps only the ends of a long text in memory.
func (o *Outputs) asPrinted(call Call, text string) *Printed {
	c := o.Capture(call.ID)
	_, _ = io.Copy(c, struct{ io.Reader }{strings.NewReader(text)}) // in pieces; Capture.Write never fails
	printed := c.Take()
	printed.lines = strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1
	return printed
}

// combine returns the description of an output followed by another one of the same call. It keeps the first File.
func (u UncutOutput) combine(other UncutOutput) UncutOutput {
	u.Truncated = u.Truncated || other.Truncated
	u.Bytes += other.Bytes
	u.Err = errors.Join(u.Err, other.Err)
	u.File = cmp.Or(u.File, other.File)
	u.parts = append(u.parts, other.parts...)
	return u
}

// byteLimit returns the maximum length of an output, in bytes. asked is the number of tokens that the call asks for, or 0.
func (o *Outputs) byteLimit(asked int) int {
	maxTokens := cmp.Or(o.Budget, DefaultBudget)
	return min(cmp.Or(asked, maxTokens), maxTokens) * bytesPerToken
}

// cutToBudget returns the output without secrets. If it is longer than limit bytes, it returns only both ends, and saves
// the complete output in a file.
func (o *Outputs) cutToBudget(call Call, printed *Printed, limit int) (string, UncutOutput) {
	uncut := UncutOutput{Bytes: printed.bytes}
	head := o.clean(string(printed.head))
	if printed.spool == nil && len(head) <= limit {
		return head, uncut
	}
	tail, file := head, printed.spool
	if file == nil {
		file = o.openSpool(call.ID)
		file.writeClean(head)
	} else { // a secret may cross the cut at the end of head or the start of tail
		tail = o.clean(string(printed.tail))
		head, tail = clip.StartLines(head, len(head)-redactionMargin), clip.EndLines(tail, len(tail)-redactionMargin)
	}
	uncut.Truncated = true
	uncut.Err = file.close()
	uncut.File = file.name
	return printed.withoutMiddle(head, tail, limit, file.describePlace()), uncut
}

// redactionMargin is the number of bytes dropped on each side of a cut, because a secret may cross the cut and the
// output is too long to be searched as a whole. Longer secrets are recognized by fragments.
const redactionMargin = 32 << 10

// clean returns a text as valid UTF-8 without NULs and secrets.
func (o *Outputs) clean(text string) string {
	const replacement = "\uFFFD"
	text = strings.ToValidUTF8(text, replacement)
	text = strings.ReplaceAll(text, "\x00", replacement)
	if o.Redact != nil {
		text = o.Redact(text)
	}
	return text
}

// cleanLine returns words, cleaned, as a line of their own. For "" it returns "".
func (o *Outputs) cleanLine(words string) string {
	if words == "" {
		return ""
	}
	return o.clean(words) + "\n"
}

// Tokens returns the estimated number of tokens in this many bytes of text.
func Tokens(bytes int64) int64 {
	return int64(math.Ceil(float64(bytes) / bytesPerToken))
}

// AskedTokens converts the number of tokens that a call asks for, which may be any number, to a Result's Budget.
func AskedTokens(asked float64) int {
	const maxTokens = 1 << 30
	return int(min(max(asked, 0), maxTokens))
}

// CutWarning begins a cut output.
const CutWarning = "Warning: truncated output"

// withoutMiddle returns both ends of an output, cut to limit bytes together, with a warning before them and a marker
// between them. The words are those of the reference implementation, which models know. place says where the complete
// output is.
func (p *Printed) withoutMiddle(head, tail string, limit int, place string) string {
	head = clip.StartLines(head, limit/2)
	tail = clip.EndLines(tail, limit-limit/2)
	missing := max(p.bytes-int64(len(head)+len(tail)), 1)
	if !strings.HasSuffix(head, "\n") && head != "" {
		head += "\n"
	}
	return fmt.Sprintf(CutWarning+" (original token count: %d)\nTotal output lines: %d\n\n%s…%d tokens truncated; %s…\n%s",
		Tokens(p.bytes), p.lines, head, Tokens(missing), place, tail)
}
