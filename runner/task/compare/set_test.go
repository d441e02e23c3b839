package compare

import "testing"

func TestSetKeysOmitDefaults(t *testing.T) {
	for given, want := range map[string]string{
		"": `{}`,
		"limits: {turns: 7}\nverify: [{name: t, run: make}]\n": `{"limits":{"turns":7},"verify":[{"flaky":"reject","must":"pass","name":"t","proves":"false","rerun":1,"run":"make","timeout":"10m0s"}]}`,
		"policy: {protect: [], network: full}\n":               `{"policy":{"network":"full"}}`,
	} {
		set, err := nonDefaultKeys(template(t, given))
		if err != nil || string(set) != want {
			t.Errorf("%s sets %s, %v, want %s", given, set, err, want)
		}
	}
}
