package main_test

import (
	"os/exec"
	"regexp"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// The most commands and flags that a user has to choose from, as help texts list them.
const mostCommands, mostFlags = 24, 90

var (
	listedCommand = regexp.MustCompile(`(?m)^  ([a-z]+) {2,}[a-z]`)
	listedFlag    = regexp.MustCompile(`(?m)^  --[a-z-]+`)
)

// TestCommandsAndFlagsStayFew counts commands with those of campaigns, and the flags of all of them.
func TestCommandsAndFlagsStayFew(t *testing.T) {
	t.Parallel()
	commands := listedCommand.FindAllStringSubmatch(helpOf(t), -1)
	count, flags := len(commands), 0
	for _, command := range commands {
		text := helpOf(t, command[1])
		flags += len(listedFlag.FindAllString(text, -1))
		if command[1] == "campaign" {
			count += len(listedCommand.FindAllString(text, -1))
		}
	}
	if len(commands) < 10 || count > mostCommands || flags < 50 || flags > mostFlags {
		t.Errorf("there are %d commands (at most %d) with %d flags (at most %d)", count, mostCommands, flags, mostFlags)
	}
}

func helpOf(t *testing.T, command ...string) string {
	t.Helper()
	out := must.Get(exec.Command(binary, append([]string{"help"}, command...)...).Output())(t)
	return string(out)
}
