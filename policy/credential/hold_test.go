package credential

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// How the bytes of an answer arrive says nothing of whether they begin a value.
func TestTimingRevealsNoPrefix(t *testing.T) {
	const value = "ghp_secretSecretSecret"
	g := NewGuard(Set{{Name: "X", Value: value, Placeholder: NewPlaceholder(value)}})
	arrives := func(parts ...string) (lengths []int) {
		from, in := io.Pipe()
		go func() {
			for _, part := range parts {
				if _, err := io.WriteString(in, part); err != nil {
					break
				}
			}
			_ = in.Close()
		}()
		to := writer(func(part []byte) { lengths = append(lengths, len(part)) })
		must.Is(t, nil, g.CopyClean(to, from))
		return lengths
	}
	around := strings.Repeat("x", 500)
	for n := 1; n < len(value); n++ {
		other := strings.Repeat("y", n)
		for _, end := range []string{"", around} {
			if guess, wrong := arrives(around+value[:n], end), arrives(around+other, end); !slices.Equal(guess, wrong) {
				t.Errorf("%d letters of the value arrive as %v, others as %v", n, guess, wrong)
			}
		}
	}
}

type writer func([]byte)

func (w writer) Write(part []byte) (int, error) {
	w(part)
	return len(part), nil
}
