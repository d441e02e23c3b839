package proc

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
)

// What a command wrote is read even if the time to read it has passed.
func TestDrainReadsBufferAfterDeadline(t *testing.T) {
	for name, end := range map[string]error{"closed": nil, "held": os.ErrDeadlineExceeded} {
		t.Run(name, func(t *testing.T) {
			reads, writes, err := os.Pipe()
			must.Do(t, err)
			defer reads.Close()
			defer writes.Close()
			text := strings.Repeat("x", 5000)
			must.Get(io.WriteString(writes, text))(t)
			if name == "closed" {
				writes.Close()
			}
			must.Do(t, reads.SetReadDeadline(time.Unix(1, 0)))
			got, err := io.ReadAll(Drain(reads))
			if string(got) != text || !errors.Is(err, end) {
				t.Errorf("read %d bytes, %v", len(got), err)
			}
		})
	}
}

func TestDrainEndsDespiteWriter(t *testing.T) {
	reads, writes, err := os.Pipe()
	must.Do(t, err)
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			if _, err := writes.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	}()
	_ = reads.SetReadDeadline(time.Unix(1, 0))
	if n, err := io.Copy(io.Discard, Drain(reads)); n > maxLate || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %d bytes, %v", n, err)
	}
	reads.Close()
	<-over
	writes.Close()
}
