// Package charset recognises texts in encodings other than UTF-8, by their first bytes. It converts
// nothing.
package charset

import "bytes"

// Head is how many bytes of a file are looked at, as git does to tell text from binary.
const Head = 8000

// marks lists byte order marks, longer ones before their prefixes.
var marks = []struct{ mark, name string }{
	{"\xff\xfe\x00\x00", "UTF-32LE"},
	{"\x00\x00\xfe\xff", "UTF-32BE"},
	{"\xff\xfe", "UTF-16LE"},
	{"\xfe\xff", "UTF-16BE"},
}

// Of returns the name of a text's encoding, as iconv takes it, if the text is UTF-16 or UTF-32. It
// is empty for any other content. Without a byte order mark, the text is recognised if most of it
// is ASCII.
func Of(head []byte) string {
	for _, m := range marks {
		if bytes.HasPrefix(head, []byte(m.mark)) {
			return m.name
		}
	}
	head = head[:min(len(head), Head)]
	switch zero := zeroes(head); {
	case zero == [4]bool{false, true, true, true}:
		return "UTF-32LE"
	case zero == [4]bool{true, true, true, false}:
		return "UTF-32BE"
	case zero == [4]bool{false, true, false, true}:
		return "UTF-16LE"
	case zero == [4]bool{true, false, true, false}:
		return "UTF-16BE"
	}
	return ""
}

// zeroes reports for each byte position in units of four whether it is mostly zero, if the others
// are text.
func zeroes(head []byte) (mostly [4]bool) {
	const most = 10 // of a hundred that may be otherwise
	units := len(head) / 4
	if units == 0 {
		return mostly
	}
	for at := range mostly {
		zero, text := 0, 0
		for i := at; i < units*4; i += 4 {
			switch c := head[i]; {
			case c == 0:
				zero++
			case c >= ' ' && c != 0x7f || c == '\n' || c == '\r' || c == '\t':
				text++
			}
		}
		switch {
		case zero*100 >= units*(100-most):
			mostly[at] = true
		case text*100 < units*(100-most):
			return [4]bool{}
		}
	}
	return mostly
}

// Advice explains how to change a text in an unsupported encoding.
func Advice(encoding string) string {
	return "change it with commands, such as iconv -f " + encoding + " -t UTF-8, and back"
}
