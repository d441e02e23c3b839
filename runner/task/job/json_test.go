package job

import (
	"encoding/json"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

// JSON is YAML: a job as any encoder writes it is read, with each of its escapes.
func TestReadsJobsInJSON(t *testing.T) {
	for text, want := range map[string]string{
		`go \ud83d\ude80`:          "go 🚀",
		`a\/b \\/ \\ud83d`:         `a/b \/ \ud83d`,
		`\u00e9\n\t\b\f\r\"\u2028`: "é\n\t\b\f\r\"\u2028",
		`\/\uD83D\uDE80\/`:         "/🚀/",
	} {
		raw := `{"version": 1, "task": {"prompt": "` + text + `"}}`
		var other Job
		must.Do(t, json.Unmarshal([]byte(raw), &other))
		must.Same(t, want, mustLoad(t, jobFile(raw)).Task.Prompt, text, "is read as", "as JSON it")
		must.Same(t, want, other.Task.Prompt, text, "is read as", "as JSON it")
	}
}

func TestLocatesMistakesInJSON(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"half a pair":        {"{\"version\": 1,\n\"task\": {\n\"prompt\": \"a \\ud83d b\"}}", "job.yml:3:14: holds half of a pair of surrogates; write both, or the character itself"},
		"behind short texts": {`{"version": 1, "task": {"prompt": "\/\ud83d\ude80"}, "nam": "x"}`, "job.yml:1:54: nam: unknown key; did you mean name?"},
		"no comma":           {"{\"version\": 1,\n\"task\": {\"prompt\": \"x\"}\n\"name\": \"y\"}", "job.yml:3:1: is neither JSON nor YAML: invalid character '\"' after object key:value pair"},
		"no end":             {"{\"version\": 1,\n\"task\": {\"prompt\": \"x\"", "job.yml:2:22: is neither JSON nor YAML: unexpected end of JSON input"},
		"no escape":          {"{\"version\": 1,\n\"name\": \"a\\qb\"}", "job.yml:2:12: is neither JSON nor YAML: invalid character 'q' in string escape code"},
	} {
		must.Same(t, []string{c.want}, problemLines(t, jobFile(c.file)), name)
	}
}
