package doctor

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/place/confine"
	"github.com/agent-ci/agent-ci/runner/place/sandboxcommand"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }

// surroundings are variables of a machine of a test, and more.
func surroundings(t *testing.T, more ...string) []string {
	t.Helper()
	return append([]string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "XDG_STATE_HOME=" + filepath.Join(t.TempDir(), "state")}, more...)
}

// prepared is a folder with these variables.
func prepared(t *testing.T, dir string, environ []string) *sandboxcommand.Prepared {
	t.Helper()
	p := must.Get(sandboxcommand.Prepare(t.Context(), sandboxcommand.Options{Dir: dir, Environ: environ}))(t)
	t.Cleanup(func() {
		must.Is(t, nil, p.Close())
	})
	return p
}

// checkout is a repository with a commit.
func checkout(t *testing.T) gittest.Repo {
	t.Helper()
	repo := gittest.New(t)
	repo.Git("commit", "--quiet", "--allow-empty", "--message=first")
	return repo
}

// wantProblems makes sure that these problems are told, by what they say.
func wantProblems(t *testing.T, d *Diagnosis, says ...string) {
	t.Helper()
	if len(d.Problems) != len(says) {
		t.Errorf("the problems are %q, want %q", d.Problems, says)
		return
	}
	for i, p := range d.Problems {
		must.Contain(t, p.Severity+": "+p.Message+" "+p.Remedy, says[i])
	}
}

func TestNamesSecretsAndProxyWithoutValues(t *testing.T) {
	const network = "AGENT_CI_POLICY_NETWORK={proxy: inherit}"
	const secrets = "AGENT_CI_POLICY_SECRETS=[{name: TOKEN, hosts: [npm.example.com/team]}, {name: KEY, hosts: [a.example.com], parameter: k, commands: [agent, verify]}]"
	d := must.Get(Diagnose(t.Context(), Options{Dir: checkout(t).Dir, Environ: surroundings(t, network, secrets, "TOKEN=v4lue-of-the-token", "KEY=v4lue-of-the-key-1", "HTTPS_PROXY=http://me:p4ssword-of-mine@proxy.example.com:3128", "HTTP_PROXY=other.example.com:80")}))(t)
	want := []string{"TOKEN for npm.example.com/team (GET, HEAD, header Authorization), of setup", "KEY for a.example.com (GET, HEAD, parameter k), of agent, verify"}
	must.Same(t, want, d.Confinement.Secrets, "named", "and the proxy")
	must.Same(t, "https by proxy.example.com:3128, http by other.example.com:80", d.Confinement.Proxy, d.Confinement.Secrets, "and the proxy")
	raw := must.Get(json.Marshal(d))(t)
	must.Lack(t, string(raw), "v4lue", "p4ssword")
}

// What a run would be told of its hosts before it begins, the diagnosis tells.
func TestReportsProblemsOfHosts(t *testing.T) {
	const inherit = "AGENT_CI_POLICY_NETWORK={allow: [{host: a.example.com, ca: certs/none.pem}], proxy: inherit}"
	d := must.Get(Diagnose(t.Context(), Options{Dir: checkout(t).Dir, Environ: surroundings(t, inherit)}))(t)
	for severity, says := range map[string]string{
		severityError:   "The authority certs/none.pem of a.example.com (policy.network.allow[0]) cannot be used: ",
		severityWarning: "policy.network.proxy is inherit, and neither HTTPS_PROXY nor HTTP_PROXY is set",
	} {
		must.Same(t, true, slices.ContainsFunc(d.Problems, func(p Problem) bool {
			return p.About == "configuration" && p.Severity == severity && strings.Contains(p.Message, says)
		}), "the problems are", d.Problems, says)
	}
}

func TestFailsWithoutUsableFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(file, nil, 0o600))
	bare := gittest.New(t)
	bare.Git("config", "core.bare", "true")
	for reason, o := range map[string]Options{
		"no_such_path":         {Dir: filepath.Join(t.TempDir(), "none"), Environ: surroundings(t)},
		"run_directory":        {Dir: t.TempDir(), Environ: surroundings(t, "XDG_STATE_HOME="+file)},
		"unsupported_checkout": {Dir: bare.Dir, Environ: surroundings(t)},
	} {
		d, err := Diagnose(t.Context(), o)
		outcometest.Want(t, err, reason)
		must.Same(t, nil, d)
	}
}

func TestOnlyErrorsBreakDiagnosis(t *testing.T) {
	d := &Diagnosis{}
	d.addWarning("git", "A note.", "")
	must.Same(t, false, d.Broken(), "a warning does")
	d.addError("git", "A fault.", "")
	must.Same(t, true, d.Broken(), "an error does not")
}

func TestWarnsOfWeakConfinement(t *testing.T) {
	closed := []KernelSetting{{Name: "user.max_user_namespaces", Value: "0", Remedy: "Set it to 1"}, {Name: "kernel.unprivileged_userns_clone", Value: "1"}}
	for name, c := range map[string]struct {
		confinement Confinement
		says        []string
	}{
		"all":          {Confinement{Level: "full", Settings: closed, Processes: "at most 4096 processes"}, nil},
		"less":         {Confinement{Level: "landlock", Settings: closed, Processes: "at most 4096 processes"}, []string{"warning: user.max_user_namespaces is 0. Set it to 1."}},
		"no limit":     {Confinement{Level: "full", Processes: "not limited"}, []string{"Nothing limits how many processes commands start: not limited."}},
		"a weak limit": {Confinement{Level: "full", Processes: "processes not limited for root"}, []string{"start: processes not limited for root."}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &Diagnosis{Confinement: c.confinement}
			d.addConfinementProblems()
			wantProblems(t, d, c.says...)
		})
	}
	for want, layers := range map[string][]string{"": {"namespaces", "seccomp"}, "at most 9 processes": {"seccomp", "at most 9 processes"}} {
		must.Same(t, want, ProcessLimit(layers), layers, "limit")
	}
}

func TestTriesAndWarnsWithoutSandbox(t *testing.T) {
	d := &Diagnosis{}
	p := prepared(t, t.TempDir(), surroundings(t, "AGENT_CI_POLICY_SANDBOX=danger-full-access"))
	must.Do(t, d.examineConfinement(t.Context(), p))
	c := d.Confinement
	if c.Sandbox != "danger-full-access" || c.Level != "none" || len(c.Layers) > 0 || len(c.Trials) == 0 {
		t.Errorf("it is %+v", c)
	}
	must.Same(t, true, slices.ContainsFunc(d.Problems, func(p Problem) bool { return p.Message == confine.UnconfinedNotice && p.Severity == severityWarning }), "the problems are", d.Problems)
	must.Same(t, false, p.Record.Has(filepath.Join(confine.ScratchFolder, confine.ProbeScratch)), "the files of the trial are left")
}

func TestUnreachableLevelIsError(t *testing.T) {
	d := &Diagnosis{}
	p := prepared(t, t.TempDir(), surroundings(t))
	p.Job.Policy.Require = "everything"
	must.Do(t, d.examineConfinement(t.Context(), p))
	if !d.Broken() || d.Confinement.Level != "none" || d.Confinement.Require != "everything" || d.Confinement.Processes != "not limited" {
		t.Errorf("it is %+v with %q", d.Confinement, d.Problems)
	}
}

