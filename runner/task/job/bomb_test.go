package job

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/task/config"
)

// laughs is a file whose aliases, written out, would be 9 to the power of
// levels texts.
func laughs(levels int) string {
	var s strings.Builder
	s.WriteString(start + "l0: &l0 lol\n")
	for i := 1; i <= levels; i++ {
		fmt.Fprintf(&s, "l%d: &l%d [%s]\n", i, i, strings.Repeat(fmt.Sprintf("*l%d, ", i-1), 9))
	}
	return s.String()
}

// TestNeverExpandsAliases would not end if aliases were followed.
func TestNeverExpandsAliases(t *testing.T) {
	const levels = 60
	aliased := fmt.Sprintf("job.yml:%d:", strings.Count(laughs(levels), "\n")+1)
	for _, c := range []struct{ name, tail, want string }{
		{"alias for a list", "verify: *l60\n", aliased + "9: verify: anchors and aliases are not allowed; write the value out"},
		{"alias in a list", "tools: {deny: [*l60]}\n", aliased + "16: tools.deny[0]: anchors and aliases are not allowed; write the value out"},
		{"alias for a mapping", "mcp_servers: *l60\n", aliased + "14: mcp_servers: anchors and aliases are not allowed; write the value out"},
		{"alias as a name", "limits: {*l60 : 5}\n", aliased + "10: limits: anchors and aliases are not allowed; write the value out"},
		{"merge key", "limits: {<<: *l60}\n", aliased + "10: limits: merge keys (<<) are not allowed; write the keys out"},
		{"merge of many", "limits: {<<: [*l60, *l60]}\n", aliased + "10: limits: merge keys (<<) are not allowed; write the keys out"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := problemLines(t, jobFile(laughs(levels)+c.tail))
			must.Same(t, c.want, got[len(got)-1], "last problem")
		})
	}
}

// TestBoundsProblemsOfLargestFiles would be killed or time out if work grew faster than files.
func TestBoundsProblemsOfLargestFiles(t *testing.T) {
	room := config.MaxSize - len(start)
	fill := func(piece string) string { return start + strings.Repeat(piece, room/len(piece)) }
	var names strings.Builder
	for i := 0; names.Len() < room-20; i++ {
		fmt.Fprintf(&names, "k%x: 1\n", i)
	}
	for name, data := range map[string]string{
		"unknown keys":   start + names.String(),
		"one key, again": fill("name: a\n"),
		"aliases":        fill("? &a [*a, *a]\n: *a\n"),
		"long name":      start + strings.Repeat("x", room-10) + ": 1\n",
		"open brackets":  fill("["),
		"open quote":     start + "name: \"" + strings.Repeat("x\n", room/2-8),
	} {
		t.Run(name, func(t *testing.T) {
			if got := problemLines(t, jobFile(data)); len(got) == 0 || len(got) > config.MaxProblems+1 {
				t.Errorf("%d problems", len(got))
			}
		})
	}
}
