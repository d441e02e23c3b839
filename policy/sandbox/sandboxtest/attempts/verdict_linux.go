package attempts

import (
	"fmt"
	"strings"
	"syscall"
)

// Verdict is the result of an attempt.
type Verdict struct {
	Name    string
	Escaped bool
	Why     string
}

// Exit statuses of an attempt's process.
const (
	exitEscaped  = 10
	exitHeld     = 11
	exitMistaken = 12
)

// Make makes the attempt, prints why it failed, and exits the process, without the second that
// os.Exit sleeps under the race detector.
func (a Attempt) Make(w World) {
	err := a.Do(w)
	switch {
	case w.mayHitItself():
		fmt.Println("the victim's number is one of its own")
		syscall.Exit(exitMistaken)
	case err != nil:
		fmt.Println(err)
		syscall.Exit(exitHeld)
	}
	syscall.Exit(exitEscaped)
}

// Judge returns the result of an attempt from the exit of its process. A mistaken attempt hit a process
// inside the sandbox, so it proves nothing.
func Judge(name string, exitCode int, signal, output string) (v Verdict, mistaken bool) {
	switch {
	case exitCode == exitEscaped:
		return Verdict{name, true, "it succeeded " + output}, false
	case exitCode == exitHeld || signal == "bad system call":
		return Verdict{name, false, strings.TrimSpace(output) + signal}, false
	}
	return Verdict{name, true, fmt.Sprintf("the attempt itself failed: exit %d %s %s", exitCode, signal, output)}, exitCode == exitMistaken
}
