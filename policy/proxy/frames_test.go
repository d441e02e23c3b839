package proxy

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agent-ci/agent-ci/policy/credential"
	"github.com/agent-ci/agent-ci/policy/must"
)

// aFrame is one of a server's, with a length of any form.
func aFrame(first byte, text string) []byte {
	switch n := len(text); {
	case n < 126:
		return append([]byte{first, byte(n)}, text...)
	case n < 1<<10:
		return append(binary.BigEndian.AppendUint16([]byte{first, 126}, uint16(n)), text...)
	default:
		return append(binary.BigEndian.AppendUint64([]byte{first, 127}, uint64(n)), text...)
	}
}

// In however many frames a message comes, and in whatever pieces these, no value is in it,
// and all the rest is as it was.
func TestFramesHideValues(t *testing.T) {
	t.Parallel()
	guard := credential.NewGuard(credential.Set{{Name: "TOKEN", Value: secret, Placeholder: placeholder}})
	rapid.Check(t, func(t *rapid.T) {
		var sent, want []byte
		for range rapid.IntRange(1, 4).Draw(t, "messages") {
			text := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{secret, secret[:9], secret[5:], "x", "", strings.Repeat("long ", 300)}), 0, 4).Draw(t, "text"), "")
			clean := strings.ReplaceAll(text, secret, placeholder)
			for first := byte(0x01); ; first = 0x00 {
				cut := rapid.IntRange(0, len(text)).Draw(t, "cut")
				last := rapid.Bool().Draw(t, "last")
				if last {
					cut, first = len(text), first|0x80
				}
				sent, want = append(sent, aFrame(first, text[:cut])...), append(want, aFrame(first, clean[:cut])...)
				text, clean = text[cut:], clean[cut:]
				if last {
					break
				}
				if rapid.Bool().Draw(t, "ping") {
					sent, want = append(sent, aFrame(0x89, "ping "+secret)...), append(want, aFrame(0x89, "ping "+placeholder)...)
				}
			}
		}
		var got bytes.Buffer
		f := &frameForwarder{guard: guard, to: &got}
		for len(sent) > 0 {
			n := rapid.IntRange(1, len(sent)).Draw(t, "piece")
			must.Get(f.Write(sent[:n]))(t)
			sent = sent[n:]
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Fatalf("it is %q, want %q", got.Bytes(), want)
		}
	})
}

func TestRefusesUnsupportedFrames(t *testing.T) {
	t.Parallel()
	for name, sent := range map[string]string{"compressed": "\xc1\x05hello", "masked": "\x81\x85\x00\x00\x00\x00hello", "a long ping": "\x89\x7e\x01\x00"} {
		f := &frameForwarder{guard: credential.NewGuard(credential.Set{{Value: secret, Placeholder: placeholder}}), to: new(bytes.Buffer)}
		must.Fail(t, "", must.Err(f.Write([]byte(sent))), name, "is let through")
	}
}
