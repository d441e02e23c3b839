package command

import (
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestWithPrograms(t *testing.T) {
	const script = `PATH="$PATH":'/run dir/it'\''s'; echo hi`
	for name, c := range map[string]struct{ argv, want []string }{
		"bash -lc":         {[]string{"bash", "-lc", "echo hi"}, []string{"bash", "-lc", script}},
		"bash -l -c":       {[]string{"/bin/bash", "-l", "-c", "echo hi"}, []string{"/bin/bash", "-l", "-c", script}},
		"bash --login -c":  {[]string{"bash", "--login", "-c", "echo hi", "name"}, []string{"bash", "--login", "-c", script, "name"}},
		"no login shell":   {[]string{"bash", "-c", "echo hi"}, nil},
		"a script file":    {[]string{"bash", "-l", "file.sh"}, nil},
		"another program":  {[]string{"python3", "-lc", "echo hi"}, nil},
		"without a script": {[]string{"bash", "-lc"}, nil},
		"nothing":          {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			want := c.want
			if want == nil {
				want = c.argv
			}
			must.Same(t, want, withPrograms(c.argv, "/run dir/it's"))
		})
	}
}