func TestReportsStateOfGit(t *testing.T) {
	repo, plain, unborn := checkout(t), t.TempDir(), gittest.New(t)
	repo.Git("remote", "add", "origin", "https://octocat:password-of-the-octocat@github.com/octo/widgets.git")
	repo.Write("bin/git", "#!/bin/sh\n")
	inside := repo.Path("bin")
	must.Do(t, os.Chmod(repo.Path("bin/git"), 0o700))
	for name, c := range map[string]struct {
		dir, path string
		says      []string
	}{
		"a checkout":              {repo.Dir, os.Getenv("PATH"), nil},
		"a program in a checkout": {repo.Dir, inside, []string{"There is no git program on PATH: install git 2.38 or newer"}},
		"a plain folder":          {plain, os.Getenv("PATH"), []string{"not in a git checkout"}},
		"no commit":               {unborn.Dir, os.Getenv("PATH"), []string{"no commit yet"}},
		"nothing":                 {plain, "", []string{"There is no git program on PATH: install git 2.38 or newer"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &Diagnosis{}
			p := must.Get(d.readConfiguration(t.Context(), sandboxcommand.Options{Dir: c.dir, Environ: surroundings(t, "PATH="+c.path)}))(t)
			defer p.Close()
			d.examineGit(t.Context(), p)
			var problems []Problem // but for those of the URL with a password
			for _, p := range d.Problems {
				if !strings.Contains(p.Message, "credentials") {
					problems = append(problems, p)
				}
			}
			d.Problems = problems
			wantProblems(t, d, c.says...)
			if (d.Git.Checkout != "") != (c.dir == repo.Dir && c.path != inside) || d.Git.Credentials == nil {
				t.Errorf("it is %+v", d.Git)
			}
			if d.Git.Checkout != "" && (d.Git.Origin != "https://github.com/octo/widgets.git" || !strings.HasPrefix(d.Git.Base, "main ")) {
				t.Errorf("it is %+v", d.Git)
			}
		})
	}
}

func TestDiagnosesModelAddressAndKey(t *testing.T) {
	for name, c := range map[string]struct {
		environ []string
		want    Model
		says    []string
	}{
		"nothing is set": {nil, Model{Auth: "key", BaseURL: "https://api.openai.com/v1/", KeyName: "OPENAI_API_KEY"}, []string{"error: There is no key for the model: set OPENAI_API_KEY, or name another variable"}},
		"another variable": {
			[]string{"AGENT_CI_MODEL_API_KEY_ENV=MODEL_KEY", "MODEL_KEY=key-of-the-model", "OPENAI_API_KEY=key-of-another"},
			Model{Auth: "key", BaseURL: "https://api.openai.com/v1/", KeyName: "MODEL_KEY", KeySet: true},
			nil,
		},
		"another server": {
			[]string{"AGENT_CI_MODEL_BASE_URL=https://models.example.com/v1", "OPENAI_BASE_URL=https://other.example.com", "OPENAI_API_KEY=key-of-the-model"},
			Model{Auth: "key", BaseURL: "https://models.example.com/v1", KeyName: "OPENAI_API_KEY", KeySet: true},
			nil,
		},
		"a user and a query in it": {
			[]string{"OPENAI_BASE_URL=https://octocat:password@models.example.com/?code=password", "OPENAI_API_KEY=key-of-the-model"},
			Model{Auth: "key", BaseURL: "https://models.example.com/", KeyName: "OPENAI_API_KEY", KeySet: true},
			nil,
		},
		"no URL": {
			[]string{"OPENAI_BASE_URL=https://octocat:password@[::1", "OPENAI_API_KEY=key-of-the-model"},
			Model{Auth: "key", BaseURL: "(not a URL)", KeyName: "OPENAI_API_KEY", KeySet: true},
			[]string{"error: The model's address (model.base_url, else OPENAI_BASE_URL) is not an http or https URL; give a URL like"},
		},
		"one in the clear": {
			[]string{"OPENAI_BASE_URL=http://models.example.com/v1", "OPENAI_API_KEY=key-of-the-model"},
			Model{Auth: "key", BaseURL: "http://models.example.com/v1", KeyName: "OPENAI_API_KEY", KeySet: true},
			[]string{"error: The model's address (model.base_url, else OPENAI_BASE_URL) is http to the public host models.example.com, where"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := &Diagnosis{}
			p := prepared(t, t.TempDir(), surroundings(t, c.environ...))
			must.Do(t, d.examineReadiness(t.Context(), p))
			d.examineModel(t.Context(), p, false)
			c.want.Name = p.Job.Model.Name
			must.Same(t, c.want, d.Model)
			wantProblems(t, d, c.says...)
		})
	}
}

