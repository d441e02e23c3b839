package forgetest

import (
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestDescriptionRejectsWrongAnswers(t *testing.T) {
	t.Parallel()
	d := answersByCall()
	const path = "/repos/octo/widgets/git/ref/heads/main"
	right := `{"ref":"refs/heads/main","node_id":"x","url":"https://example.invalid/r","object":` +
		`{"type":"commit","sha":"0123456789012345678901234567890123456789","url":"https://example.invalid/c"}}`
	if err := d.check("GET", path, 200, []byte(right)); err != nil {
		t.Fatalf("a right answer: %v", err)
	}
	for name, body := range map[string]string{
		"missing field": strings.Replace(right, `"node_id":"x",`, ``, 1),
		"unknown field": strings.Replace(right, `"node_id"`, `"nodeid":1,"node_id"`, 1),
		"wrong type":    strings.Replace(right, `"x"`, `1`, 1),
		"null":          strings.Replace(right, `"x"`, `null`, 1),
		"no URL":        strings.Replace(right, `https://example.invalid/r`, `not a URL`, 1),
	} {
		must.Fail(t, "", d.check("GET", path, 200, []byte(body)), name, "passes")
	}
	must.Fail(t, "", d.check("GET", path, 202, []byte(right)), "a status that is not described passes")
}
