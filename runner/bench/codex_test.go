package bench

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/agent-ci/agent-ci/runner/agent/model/modeltest"
)

var codex = flag.String("codex", "its program was not looked for", "the program of OpenAI's Codex, or why there is none")

// runsOfCodex is how often Codex is measured, which takes longer.
const runsOfCodex = 3

// inSandbox are the arguments that have Codex confine commands.
var inSandbox = []string{"--sandbox", "workspace-write"}

func codexIsThere() bool { return filepath.IsAbs(*codex) }

// besideCodex adds a figure beside Codex's, or the reason why there is none.
func (t *table) besideCodex(figure string, ours, theirs quantity, goal float64) {
	if !codexIsThere() {
		theirs = quantity{reason: *codex}
	} else if theirs.value == 0 {
		theirs = quantity{reason: "a command failed"}
	}
	t.add(figure, ours, "Codex", theirs, goal)
}

// codexSettings have Codex talk to the provider that its command line names, and to nobody else. gpt-5.5 is
// a model to which Codex offers exec_command itself, not in scripts of code mode.
const codexSettings = `model = "gpt-5.5"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"
web_search = "disabled"
check_for_update_on_startup = false
analytics.enabled = false
feedback.enabled = false
features = {plugins = false, apps = false, remote_plugin = false}

[model_providers.scripted]
name = "scripted"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
`

// codexHome is a new CODEX_HOME. Its folder for temporary files has another parent than the home: Codex
// makes no links to its programs in a home of temporary files.
func codexHome(b *testing.B) string {
	b.Helper()
	home := b.TempDir()
	writeAll(b, home, map[string]string{"config.toml": codexSettings, "tmp/.keep": ""})
	return home
}

// byCodex has Codex run the session, with a home that an earlier run has filled.
func (p program) byCodex(b *testing.B) program {
	b.Helper()
	p.codex, p.args = codexHome(b), nil
	first := p
	first.session = sayOnly
	first.run(b)
	return p
}

// codexCommand returns the arguments and the environment. Requests to other addresses go to the scripted
// server as to a proxy, which complains of them.
func (p program) codexCommand(address, baseURL string) (args, env []string) {
	args = append([]string{*codex, "exec", "-c", "model_providers.scripted.base_url=" + baseURL, "--cd", p.dir}, p.args...)
	return append(args, "Measure."), []string{
		"HOME=" + p.codex, "CODEX_HOME=" + p.codex, "TMPDIR=" + filepath.Join(p.codex, "tmp"), "PATH=" + os.Getenv("PATH"),
		"HTTP_PROXY=" + address, "HTTPS_PROXY=" + address, "NO_PROXY=127.0.0.1",
	}
}

// measureCodex runs the session with Codex; nil without its program.
func (p program) measureCodex(b *testing.B, times int, args ...string) []sighting {
	b.Helper()
	if !codexIsThere() {
		return nil
	}
	p = p.byCodex(b)
	p.args = args
	return p.times(b, times)
}

// commandsFailed reports whether a command of Codex failed, as all do where its sandbox cannot be set up.
func commandsFailed(requests []modeltest.Request) bool {
	commands := len(requests) - 1
	return bytes.Count(requests[commands].Body, []byte("Process exited with code 0")) != commands
}
