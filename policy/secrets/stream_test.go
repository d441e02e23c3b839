package secrets

import (
	"encoding/base64"
	"strings"
	"testing"
)

func TestStreamFindsSplitSecrets(t *testing.T) {
	key := "sk-proj-" + randomTexts()(word+"-_", 156)
	r := NewRedactor([]Value{{"KEY", key}})
	encoded := wrap(base64.StdEncoding.EncodeToString([]byte("{\"key\":\""+key+"\"}")), 76, "", "")
	const cut = streamWindow - streamOverlap
	for name, text := range map[string]string{
		"at the end of a window":        strings.Repeat("line\n", (streamWindow-100)/5) + encoded + strings.Repeat("more\n", 40_000),
		"where a window is cut":         strings.Repeat("line\n", (cut-100)/5) + encoded + strings.Repeat("more\n", 40_000),
		"where a window is cut, dumped": strings.Repeat("line\n", (cut-400)/5) + wrap(eachByte("%02x ")(key), 24, "000000: ", " |........|") + strings.Repeat("more\n", 40_000),
		"everywhere":                    strings.Repeat(encoded+"and\n", 3000),
		"on one endless line":           strings.Repeat("x", streamWindow-60) + key + strings.Repeat("y", 3*streamPatience),
	} {
		for _, size := range []int{700, 100_000} {
			var got strings.Builder
			held := 0
			s := NewStream(r.Redact, func(clean string) { got.WriteString(clean) })
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				_, _ = s.Write([]byte(rest[:n]))
				rest, held = rest[n:], max(held, len(s.pending))
			}
			s.Flush()
			if want := r.Redact(text); got.String() != want {
				t.Errorf("%s, pieces of %d: %d bytes, want %d; %d and %d are marked", name, size, got.Len(), len(want),
					strings.Count(got.String(), "[secret KEY]"), strings.Count(want, "[secret KEY]"))
			}
			if held > streamPatience+size {
				t.Errorf("%s: %d bytes were held", name, held)
			}
		}
	}
}
