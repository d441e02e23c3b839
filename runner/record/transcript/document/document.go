// Package document owns the structure of texts about a run: sections with paragraphs, tables, lists
// and folds. The texts are raw and may be hostile. Packages that render them escape them: body for
// Markdown, report for HTML, progress for terminals.
package document

// Section is a part of a document under one heading.
type Section struct {
	ID     string // its id on a page, for links
	Title  string // empty for none
	Blocks []Block
}

// Empty reports whether the section has nothing to show.
func (s Section) Empty() bool { return len(s.Blocks) == 0 }

// Block is a Paragraph, Message, Quote, Code, List, Table, Facts, Folds or Alert.
type Block any

type (
	// Paragraph is one sentence or a few.
	Paragraph struct{ Text Text }
	// Message is a model's Markdown.
	Message struct {
		Text     string
		MaxUnits int // UTF-16 code units to show if space is short
	}
	// Quote is a person's text, shown unchanged.
	Quote string
	// Code is the output of a command.
	Code string
	// List shows each item on a line.
	List struct {
		Limit
		Items []Item
	}
	// Table has a row for each thing. The first cell names the thing.
	Table struct {
		Limit
		Columns []Column
		Rows    []Row
	}
	// Facts are names with values, one a line.
	Facts []Fact
	// Folds show only their titles until they are opened.
	Folds struct {
		Limit
		Folds []Fold
	}
	// Alert is an important remark.
	Alert struct {
		Limit
		Severe bool
		Items  []Text
	}
)

// Limit limits a block if space is short.
type Limit struct {
	Noun     string // of things left out, as in "… and 3 more files."
	MaxRows  int    // 0 means the renderer's default
	MaxUnits int    // UTF-16 code units; 0 means the renderer's default
}

// Item is an item of a list. Steps of a plan have a box.
type Item struct {
	Text Text
	Box  Box
}

// Box is the state of a step.
type Box int

// The states of a step.
const (
	NoBox Box = iota
	Open
	InProgress
	Done
)

// Column is the head of a column.
type Column struct {
	Name   string
	Number bool // its cells are numbers
}

// Row is a row of a table.
type Row []Text

// Fact is a value with a name. The name may be empty if the value explains itself.
type Fact struct {
	Name  string
	Value Text
}

// Fold is an element of Folds.
type Fold struct {
	ID       string // its id on a page; may be empty
	Title    Text
	Open     bool // unfolded at first
	MaxUnits int  // UTF-16 code units for its blocks; 0 means all
	Blocks   []Block
}

// Style is the style of a span.
type Style int

// The styles of spans.
const (
	Plain Style = iota
	Monospace
	Strong
	State  // a word for the state of a check
	Result // the result of a check, shown with a sign
	Amount // an amount of US dollars
)

// Tone says how good something is.
type Tone int

// The tones.
const (
	Neutral Tone = iota
	Good
	Doubtful
	Bad
)

// Span is a piece of a Text.
type Span struct {
	Text       string
	Style      Style
	Tone       Tone
	Link       string // an address that agent-ci made
	PageAnchor string // id on the same page to link to
	PageOnly   bool   // shown only on a page
	IsSentence bool   // one sentence or a few; otherwise a name
}

// Text is running text on one line.
type Text []Span

// Words returns plain text, or nil for "".
func Words(s string) Text {
	if s == "" {
		return nil
	}
	return Text{{Text: s}}
}

// Sentence returns the plain text of one sentence or a few, or nil for "".
func Sentence(s string) Text {
	if s == "" {
		return nil
	}
	return Text{{Text: s, IsSentence: true}}
}

// Mono returns text as code, or nil for "".
func Mono(s string) Text {
	if s == "" {
		return nil
	}
	return Text{{Text: s, Style: Monospace}}
}

// Join joins the texts that are not empty, with a separator.
func Join(separator string, all ...Text) (joined Text) {
	for _, t := range all {
		if len(t) > 0 && len(joined) > 0 && separator != "" {
			joined = append(joined, Span{Text: separator})
		}
		joined = append(joined, t...)
	}
	return joined
}

// String returns the text without styles, and without spans that only a page shows.
func (t Text) String() (s string) {
	for _, span := range t {
		if !span.PageOnly {
			s += span.Text
		}
	}
	return s
}
