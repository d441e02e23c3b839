package credential

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/agent-ci/agent-ci/policy/must"
)

// A replacer that has the whole text is the measure of the one that has it in pieces.
func TestReplacesSplitText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[ab]{2,9}`)
		texts := rapid.SliceOfNDistinct(word, 1, 5, rapid.ID[string]).Draw(t, "needles")
		var needles []needle
		for i, text := range texts {
			needles = append(needles, needle{[]byte(text), []byte(strings.Repeat(string(rune('0'+i)), len(text))), i})
		}
		m := newMatcher(needles)
		text := rapid.StringMatching(`[abc]{0,60}`).Draw(t, "text")
		var pairs []string
		for _, n := range m.needles {
			pairs = append(pairs, string(n.text), string(n.replacement))
		}
		want := strings.NewReplacer(pairs...).Replace(text)
		if got := m.replaceAll(text); got != want {
			t.Fatalf("the whole is %q, want %q", got, want)
		}
		g := &Guard{values: m}
		g.buffers.New = func() any {
			buffer := make([]byte, m.maxLength+rapid.IntRange(1, 9).Draw(t, "buffer"))
			return &buffer
		}
		var got strings.Builder
		must.Do(t, g.CopyClean(&got, inPieces(t, text)))
		if got.String() != want {
			t.Fatalf("in pieces it is %q, want %q", got.String(), want)
		}
	})
}

func inPieces(t *rapid.T, text string) io.Reader {
	var pieces []io.Reader
	for len(text) > 0 {
		n := rapid.IntRange(1, len(text)).Draw(t, "piece")
		pieces = append(pieces, strings.NewReader(text[:n]))
		text = text[n:]
	}
	return io.MultiReader(pieces...)
}

func FuzzReplace(f *testing.F) {
	f.Add("abcabd", "xxabcabcabdyy", uint64(1))
	f.Add("aab", "aaaab", uint64(2))
	f.Fuzz(func(t *testing.T, text, in string, seed uint64) {
		if len(text) < minNeedle || len(text) > 1000 {
			t.Skip()
		}
		instead := strings.Repeat("x", len(text))
		m := newMatcher([]needle{{[]byte(text), []byte(instead), 0}})
		want := strings.ReplaceAll(in, text, instead)
		g := &Guard{values: m}
		g.buffers.New = func() any {
			buffer := make([]byte, m.maxLength+5)
			return &buffer
		}
		random := rand.New(rand.NewPCG(seed, 0))
		var got strings.Builder
		if err := g.CopyClean(&got, &randomly{strings.NewReader(in), random}); err != nil || got.String() != want {
			t.Errorf("it is %q, %v, want %q", got.String(), err, want)
		}
	})
}

// randomly reads as much as chance has it.
type randomly struct {
	from   io.Reader
	random *rand.Rand
}

func (r *randomly) Read(to []byte) (int, error) {
	return r.from.Read(to[:1+r.random.IntN(len(to))])
}

const (
	value       = `v4lue/with+signs&<"quotes">='%~`
	placeholder = "agentci0PlaceholderOfARunABCDEF"
)

func guardOf(t testing.TB, cs ...Credential) *Guard {
	t.Helper()
	return NewGuard(cs)
}

func scopes(t testing.TB, texts ...string) []Scope {
	t.Helper()
	var all []Scope
	for _, text := range texts {
		s := must.Get(ParseScope(text))(t)
		all = append(all, s)
	}
	return all
}

func TestFindsEachEncodingAnywhere(t *testing.T) {
	g := guardOf(t, Credential{Name: "TOKEN", Value: value, Placeholder: placeholder})
	for _, n := range encodedForms(value, placeholder, 0) {
		spelt := string(n.text)
		for at := range len(spelt) {
			before, after := "x"+strings.Repeat("-", at), " and more"
			from := io.MultiReader(strings.NewReader(before+spelt[:at]), strings.NewReader(spelt[at:]+after))
			var got strings.Builder
			must.Do(t, g.CopyClean(&got, from))
			must.Same(t, len(before+spelt+after), got.Len(), spelt, at)
			must.Same(t, before+string(n.replacement)+after, got.String(), spelt, at)
		}
		if got, err := io.ReadAll(iotest.OneByteReader(replaced(t, g, strings.NewReader(spelt)))); err != nil || bytes.Contains(got, n.text) {
			t.Errorf("%q stays: %v", spelt, err)
		}
	}
}

func replaced(t *testing.T, g *Guard, from io.Reader) io.Reader {
	var got bytes.Buffer
	must.Do(t, g.CopyClean(&got, iotest.OneByteReader(from)))
	return &got
}

// Basic with any user and any password leaves no bit of the value.
func TestReplacesWholeBasicCredential(t *testing.T) {
	g := guardOf(t, Credential{Name: "TOKEN", Value: value, Placeholder: placeholder})
	for _, user := range []string{"", "u", "us", "use", "user"} {
		for _, request := range [][2]string{{user, value}, {value, user}} {
			r := &http.Request{Header: http.Header{}}
			r.SetBasicAuth(request[0], request[1])
			g.CleanHeader(r.Header)
			user, password, ok := r.BasicAuth()
			if want := strings.NewReplacer(value, placeholder); !ok || user != want.Replace(request[0]) || password != want.Replace(request[1]) {
				t.Errorf("%q becomes %q and %q", request, user, password)
			}
		}
	}
}

func TestForwardsHeldBytesAfterDelay(t *testing.T) {
	g := guardOf(t, Credential{Name: "TOKEN", Value: value, Placeholder: placeholder})
	from, send := io.Pipe()
	get, to := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := g.CopyClean(to, from)
		done <- err
		to.Close()
	}()
	whole := make([]byte, 0, 100)
	for _, step := range []struct{ send, get string }{
		{"event v4l", "event v4l"}, // the last three may begin the value
		{"ly\nv4", "ly\nv4"},
		{value[2:] + "!", placeholder[2:] + "!"}, // and here they did
	} {
		must.Get(io.WriteString(send, step.send))(t)
		part := make([]byte, len(step.get))
		if _, err := io.ReadFull(get, part); err != nil || string(part) != step.get {
			t.Fatalf("%q gives %q, %v", step.send, part, err)
		}
		whole = append(whole, part...)
	}
	send.Close()
	if err := <-done; err != nil || bytes.Contains(whole, []byte(value[2:])) {
		t.Errorf("it gives %q, %v", whole, err)
	}
}
