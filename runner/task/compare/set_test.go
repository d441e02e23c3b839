package compare

import (
	"testing"

	"github.com/agent-ci/agent-ci/runner/task/config"

	"github.com/agent-ci/agent-ci/runner/task/job"
)

func TestSetKeysOmitDefaults(t *testing.T) {
	for given, want := range map[string]string{
		"version: 1\n": `{}`,
		"version: 1\nlimits: {turns: 7}\nverify: [{name: t, run: make}]\n": `{"limits":{"turns":7},"verify":[{"flaky":"reject","must":"pass","name":"t","proves":"false","rerun":1,"run":"make","timeout":"10m0s"}]}`,
		"version: 1\npolicy: {protect: [], network: full}\n":               `{"policy":{"network":"full"}}`,
	} {
		j, err := job.LoadTemplate(config.Layer{Name: "job.yml", Kind: config.File, Data: []byte(given)})
		if err != nil {
			t.Fatal(err)
		}
		set, err := setKeys(j)
		if err != nil || string(set) != want {
			t.Errorf("%s sets %s, %v, want %s", given, set, err, want)
		}
	}
}
