package compare

import (
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestSetKeysOmitDefaults(t *testing.T) {
	for given, want := range map[string]string{
		"": `{}`,
		"limits: {turns: 7}\nverify: [{name: t, run: make}]\n": `{"limits":{"turns":7},"verify":[{"flaky":"reject","must":"pass","name":"t","proves":"false","rerun":1,"run":"make","timeout":"10m0s"}]}`,
		"policy: {protect: [], network: full}\n":               `{"policy":{"network":"full"}}`,
	} {
		_, nonDefault, err := RecordJob(template(t, given))
		must.Do(t, err)
		must.Same(t, want, string(nonDefault), given, "sets")
	}
}
