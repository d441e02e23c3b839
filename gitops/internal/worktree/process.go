package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

// protocolError reports a process filter that violates gitattributes(5) ("Long Running Filter
// Process").
type protocolError struct{ what string }

func (e *protocolError) Error() string { return e.what }

func protocolf(format string, args ...any) error {
	return &protocolError{fmt.Sprintf(format, args...)}
}

// maxPacket is the largest content of a packet, in bytes (gitprotocol-common(5)).
const maxPacket = 65516

// askProcess converts one file with a process filter. It starts the process, sends the whole
// request with the content, and parses the output. If the filter does not support the direction,
// the content stays unchanged.
func askProcess(ctx context.Context, place FilterSandbox, command string, to direction, path string, content io.ReadSeeker, result io.Writer) error {
	answers := &filterAnswer{to: to, result: result}
	err := place.Run(ctx, command, filterRequest(ctx, to, path, content), answers)
	if failed := answers.finish(); failed != nil {
		var ended *CommandError
		if errors.As(err, &ended) && answers.step == stepWelcome && answers.failed == nil {
			return err // the command failed to start, so its error explains more
		}
		return failed
	}
	if err != nil && !errors.As(err, new(*CommandError)) { // like git, ignore the exit status of a filter that answered
		return err
	}
	if answers.unsupported {
		_, err := content.Seek(0, io.SeekStart)
		if err == nil {
			_, err = io.Copy(result, regularfile.Until(ctx, content))
		}
		return err
	}
	return nil
}

// filterRequest returns git's messages to a process filter for one file. The length before a line includes
// its own four digits and the newline: "000cclean" (gitprotocol-common(5)). "0000" ends a list.
func filterRequest(ctx context.Context, to direction, path string, content io.Reader) io.Reader {
	var head bytes.Buffer
	say := func(lines ...string) {
		for _, line := range lines {
			fmt.Fprintf(&head, "%04x%s\n", len(line)+5, line)
		}
		head.WriteString("0000")
	}
	say("git-filter-client", "version=2")
	say("capability=clean", "capability=smudge")
	say("command="+string(to), "pathname="+path)
	return io.MultiReader(&head, &packets{from: regularfile.Until(ctx, content)})
}

// packets is a reader of content in packets, with a flush packet at the end.
type packets struct {
	from  io.Reader
	ready []byte
	done  bool
}

// Read returns the content in packets of up to maxPacket bytes.
func (p *packets) Read(b []byte) (int, error) {
	for len(p.ready) == 0 {
		if p.done {
			return 0, io.EOF
		}
		packet := make([]byte, 4+maxPacket)
		n, err := io.ReadFull(p.from, packet[4:])
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			p.done = true
		case err != nil:
			return 0, err
		}
		if n > 0 {
			copy(packet, fmt.Sprintf("%04x", n+4))
			p.ready = packet[:4+n]
		}
		if p.done {
			p.ready = append(p.ready, "0000"...)
		}
	}
	n := copy(b, p.ready)
	p.ready = p.ready[n:]
	return n, nil
}

// filterAnswer is a writer that parses a process filter's output. It writes the converted content to
// result.
type filterAnswer struct {
	to     direction
	result io.Writer

	partial     []byte   // start of an incomplete packet
	lines       []string // lines of the current list
	step        int      // number of complete lists
	unsupported bool     // the filter does not convert in this direction
	failed      error
}

// Steps are the lists of a process filter's answer, in order.
const (
	stepWelcome = iota
	stepCapabilities
	stepStatus
	stepContent
	stepLastStatus
	stepDone
)

// Write parses the packets in the output. Size 0 is a flush packet, which ends a list.
func (a *filterAnswer) Write(p []byte) (int, error) {
	a.partial = append(a.partial, p...)
	for a.failed == nil && len(a.partial) >= 4 && a.step < stepDone && !a.unsupported {
		size, err := strconv.ParseUint(string(a.partial[:4]), 16, 16)
		isPossible := size == 0 || size >= 4 && size <= 4+maxPacket
		switch {
		case err != nil || !isPossible:
			a.failed = protocolf("it says %q, which is no packet", a.partial[:4])
			continue
		case size == 0:
			a.partial = a.partial[4:]
			a.failed = a.endList()
			continue
		}
		if len(a.partial) < int(size) {
			break
		}
		a.failed = a.addPacket(a.partial[4:size])
		a.partial = a.partial[size:]
	}
	if a.step == stepDone || a.unsupported || a.failed != nil {
		a.partial = nil // ignore the rest: the process may write more
	}
	return len(p), a.failed
}

// maxLines is the largest number of lines in a list.
const maxLines = 1000

// addPacket handles one packet: converted content, or a line of a list.
func (a *filterAnswer) addPacket(content []byte) error {
	if a.step == stepContent {
		_, err := a.result.Write(content)
		return err
	}
	if len(a.lines) >= maxLines {
		return protocolf("it says more than %d lines", maxLines)
	}
	a.lines = append(a.lines, string(bytes.TrimSuffix(content, []byte("\n"))))
	return nil
}

// endList handles the end of a list: it checks the lines and starts the next step.
func (a *filterAnswer) endList() error {
	lines := a.lines
	a.lines = nil
	switch a.step {
	case stepWelcome:
		if !slices.Equal(lines, []string{"git-filter-server", "version=2"}) {
			return protocolf("it greets with %q, where git-filter-server and version=2 were expected", lines)
		}
	case stepCapabilities:
		a.unsupported = !slices.Contains(lines, "capability="+string(a.to))
	case stepStatus:
		if status := statusIn(lines); status != "success" {
			return protocolf("its status is %q", status)
		}
	case stepLastStatus:
		if status := statusIn(lines); status != "" && status != "success" {
			return protocolf("its status after the content is %q", status)
		}
	}
	a.step++
	return nil
}

// statusIn returns the last status in a list, or "".
func statusIn(lines []string) (status string) {
	for _, line := range lines {
		if s, is := strings.CutPrefix(line, "status="); is {
			status = s
		}
	}
	return status
}

// finish returns the error of the answer, which must be complete.
func (a *filterAnswer) finish() error {
	if a.failed == nil && !a.unsupported && a.step < stepDone {
		return protocolf("it ended before it had answered")
	}
	return a.failed
}
