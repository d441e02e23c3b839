// Package charset recognises the encoding of texts that are not UTF-8, by their first bytes. It
// converts nothing.
package charset

import "bytes"

// Head is the number of bytes to examine. git examines as many to distinguish text from binary.
const Head = 8000

// marks lists byte order marks. Longer marks precede shorter marks with the same start.
var marks = []struct{ mark, name string }{
	{"\xff\xfe\x00\x00", "UTF-32LE"},
	{"\x00\x00\xfe\xff", "UTF-32BE"},
	{"\xff\xfe", "UTF-16LE"},
	{"\xfe\xff", "UTF-16BE"},
}

// Of returns the encoding of a UTF-16 or UTF-32 text, by its name for iconv. It returns "" for any
// other content. A text without a byte order mark is recognised if it is mostly ASCII.
func Of(head []byte) string {
	for _, m := range marks {
		if bytes.HasPrefix(head, []byte(m.mark)) {
			return m.name
		}
	}
	head = head[:min(len(head), Head)]
	if !bytes.Contains(head, []byte{0}) {
		return ""
	}
	switch zero := zeroPositions(head); {
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

// zeroPositions reports which bytes of each four are mostly zero, if the others are mostly text. Otherwise
// all results are false.
func zeroPositions(head []byte) (mostly [4]bool) {
	const most = 10 // percent of the bytes that may be different
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

// Advice returns what the model can do to change a text in an encoding that edits do not support.
func Advice(encoding string) string {
	return "change it with commands, such as iconv -f " + encoding + " -t UTF-8, and back"
}
