//go:build unix

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
)

var window = Window{Rows: 40, Columns: 120}

// screen is an output that tells when it has some words.
type screen struct {
	words string
	seen  chan struct{}

	mu     sync.Mutex
	more   *sync.Cond
	buffer bytes.Buffer
}

func newScreen(words string) *screen {
	s := &screen{words: words, seen: make(chan struct{})}
	s.more = sync.NewCond(&s.mu)
	return s
}

// until waits until the screen has these words, too.
func (s *screen) until(words string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !strings.Contains(s.buffer.String(), words) {
		s.more.Wait()
	}
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := strings.Contains(s.buffer.String(), s.words)
	s.buffer.Write(p)
	s.more.Broadcast()
	if !before && strings.Contains(s.buffer.String(), s.words) {
		close(s.seen)
	}
	return len(p), nil
}

func startInTerminal(t *testing.T, text string, output *screen) *Process {
	t.Helper()
	box := open(t, new(Sandbox))
	c := script(t, text, output)
	c.TTY = window
	p := must.Get(box.Start(c))(t)
	return p
}

func TestCommandsReadTypedText(t *testing.T) {
	eachWay(t, func(t *testing.T, box *Sandbox, o Options) {
		output := newScreen("name? ")
		// It waits to be read: when the leader of a session exits, Linux drops what
		// is on its way to the other end of the terminal.
		c := bash(o, "stty size </dev/tty; test -t 0 && test -t 1 && test -t 2 && printf 'name? ' >/dev/tty; read x; echo it is $x; read y; exit 3", output)
		c.TTY = window
		p := must.Get(box.Start(c))(t)
		<-output.seen
		for _, typed := range []string{"Ada\n", "\n"} {
			must.Do(t, p.Type(t.Context(), typed))
			output.until("name? Ada\r\nit is Ada\r\n")
		}
		status, err := p.Wait()
		if got := output.buffer.String(); err != nil || status.ExitCode != 3 || !strings.HasPrefix(got, "40 120\r\nname? Ada\r\n") {
			t.Errorf("%+v, %v, %q", status, err, got)
		}
		must.Fail(t, "", p.Type(t.Context(), "more"), "typed into a terminal that is closed")
	})
}

func TestControlCInterruptsForeground(t *testing.T) {
	output := newScreen("up")
	p := startInTerminal(t, "echo up; exec sleep 3600", output)
	<-output.seen
	must.Do(t, p.Type(t.Context(), "\x03"))
	must.Same(t, 130, must.Get(p.Wait())(t).ExitCode)
}

func TestTypeEndsWithContext(t *testing.T) {
	output := newScreen("up")
	p := startInTerminal(t, "stty raw -echo; echo up; exec sleep 3600", output)
	<-output.seen
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := p.Type(ctx, strings.Repeat("x", 1<<20))
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "does not read") {
		t.Errorf("got %v", err)
	}
	p.Kill()
	must.Is(t, nil, must.Err(p.Wait()))
}

func TestTypeRequiresTerminal(t *testing.T) {
	box := open(t, new(Sandbox))
	p := must.Get(box.Start(script(t, "true", nil)))(t)
	must.Is(t, errNoTerminal, p.Type(t.Context(), "x"))
	<-p.Done()
}

func TestKillEndsTerminalGroup(t *testing.T) {
	held := watch(t)
	output := newScreen("up")
	p := startInTerminal(t, "trap '' HUP TERM; exec 3>"+held.path+"; sleep 3600 & echo up; wait", output)
	<-output.seen
	p.Kill()
	must.Same(t, 137, must.Get(p.Wait())(t).ExitCode)
	held.mustGo(t)
}
