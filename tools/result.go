package tools

import (
	"fmt"
	"slices"
	"strings"
)

// Text is all that a result says, as far as it is in memory.
func (r Result) Text() string {
	if len(r.Commands) == 0 {
		return r.Output + r.Printed.Text()
	}
	var all []string
	for _, ran := range r.Commands {
		all = append(all, ran.Output+ran.Printed.Text())
	}
	return strings.Join(all, "\n")
}

// Text is what was printed, as far as it is in memory: of what is longer, the two ends.
func (p *Printed) Text() string {
	switch {
	case p == nil:
		return ""
	case len(p.tail) == 0:
		return string(p.head)
	}
	return fmt.Sprintf("%s\n…%d bytes are left out here…\n%s", p.head, p.bytes-int64(len(p.head)+len(p.tail)), p.tail)
}

// Withheld is a result of which the model gets these words alone.
func (r Result) Withheld(words string) Result {
	_ = r.Printed.Close() // nobody reads it
	closed := slices.Clone(r.Commands)
	for i := range closed {
		_ = closed[i].Printed.Close()
		closed[i].Output, closed[i].Printed = "", nil
	}
	if len(closed) > 0 {
		closed[0].Output = words
	}
	r.Output, r.Printed, r.Commands, r.Images = words, nil, closed, nil
	return r
}

// Followed is a result with words behind all that the model gets.
func (r Result) Followed(words string) Result {
	if last := len(r.Commands) - 1; last >= 0 {
		r.Commands = slices.Clone(r.Commands)
		r.Commands[last].Output, r.Commands[last].Printed = followed(r.Commands[last].Output, r.Commands[last].Printed, words)
		return r
	}
	r.Output, r.Printed = followed(r.Output, r.Printed, words)
	return r
}

func followed(output string, printed *Printed, words string) (string, *Printed) {
	if printed == nil || printed.bytes == 0 && len(printed.head) == 0 {
		return strings.TrimSuffix(output, "\n") + "\n" + words + "\n", printed
	}
	more := *printed
	last := &more.head
	if len(more.tail) > 0 {
		last = &more.tail
	}
	if text := string(*last); !strings.HasSuffix(text, "\n") {
		words = "\n" + words
	}
	*last = append(slices.Clone(*last), words+"\n"...)
	more.bytes += int64(len(words) + 1)
	more.lines += strings.Count(words, "\n") + 1
	return output, &more
}
