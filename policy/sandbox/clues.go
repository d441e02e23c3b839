package sandbox

import (
	"bytes"
	"io"
	"slices"
	"strings"
)

// RefusalClues is a writer that searches a command's output for messages about refused system calls,
// to explain a failure. It forwards all output. It is not safe for concurrent use.
type RefusalClues struct {
	to   io.Writer
	tail []byte          // the last maxClue bytes, in which a message may begin
	seen map[string]bool // found refusals, by their first message
}

// WatchRefusals returns RefusalClues that forward the output to w.
func WatchRefusals(w io.Writer) *RefusalClues { return &RefusalClues{to: w, seen: map[string]bool{}} }

// maxClue bounds the length of a message in refusals, in bytes.
const maxClue = 64

// Write searches and forwards p.
func (c *RefusalClues) Write(p []byte) (int, error) {
	c.search(p)
	return c.to.Write(p)
}

// search searches new output, also for a message that began in earlier output.
func (c *RefusalClues) search(p []byte) {
	if len(c.tail) > 0 {
		c.find(append(c.tail, p[:min(len(p), maxClue)]...))
	}
	c.find(p)
	recent := append(c.tail, p[max(0, len(p)-maxClue):]...)
	c.tail = append(c.tail[:0], recent[max(0, len(recent)-maxClue):]...)
}

// find records which refusals have a message in text.
func (c *RefusalClues) find(text []byte) {
	for _, r := range refusals {
		for _, message := range r.messages {
			if bytes.Contains(text, []byte(message)) {
				c.seen[r.messages[0]] = true
				break
			}
		}
	}
}

// refusals maps messages of programs to the probable cause in a sandbox.
var refusals = []struct {
	messages        []string // messages of libc and of runtimes
	layer           string
	onlyOwnNetwork  bool // commands get this refusal only without the machine's network
	onlyWithOverlay bool // commands get this refusal only in an overlaid workspace; advice names a workaround
	advice          string
}{
	{
		[]string{"Read-only file system", "read-only file system", "EROFS"},
		"mounts", false, false,
		"commands write in the workspace, in $TMPDIR and, for themselves, in the home folder and in folders of caches only; .git may be read-only; files of credentials are empty and stay so; nothing of /dev, /proc and /sys is changed",
	},
	{
		[]string{"Device or resource busy", "device or resource busy", "EBUSY"},
		"mounts", false, false,
		".git, what is kept from commands and the folders above it can't be moved, replaced or removed; leave them where they are",
	},
	{
		[]string{"Permission denied", "permission denied", "EACCES"},
		"Landlock, or the file's own mode", false, false,
		"what is outside of the workspace and $TMPDIR can't be changed, and credentials can't be read",
	},
	{
		[]string{"Operation not permitted", "operation not permitted", "EPERM", "Bad system call", "bad system call"},
		"seccomp, or a right that commands don't have", false, false,
		"tracing, mounts, new namespaces and user 0's rights are not there, and no file is made setuid or setgid: leave these bits out (tar --no-same-permissions, cp --no-preserve=mode)",
	},
	{
		[]string{"Resource temporarily unavailable", "resource temporarily unavailable", "can't start new thread", "Cannot fork"},
		"the limit of processes", false, false,
		"start fewer at once",
	},
	{
		[]string{"Could not resolve", "could not resolve", "Temporary failure in name resolution", "Name or service not known", "no such host", "Network is unreachable", "network is unreachable", "ENOTFOUND", "EAI_AGAIN"},
		"the network", true, false,
		"the job says what commands reach (policy.network), and what has to be fetched is for its setup commands (setup[].network)",
	},
	{
		[]string{"Invalid cross-device link", "invalid cross-device link", "EXDEV"},
		"the overlay of the workspace", false, true,
		"a folder that was there before can't be renamed in one step; mv copies it, and else make the new folder, move what is in it and remove the old one",
	},
	{
		[]string{"Value too large for defined data type", "value too large for defined data type", "EOVERFLOW"},
		"the overlay of the workspace", false, true,
		"what belongs to another user or group can't be changed or removed there; leave it, and work on a copy with a name of its own",
	},
}

// Explain tells a model the probable cause of a failed command in the sandbox, or returns "".
// Programs can print anything, so the text calls it a guess.
func (s *Sandbox) Explain(c *RefusalClues, failed Status) string {
	if s.Level() == LevelNone || c == nil || failed.ExitCode == 0 {
		return ""
	}
	var notes strings.Builder
	for _, r := range refusals {
		impossible := r.onlyOwnNetwork && s.hasMachineNetwork || r.onlyWithOverlay && s.tree == ""
		seen := c.seen[r.messages[0]] || slices.Contains(r.messages, strings.ToLower(failed.Signal)) // "bad system call" is one
		if impossible || !seen {
			continue
		}
		notes.WriteString("Note: \"" + r.messages[0] + "\" was probably the sandbox (" + r.layer + "): " + r.advice + ".")
		if !r.onlyWithOverlay {
			notes.WriteString(" Trying other ways to the same will not help.")
		}
		notes.WriteString("\n")
	}
	return notes.String()
}
