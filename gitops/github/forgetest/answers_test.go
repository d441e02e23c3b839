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
	const right = `{"ref":"refs/heads/main","object":{"type":"commit","sha":"0123456789012345678901234567890123456789","url":"https://example.invalid/c"}}`
	whole := string(must.Get(d.addRequiredFields("GET", path, 200, []byte(right)))(t))
	must.Contain(t, whole, `"node_id":""`, `"url":"https://forge.invalid/"`, `"url":"https://example.invalid/c"`)
	for name, body := range map[string]string{
		"unknown field": strings.Replace(whole, `"node_id"`, `"nodeid":1,"node_id"`, 1),
		"wrong type":    strings.Replace(whole, `"node_id":""`, `"node_id":1`, 1),
		"null":          strings.Replace(whole, `"node_id":""`, `"node_id":null`, 1),
		"no URL":        strings.Replace(whole, `https://example.invalid/c`, `not a URL`, 1),
	} {
		must.Fail(t, "", must.Err(d.addRequiredFields("GET", path, 200, []byte(body))), name, "passes")
	}
	must.Fail(t, "", must.Err(d.addRequiredFields("GET", path, 202, []byte(right))), "a status that is not described passes")
}
