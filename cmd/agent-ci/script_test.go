package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/policy/sandbox"
	"github.com/agent-ci/agent-ci/policy/sandbox/grants"
	"github.com/agent-ci/agent-ci/policy/sandbox/sandboxtest"
	"github.com/agent-ci/agent-ci/runner/agent/model/modeltest"
)

// binary is the program that the tests drive, built as `make build` does.
var binary string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	remove, err := gittest.Apart()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer remove()
	folder, err := build("program", "-ldflags", "-s -w -X main.version=v0.0.0-test -X "+module+"policy/outside.auditVariable="+startsVariable, ".")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	binary = filepath.Join(folder, "agent-ci")
	heedSignals()
	if err := waitTogether(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// waitTogether lets more tests run at once than there are cores, where -parallel does not
// say how many: much of their time they wait for the programs that they start.
func waitTogether() error {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0)))
}

// heedSignals lets the programs that tests start begin with the usual signals where this
// process ignores some, as under nohup(1) and in the background of a shell. Programs inherit
// what is ignored, but not what is caught.
func heedSignals() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}

// waiting matches scripts that wait for seconds to pass. They begin first: others run meanwhile.
var waiting = regexp.MustCompile(`(timeout|limits\.time)(: |=)([25]s|\$LIMIT)|timeout_ms=5000`)

func TestScripts(t *testing.T) {
	t.Parallel()
	var first, later []string
	for _, script := range must.Get(filepath.Glob(filepath.Join("testdata", "script", "*.txtar")))(t) {
		if waiting.MatchString(read(t, script)) {
			first = append(first, script)
		} else {
			later = append(later, script)
		}
	}
	testscript.Run(t, testscript.Params{
		Files:     append(first, later...),
		Setup:     func(env *testscript.Env) error { return setUp(t, env) },
		Cmds:      scriptCommands(),
		Condition: condition,
	})
}

// overlaid says whether commands of tests work in an overlay, where nothing of the job or the checkout
// keeps them from it.
func overlaid() bool { return probed().Overlay }

// confines says how far commands can be confined on this machine.
func confines() sandbox.Level { return probed().Level }

var probed = sync.OnceValue(func() sandbox.Probed {
	dir, err := os.MkdirTemp("", "agent-ci-probe-")
	if err != nil {
		return sandbox.Probed{Level: sandbox.LevelNone}
	}
	defer os.RemoveAll(dir)
	o := probeIn(dir)
	o.Overlay = filepath.Join(dir, "changes")
	found, err := sandbox.Probe(context.Background(), o)
	if refused := (*sandbox.OverlayError)(nil); errors.As(err, &refused) {
		o.Overlay = ""
		found, err = sandbox.Probe(context.Background(), o)
	}
	if err != nil {
		return sandbox.Probed{Level: sandbox.LevelNone}
	}
	return found
})

func probeIn(dir string) sandbox.Options {
	return sandbox.Options{Network: sandbox.NetworkLoopback, Folders: grants.Folders{Mode: grants.WorkspaceWrite, Workspace: dir, Home: dir, Scratch: filepath.Join(dir, "scratch")}}
}

// What scripts do without must be the machine's doing.
func TestConfinesCommandsIfMachineCan(t *testing.T) {
	t.Parallel()
	o := probeIn(t.TempDir())
	o.Require = sandbox.LevelFull
	if _, err := sandbox.Probe(t.Context(), o); err != nil {
		sandboxtest.SkipUnlessOffered(t, string(o.Require), err)
	}
}

// conditions are those of scripts: [confined], all layers are there; [landlock],
// that is the only one, as in most containers; [overlay], commands work in one; [ci],
// programs that scripts need must be there. Without
// any, commands of scripts run unconfined, as a user of such a machine has to say.
var conditions = map[string]sandbox.Level{"confined": sandbox.LevelFull, "landlock": sandbox.LevelLandlock}

func condition(name string) (bool, error) {
	switch name {
	case "overlay":
		return overlaid(), nil
	case "ci":
		return os.Getenv("CI") != "", nil
	}
	level, ok := conditions[name]
	if !ok {
		return false, fmt.Errorf("there is no condition %q", name)
	}
	return confines() == level, nil
}

