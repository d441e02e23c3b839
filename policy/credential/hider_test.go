package credential

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestHidesTextsInAnswers(t *testing.T) {
	const pair = "octo:hunter2?>"
	encoded := base64.StdEncoding.EncodeToString([]byte(pair))
	h := NewHider(pair, strings.TrimRight(encoded, "="))
	for _, shown := range []string{pair, "octo:hunter2?&gt;", "Basic " + encoded, "Basic%20" + strings.ReplaceAll(encoded, "/", "%2F"), strings.ReplaceAll(encoded, "/", "%2f"), base64.StdEncoding.EncodeToString([]byte("x" + encoded)), hex.EncodeToString([]byte(pair))} {
		text := strings.Repeat("before ", 20000) + shown + " behind"
		for name, from := range map[string]io.Reader{"at once": strings.NewReader(text), "byte by byte": iotest.OneByteReader(strings.NewReader(text)), "with its end": iotest.DataErrReader(strings.NewReader(text))} {
			var to bytes.Buffer
			must.Do(t, h.CopyClean(&to, from))
			if got := to.String(); len(got) != len(text) || strings.Contains(got, shown) || !strings.Contains(got, "*") && !strings.Contains(got, "Kio") && !strings.Contains(got, "2a2a") || !strings.HasSuffix(got, " behind") {
				t.Errorf("%s, %s: it ends with %q", shown, name, got[len(got)-100:])
			}
		}
		header := http.Header{"X": {"a " + shown}}
		if h.CleanHeader(header); strings.Contains(header.Get("X"), shown) {
			t.Errorf("the header is %q", header)
		}
	}
}

// What is held back says nothing about how the texts begin.
func TestHoldsBackAnswersAlike(t *testing.T) {
	h := NewHider("octo:hunter2")
	var lengths []int
	for _, end := range []string{"octo:hunter", "zzzz:zzzzzz"} {
		var to bytes.Buffer
		err := h.CopyClean(&to, iotest.TimeoutReader(iotest.HalfReader(strings.NewReader(strings.Repeat("x", 1000)+end))))
		if err == nil {
			t.Fatal("it does not end early")
		}
		lengths = append(lengths, to.Len())
	}
	if lengths[0] != lengths[1] || lengths[0] == 0 {
		t.Errorf("so many bytes came: %d", lengths)
	}
}
