package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// mostOfAgent is how much memory an agent that another one started may take.
const mostOfAgent = 8e6

func BenchmarkAgentsSideBySide(b *testing.B) {
	const agents, turns = 8, 20
	repository := smallRepository(b)
	file := filepath.Join(b.TempDir(), "job.yml")
	text := fmt.Sprintf("version: 1\ntask: {prompt: Look., expects: answer}\nlimits: {turns: 5000, tool_calls: 5000, tokens: 100000000, cost_usd: 0}\nagents: {enabled: true, most: %d}\n", agents)
	must.Do(b, os.WriteFile(file, []byte(text), 0o600))
	var together, alone []sighting
	for b.Loop() {
		together, alone = together[:0], alone[:0]
		for range runs {
			together = append(together, program{dir: repository, session: teamSession(agents, turns), job: file, args: []string{"--publish", "none"}}.run(b))
			alone = append(alone, program{dir: repository, session: readSession(agents * turns), job: file, args: []string{"--publish", "none"}}.run(b))
		}
	}
	results.against(fmt.Sprintf("%d agents with %d turns each, processor time", agents, turns), median(together, sighting.cpu),
		fmt.Sprintf("%d turns in one agent", agents*turns), median(alone, sighting.cpu), 1.3)
	results.bytes("  memory for each agent besides", (highestPeak(together)-highestPeak(alone))/agents, mostOfAgent)
}

const readTurn = "output: [{call: list_dir, arguments: {dir_path: .}}]"

// readSession is one agent that lists a folder in each turn.
func readSession(turns int) string {
	return "version: 1\nturns:\n" + strings.Repeat("  - "+readTurn+"\n", turns) + "  - output: [{say: Done.}]\n"
}

// teamSession is an agent that starts others, each of which lists a folder in each turn, and waits for them.
func teamSession(agents, turns int) string {
	var s, own strings.Builder
	s.WriteString("version: 1\nturns:\n  - output:\n")
	for i := range agents {
		fmt.Fprintf(&s, "      - {call: spawn_agent, arguments: {message: task %c, agent_type: explorer}}\n", 'a'+i)
		fmt.Fprintf(&own, "  - task: task %c\n    turns:\n%s      - {after: 2, output: [{say: Done.}]}\n", 'a'+i, strings.Repeat("      - "+readTurn+"\n", turns-1))
	}
	s.WriteString("  - output: [{say: Started.}]\n  - output: [{say: Done.}]\nagents:\n" + own.String())
	return s.String()
}