// usage makes a command of a function. The words of its usage are arguments, of which those behind a bracket may
// be left out, and those before dots may be repeated. No such command may be negated.
func usage(words string, do func(ts *testscript.TestScript, args []string)) func(*testscript.TestScript, bool, []string) {
	return negatable(words, func(ts *testscript.TestScript, neg bool, args []string) {
		if neg {
			ts.Fatalf("usage: %s", words)
		}
		do(ts, args)
	})
}

// negatable is usage for a command that may be negated.
func negatable(words string, do func(ts *testscript.TestScript, neg bool, args []string)) func(*testscript.TestScript, bool, []string) {
	required, _, _ := strings.Cut(words, "[")
	least, most := len(strings.Fields(required)), len(strings.Fields(words))
	if strings.Contains(words, "...") || strings.Contains(words, "…") {
		most = math.MaxInt
	}
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if len(args) < least || len(args) > most {
			ts.Fatalf("usage: %s", words)
		}
		do(ts, neg, args)
	}
}

// scriptCommands are what scripts can do beside running programs.
func scriptCommands() map[string]func(*testscript.TestScript, bool, []string) {
	commands := map[string]func(*testscript.TestScript, bool, []string){
		"repo":    usage("DIR", makeRepository),
		"model":   usage("SESSION", startModel),
		"asked":   askedModel,
		"forge":   usage("OWNER/REPO DIR [LOGIN [SCOPE...]]", startForge),
		"clone":   usage("DIR", cloneForge),
		"issue":   usage("[FILE [closed|pull]]", addIssue),
		"fault":   usage("METHOD PATH STATUS MESSAGE [TIMES [HEADER=VALUE...]]", addFault),
		"pull":    negatable("NUMBER", showPull),
		"field":   negatable("FILE KEY VALUE", checkField),
		"capture": usage("NAME", capture),
		"limit":   usage("[NAME]", setLimit),
	}
	maps.Copy(commands, eventCommands)
	maps.Copy(commands, serviceCommands)
	maps.Copy(commands, toolServerCommands)
	maps.Copy(commands, pullCommands)
	maps.Copy(commands, checkCommands)
	maps.Copy(commands, feedbackCommands)
	maps.Copy(commands, recipeCommands)
	maps.Copy(commands, attachmentCommands)
	maps.Copy(commands, artifactCommands)
	maps.Copy(commands, setupCommands)
	maps.Copy(commands, registryCommands)
	maps.Copy(commands, machineProxyCommands)
	maps.Copy(commands, identityCommands)
	maps.Copy(commands, planCommands)
	return commands
}

// world is what a script has beside its files.
type world struct {
	t     *testing.T
	forge *forgetest.Forge
	repo  *forgetest.Repository
	model *modeltest.Server
	proxy *machineProxy
	// keyless is OpenAI with its own names.
	keyless *keyless
	// registry is what hosts of the machine's proxy are.
	registry *registry
	// counted is how many of the forge's requests were looked at already.
	counted int
	// measured is when setLimit was last called.
	measured time.Time
}

type worldKey struct{}

func worldOf(ts *testscript.TestScript) *world { return ts.Value(worldKey{}).(*world) }

// setUp gives a script an empty home, an identity for its own commits, the
// program on its PATH and the folder of sessions that several scripts play. Nothing of the surroundings reaches it.
func setUp(t *testing.T, env *testscript.Env) error {
	env.Values[worldKey{}] = &world{t: t}
	home := filepath.Join(env.WorkDir, "home")
	shared, err := filepath.Abs(filepath.Join("testdata", "shared"))
	if err := errors.Join(err, os.Mkdir(home, 0o755)); err != nil {
		return err
	}
	for name, value := range map[string]string{
		"HOME": home, "PATH": filepath.Dir(binary) + string(os.PathListSeparator) + os.Getenv("PATH"),
		"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
		"GIT_AUTHOR_NAME": "Script", "GIT_AUTHOR_EMAIL": "script@example.invalid",
		"GIT_COMMITTER_NAME": "Script", "GIT_COMMITTER_EMAIL": "script@example.invalid",
		"XDG_STATE_HOME": filepath.Join(env.WorkDir, "state"), "SHARED": shared,
		gittest.Ceiling: os.Getenv(gittest.Ceiling),
	} {
		env.Setenv(name, value)
	}
	env.Vars = append(env.Vars, lazyGC)
	if confines() == sandbox.LevelNone {
		env.Setenv("AGENT_CI_POLICY_SANDBOX", string(grants.DangerFullAccess))
	}
	return nil
}

