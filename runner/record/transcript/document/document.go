// Package document owns the structure of text about a run: sections of paragraphs, tables, lists
// and folds. Its texts are raw and may be hostile. Drawing packages escape them: body for Markdown,
// report for HTML, progress for terminals.
package document

// Section is a part of a document under one heading.
type Section struct {
	ID     string // its place on a page; also what links lead to
	Title  string // empty for none
	Blocks []Block
}

// Empty reports whether there is nothing to show.
func (s Section) Empty() bool { return len(s.Blocks) == 0 }

// Block is a Paragraph, Message, Quote, Code, List, Table, Facts, Folds or Alert.
type Block any

type (
	// Paragraph is a sentence or a few.
	Paragraph struct{ Text Text }
	// Message is a model's Markdown.
	Message struct {
		Text     string
		MaxUnits int // UTF-16 code units that it takes where room is short
	}
	// Quote is a text of a person, shown as it was written.
	Quote string
	// Code is the output of a command.
	Code string
	// List has an item a line.
	List struct {
		Limit
		Items []Item
	}
	// Table has a line for each thing; the first cell names the thing.
	Table struct {
		Limit
		Columns []Column
		Lines   []Line
	}
	// Facts are lines of a name and a value.
	Facts []Fact
	// Folds are shown by their titles; a click shows the rest.
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

// Limit bounds a block if space is short.
type Limit struct {
	Noun     string // for what is left out: "… and 3 more files."
	MaxRows  int    // rows; 0 for the default of who draws it
	MaxUnits int    // UTF-16 code units; 0 for the default of who draws it
}

// Item is a list item, with a box for a step.
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

// Line is a row of a table.
type Line []Text

// Fact is a named value. An empty name suits a self-explanatory value.
type Fact struct {
	Name  string
	Value Text
}

// Fold is an element of Folds.
type Fold struct {
	ID       string // its place on a page; empty for none
	Title    Text
	Open     bool // shown unfolded on a page
	MaxUnits int  // UTF-16 code units that its blocks may take; 0 for all
	Blocks   []Block
}

// Style is how a span looks.
type Style int

// The styles of spans.
const (
	Plain Style = iota
	Monospace
	Strong
	State  // of a check: a word
	Result // of a check, with a sign
	Amount // of dollars
)

// Tone says whether something is well.
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
	Link       string // an address that this program made; shown as a link
	PageAnchor string // of the page that it leads to, where the document is a page
	PageOnly   bool   // left out where the document is no page
	IsSentence bool   // a sentence or a few, not a name
}

// Text is running text on one line.
type Text []Span

// Words is plain text; nothing for an empty string.
func Words(s string) Text {
	if s == "" {
		return nil
	}
	return Text{{Text: s}}
}

// Sentence is plain text of a sentence or a few; nothing for an empty string.
func Sentence(s string) Text {
	if s == "" {
		return nil
	}
	return Text{{Text: s, IsSentence: true}}
}

// Mono is text as code; nothing for an empty string.
func Mono(s string) Text {
	if s == "" {
		return nil
	}
	return Text{{Text: s, Style: Monospace}}
}

// Join joins the non-empty texts with a separator.
func Join(separator string, all ...Text) (joined Text) {
	for _, t := range all {
		if len(t) > 0 && len(joined) > 0 && separator != "" {
			joined = append(joined, Span{Text: separator})
		}
		joined = append(joined, t...)
	}
	return joined
}

// String returns the text without styles and page-only parts.
func (t Text) String() (s string) {
	for _, span := range t {
		if !span.PageOnly {
			s += span.Text
		}
	}
	return s
}
