package policy

import (
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestEnvironment(t *testing.T) {
	for _, test := range []struct {
		name    string
		environ []string
		pass    []string
		set     map[string]string
		want    []string
	}{
		{
			name:    "harmless facts, in the order of names",
			environ: []string{"PATH=/bin", "HOME=/h", "LC_ALL=C", "CI=true", "GITHUB_SHA=abc", "GOFLAGS=-mod=mod", "JAVA_HOME_17_X64=/j"},
			want:    []string{"CI=true", "GITHUB_SHA=abc", "GOFLAGS=-mod=mod", "HOME=/h", "JAVA_HOME_17_X64=/j", "LC_ALL=C", "PATH=/bin"},
		},
		{
			name: "credentials and what is not known",
			environ: []string{
				"GITHUB_TOKEN=t", "GH_TOKEN=t", "OPENAI_API_KEY=k", "ACTIONS_RUNTIME_TOKEN=t", "ACTIONS_ID_TOKEN_REQUEST_URL=u",
				"AWS_SECRET_ACCESS_KEY=s", "SSH_AUTH_SOCK=/s", "COMPOSER_AUTH={}", "DATABASE_URL=postgres://h/d", "FOO=bar",
			},
		},
		{
			name:    "the CI service's own channels",
			environ: []string{"GITHUB_ENV=/e", "GITHUB_OUTPUT=/o", "GITHUB_PATH=/p", "GITHUB_STEP_SUMMARY=/s", "GITHUB_STATE=/s", "RUNNER_TEMP=/t"},
		},
		{
			name:    "code that a shell or the loader would run",
			environ: []string{"BASH_ENV=/b", "ENV=/b", "LD_PRELOAD=/l", "GIT_SSH_COMMAND=x", "PROMPT_COMMAND=x"},
		},
		{
			name:    "a harmless prefix with a secret behind it",
			environ: []string{"PYTHONPATH=/p", "PYTHON_KEYRING_BACKEND=x", "NVM_DIR=/n", "NVM_auth_token=t"},
			want:    []string{"NVM_DIR=/n", "PYTHONPATH=/p"},
		},
		{
			name: "passwords in URLs",
			environ: []string{
				"GOPROXY=https://u:p@proxy.example,direct", "HTTPS_PROXY=http://u:p@proxy:3128", "http_proxy=u:p@proxy:3128",
				"PIP_INDEX_URL=https://tok@pypi.example/simple", "PIP_EXTRA_INDEX_URL=https://a.example/s https://u:p/w@b.example/s",
			},
		},
		{
			name:    "URLs without passwords",
			environ: []string{"GOPROXY=https://proxy.example|direct", "HTTPS_PROXY=http://proxy:3128", "no_proxy=localhost"},
			want:    []string{"GOPROXY=https://proxy.example|direct", "HTTPS_PROXY=http://proxy:3128", "no_proxy=localhost"},
		},
		{
			name:    "pass names what is wanted",
			environ: []string{"FOO=bar", "DEPLOY_KEY=k", "foo=other", "GOPROXY=https://u:p@proxy.example"},
			pass:    []string{"FOO", "DEPLOY_KEY", "ABSENT", "GOPROXY"},
			want:    []string{"DEPLOY_KEY=k", "FOO=bar", "GOPROXY=https://u:p@proxy.example"},
		},
		{
			name:    "set wins",
			environ: []string{"CGO_ENABLED=1", "PATH=/bin"},
			pass:    []string{"CGO_ENABLED"},
			set:     map[string]string{"CGO_ENABLED": "0", "EMPTY": ""},
			want:    []string{"CGO_ENABLED=0", "EMPTY=", "PATH=/bin"},
		},
		{
			name:    "the last of two counts, also when it is left out",
			environ: []string{"TZ=UTC", "TZ=CET", "HTTP_PROXY=http://proxy", "HTTP_PROXY=http://u:p@proxy"},
			want:    []string{"TZ=CET"},
		},
		{
			name:    "tokens under harmless names",
			environ: []string{"GOFLAGS=-x=ghp_abcdefghijklmnopqrstuvwxyz0123456789", "PYTHON_X=ghp_abcdefghijklmnopqrstuvwxyz0123456789", "TZ=UTC"},
			pass:    []string{"PYTHON_X"},
			want:    []string{"PYTHON_X=ghp_abcdefghijklmnopqrstuvwxyz0123456789", "TZ=UTC"},
		},
		{
			name:    "malformed entries",
			environ: []string{"PATH", "=C:=x", ""},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := Environment(test.environ, test.pass, test.set)
			want := append([]string{}, test.want...)
			must.Same(t, want, got)
		})
	}
}