// noMaintenance has git start no process after a commit that looks whether there is something to tidy up.
const noMaintenance = "maintenance.auto=false"

// git runs git in a folder of the script.
func git(ts *testscript.TestScript, dir string, args ...string) string {
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", noMaintenance}, args...)...)
	for _, name := range []string{"HOME", "PATH", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		ts.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// makeRepository makes a repository of a folder: repo DIR. A folder that is missing gets greet.sh, which greets nobody.
func makeRepository(ts *testscript.TestScript, args []string) {
	dir := ts.MkAbs(args[0])
	if err := os.Mkdir(dir, 0o755); err == nil {
		ts.Check(os.WriteFile(filepath.Join(dir, "greet.sh"), []byte("echo hello nobody\n"), 0o644))
	} else if !errors.Is(err, fs.ErrExist) {
		ts.Fatalf("make a folder for the repository: %v", err)
	}
	ts.Check(gittest.Init(dir))
	git(ts, dir, "add", "--all")
	git(ts, dir, "commit", "--quiet", "--allow-empty", "--message=begin")
}

// startModel serves a scripted session over HTTP: model SESSION. What the
// server finds wrong with the requests fails the script.
func startModel(ts *testscript.TestScript, args []string) {
	key, w := "sk-test-0123456789abcdef", worldOf(ts)
	if w.keyless != nil {
		key = mintedKey
	}
	server, err := modeltest.Start(ts.MkAbs(args[0]), modeltest.Options{Key: key})
	ts.Check(err)
	w.model = server
	ts.Defer(server.Close)
	if w.keyless != nil { // which has it found by its own name
		w.keyless.model.Store(server)
		return
	}
	ts.Setenv("OPENAI_BASE_URL", server.BaseURL())
	ts.Setenv("OPENAI_API_KEY", key)
}

// askedModel checks that every answer was asked for and no request was wrong:
// asked [PATTERN], where some request must match the pattern.
func askedModel(ts *testscript.TestScript, neg bool, args []string) {
	server := worldOf(ts).model
	if faults := server.Faults(); len(faults) > 0 {
		ts.Fatalf("the model's server found:\n%s", strings.Join(faults, "\n"))
	}
	if len(args) == 0 {
		return
	}
	pattern, found := regexp.MustCompile(args[0]), false
	for _, request := range server.Requests() {
		found = found || pattern.Match(request.Body)
	}
	if found == neg {
		ts.Fatalf("a request matches %q: %v", args[0], found)
	}
}

// startForge serves a repository as GitHub does, made of a checkout, which
// gets it as its origin: forge OWNER/REPO DIR [LOGIN [SCOPE...]], with the
// account of the token and what a classic token may.
func startForge(ts *testscript.TestScript, args []string) {
	var options forgetest.Options
	if len(args) > 2 {
		options.User = forgetest.User{Login: args[2], ID: 4242, Type: "User"}
		if strings.HasSuffix(args[2], "[bot]") {
			options.User.Type = "Bot"
		}
	}
	if len(args) > 3 {
		options.Scopes = args[3:]
	}
	w := worldOf(ts)
	owner, name, _ := strings.Cut(args[0], "/")
	w.forge = forgetest.New(w.t, options)
	w.repo = w.forge.AddRepository(owner, name)
	checkout := ts.MkAbs(args[1])
	w.repo.Receive(checkout)
	addOrigin(ts, checkout, w.forge.URL+"/"+args[0]+".git")
	ts.Setenv("GITHUB_API_URL", w.forge.APIURL)
	ts.Setenv("GITHUB_SERVER_URL", w.forge.URL)
	ts.Setenv("GITHUB_TOKEN", w.forge.Token)
	ts.Setenv("BARE", w.repo.Dir)
}

// addOrigin does what git remote add origin does.
func addOrigin(ts *testscript.TestScript, checkout, address string) {
	config := filepath.Join(checkout, ".git", "config")
	origin := "[remote \"origin\"]\n\turl = " + address + "\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n"
	ts.Check(os.WriteFile(config, []byte(ts.ReadFile(config)+origin), 0o644))
}

// cloneForge clones the forge's repository, whose address is that of origin: clone DIR.
func cloneForge(ts *testscript.TestScript, args []string) {
	w := worldOf(ts)
	git(ts, ts.MkAbs("."), "clone", "--quiet", w.repo.Dir, args[0])
	config := filepath.Join(ts.MkAbs(args[0]), ".git", "config")
	address := w.forge.URL + "/" + w.repo.Owner + "/" + w.repo.Name + ".git"
	ts.Check(os.WriteFile(config, []byte(strings.Replace(ts.ReadFile(config), w.repo.Dir, address, 1)), 0o644))
}

// addIssue adds an issue from a file, whose first line is the title, or one like many others:
// issue [FILE [closed|pull]].
func addIssue(ts *testscript.TestScript, args []string) {
	text := "Greet properly\ngreet.sh must greet the world.\n"
	if len(args) > 0 {
		text = ts.ReadFile(args[0])
	}
	title, body, _ := strings.Cut(text, "\n")
	issue := forgetest.Issue{Title: title, Body: strings.TrimSpace(body)}
	if len(args) > 1 {
		switch args[1] {
		case "closed":
			issue.State = "closed"
		case "pull":
			issue.PullRequest = true
		}
	}
	fmt.Fprintf(ts.Stdout(), "%d\n", worldOf(ts).repo.AddIssue(issue))
}

// addFault makes the forge fail, 100 times or as often as is said: fault METHOD
// PATH STATUS MESSAGE [TIMES [HEADER=VALUE...]].
func addFault(ts *testscript.TestScript, args []string) {
	times := 100
	header := http.Header{}
	for _, each := range args[min(5, len(args)):] {
		name, value, _ := strings.Cut(each, "=")
		header.Set(name, value)
	}
	if len(args) >= 5 {
		times = integer(ts, args[4])
	}
	body, err := json.Marshal(map[string]string{"message": args[3]})
	ts.Check(err)
	worldOf(ts).forge.On(args[0], args[1], forgetest.Reply{Status: integer(ts, args[2]), Header: header, Body: string(body)}, times)
}

// showPull prints a pull request: pull NUMBER; ! pull NUMBER when there is none.
func showPull(ts *testscript.TestScript, neg bool, args []string) {
	for _, p := range worldOf(ts).repo.PullRequests() {
		if fmt.Sprint(p.Number) != args[0] {
			continue
		}
		if neg {
			ts.Fatalf("there is a pull request #%s", args[0])
		}
		fmt.Fprintf(ts.Stdout(), "state: %s\ndraft: %v\ntitle: %s\nhead: %s\nbase: %s\n", p.State, p.Draft, p.Title, p.Head, p.Base)
		fmt.Fprintf(ts.Stdout(), "labels: %s\nassignees: %s\nreviewers: %s\nteams: %s\n", strings.Join(p.Labels, " "),
			strings.Join(p.Assignees, " "), strings.Join(p.Reviewers, " "), strings.Join(p.Teams, " "))
		fmt.Fprintf(ts.Stdout(), "\n%s\n", p.Body)
		return
	}
	if !neg {
		ts.Fatalf("there is no pull request #%s", args[0])
	}
}

// checkField compares a field of a JSON file: field FILE KEY VALUE, where KEY
// may name fields of fields (pull_request.number).
func checkField(ts *testscript.TestScript, neg bool, args []string) {
	var value any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &value))
	for _, key := range strings.Split(args[1], ".") {
		object, _ := value.(map[string]any)
		value = object[key]
	}
	got := fmt.Sprint(value)
	if matched := regexp.MustCompile("^(?:" + args[2] + ")$").MatchString(got); matched == neg {
		ts.Fatalf("%s of %s is %q, want %q (not: %v)", args[1], args[0], got, args[2], neg)
	}
}

// capture sets a variable to the last command's standard output, without the
// end of the line: capture NAME.
func capture(ts *testscript.TestScript, args []string) {
	ts.Setenv(args[0], strings.TrimRight(ts.ReadFile("stdout"), "\n"))
}

// setLimit measures the time since its last call. It sets the variable to a time limit that is ten times as long, and
// two seconds more. So a slow machine gets a longer limit.
func setLimit(ts *testscript.TestScript, args []string) {
	w, now := worldOf(ts), time.Now()
	if len(args) == 1 {
		ts.Setenv(args[0], (10*now.Sub(w.measured) + 2*time.Second).Truncate(time.Millisecond).String())
	}
	w.measured = now
}

// everything says whether there is time for all attempts, calls, levels and users, and not
// for some of them alone.
func everything() bool { return os.Getenv("AGENT_CI_E2E") != "" }