func TestFindsRepositoryAndToken(t *testing.T) {
	repo := checkout(t)
	repo.Git("remote", "add", "origin", "git@ghe.example.com:octo/of-origin.git")
	const token = "GITHUB_TOKEN=ghs_0123456789abcdef0123456789abcdef0123"
	for name, c := range map[string]struct {
		dir     string
		environ []string
		want    GitHub
		says    []string
	}{
		"nothing is known": {t.TempDir(), nil, GitHub{APIURL: "https://api.github.com", Token: "none"}, []string{"warning: There is no GitHub token", "warning: It is not known which repository"}},
		"of the origin":    {repo.Dir, []string{token, "GITHUB_API_URL=https://ghe.example.com/api/v3"}, GitHub{APIURL: "https://ghe.example.com/api/v3", Repository: "octo/of-origin", Token: "installation token (of GitHub Actions or an App)"}, nil},
		"of another forge": {repo.Dir, []string{token}, GitHub{APIURL: "https://api.github.com", Token: "installation token (of GitHub Actions or an App)"}, []string{"It is not known which repository on GitHub this is, as the origin git@ghe.example.com:octo/of-origin.git is not on https://github.com"}},
		"of Actions":       {repo.Dir, []string{"GH_TOKEN=abc", "GITHUB_REPOSITORY=octo/of-actions"}, GitHub{APIURL: "https://api.github.com", Repository: "octo/of-actions", Token: "of a kind that is not known"}, nil},
		"a broken token":   {repo.Dir, []string{"GH_TOKEN=\"abc\"", "GITHUB_REPOSITORY=octo/of-actions"}, GitHub{APIURL: "https://api.github.com", Repository: "octo/of-actions", Token: "of a kind that is not known"}, []string{"The GitHub token cannot be used: the value of GH_TOKEN holds a line break, a quote"}},
		"of the job":       {repo.Dir, []string{token, "GITHUB_REPOSITORY=octo/of-actions", "AGENT_CI_REPOSITORY_NAME=octo/of-job"}, GitHub{APIURL: "https://api.github.com", Repository: "octo/of-job", Token: "installation token (of GitHub Actions or an App)"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := &Diagnosis{}
			d.examineGitHub(t.Context(), prepared(t, c.dir, surroundings(t, c.environ...)), false)
			must.Same(t, c.want, d.GitHub)
			wantProblems(t, d, c.says...)
		})
	}
}

func TestReportsSilentServerWithoutPassword(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for address, ctx := range map[string]context.Context{
		"http://octocat:password@127.0.0.1:1": t.Context(),
		"http://octocat:password@[::1/":       t.Context(),
		"https://octocat:password@127.0.0.1/": stopped,
		"octocat:password":                    t.Context(),
	} {
		answer, header, body := ask(ctx, address, "", nil)
		if !answer.Asked || answer.Reachable || answer.Error == "" || strings.Contains(answer.Error, "password") || len(header) > 0 || body != nil {
			t.Errorf("%s: %+v, %v, %q", address, answer, header, body)
		}
	}
}

func TestBoundsAnswerOfServer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-OAuth-Scopes", r.Header.Get("X-Team"))
		_, _ = w.Write(make([]byte, 2<<20))
	}))
	defer server.Close()
	answer, header, body := ask(t.Context(), server.URL, "", map[string]string{"X-Team": "octocats"})
	if !answer.Reachable || answer.Status != http.StatusOK || header.Get("X-OAuth-Scopes") != "octocats" || len(body) != 1<<20 {
		t.Errorf("%+v, %v, %d bytes", answer, header, len(body))
	}
}
