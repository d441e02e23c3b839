package charset_test

import (
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/agent-ci/agent-ci/gitops/charset"
	"github.com/agent-ci/agent-ci/policy/must"
)

func wide(order binary.AppendByteOrder, text string) string {
	var b []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, unit)
	}
	return string(b)
}

func wider(order binary.AppendByteOrder, text string) string {
	var b []byte
	for _, r := range text {
		b = order.AppendUint32(b, uint32(r))
	}
	return string(b)
}

func TestOf(t *testing.T) {
	t.Parallel()
	little, big := binary.LittleEndian, binary.BigEndian
	const german = "Grüße an alle, die hier lesen\r\nzweite Zeile\r\n"
	for name, test := range map[string]struct{ text, want string }{
		"UTF-16 with a mark":           {wide(little, "\ufeff"+german), "UTF-16LE"},
		"UTF-16 big with a mark":       {wide(big, "\ufeff"+german), "UTF-16BE"},
		"UTF-16 of other letters":      {wide(little, "\ufeff漢字"), "UTF-16LE"},
		"UTF-16 without a mark":        {wide(little, german), "UTF-16LE"},
		"UTF-16 big without a mark":    {wide(big, german), "UTF-16BE"},
		"UTF-16 that is cut":           {wide(little, strings.Repeat(german, 500))[:charset.Head-1], "UTF-16LE"},
		"UTF-32 with a mark":           {wider(little, "\ufeff"+german), "UTF-32LE"},
		"UTF-32 big with a mark":       {wider(big, "\ufeff"+german), "UTF-32BE"},
		"UTF-32 without a mark":        {wider(little, german), "UTF-32LE"},
		"UTF-32 big without a mark":    {wider(big, german), "UTF-32BE"},
		"empty":                        {"", ""},
		"UTF-8":                        {german, ""},
		"UTF-8 with a mark":            {"\ufeff" + german, ""},
		"Latin-1":                      {"Gr\xfc\xdfe\n", ""},
		"zeroes":                       {strings.Repeat("\x00", 4000), ""},
		"little numbers of two bytes":  {wide(little, "\x01\x02\x03\x04\x05\x06\x07\x08"), ""},
		"text with a NUL":              {"a\x00b and more words\n", ""},
		"records of text, NUL between": {strings.Repeat("name\x00value\x00", 100), ""},
	} {
		must.Same(t, test.want, charset.Of([]byte(test.text)), name)
	}
}
