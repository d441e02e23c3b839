package onboard

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// Toolchain has the commands of a repository's test tools, as far as files show.
type Toolchain struct {
	Setup  []Command
	Checks []Command
}

// Command is a command for the job.
type Command struct {
	Name, Run string
	Network   string // YAML of its network; empty for that of the job
	Timeout   string
}

// DetectToolchain returns the commands of the test tools that the files in a folder show. It does not guess: without
// a test script, package.json gives no test command. A folder that cannot be opened gives nothing.
func DetectToolchain(dir string) (all Toolchain) {
	root, err := os.OpenRoot(filepath.Clean(dir))
	if err != nil {
		return Toolchain{}
	}
	defer root.Close()
	r := repository{root.FS()}
	for _, detect := range []func() Toolchain{r.goToolchain, r.nodeToolchain, r.pythonToolchain, r.rustToolchain, r.mavenToolchain, r.gradleToolchain} {
		if t := detect(); len(t.Checks) > 0 {
			all = Toolchain{append(all.Setup, t.Setup...), append(all.Checks, t.Checks...)}
		}
	}
	return r.preferMakeTest(all)
}

// presetNetwork returns the YAML of a network that allows a package manager's registry.
func presetNetwork(name string) string { return "{allow: [{preset: " + name + "}]}" }

// repository is a repository's root.
type repository struct{ fs.FS }

func (r repository) hasFile(name string) bool {
	info, err := fs.Stat(r, name)
	return err == nil && info.Mode().IsRegular()
}

// readFile returns the text of a file, or "" if there is none.
func (r repository) readFile(name string) string {
	const longest = 1 << 20
	info, err := fs.Stat(r, name)
	if err != nil || !info.Mode().IsRegular() || info.Size() > longest {
		return ""
	}
	text, _ := fs.ReadFile(r, name) // "" if it has vanished
	return string(text)
}

// goToolchain returns setup, vet and tests for a Go module in the root.
func (r repository) goToolchain() (t Toolchain) {
	module := r.readFile("go.mod")
	if module == "" {
		return t
	}
	if strings.Contains(module, "require") && !r.hasFile("vendor/modules.txt") {
		t.Setup = []Command{{"Go modules", "go mod download", presetNetwork("goproxy"), "10m"}}
	}
	t.Checks = []Command{{"go vet", "go vet ./...", "", "10m"}, {"go test", "go test ./...", "", "10m"}}
	return t
}

// nodeManager is a package manager for Node with its lock file and command.
type nodeManager struct{ lock, name, install string }

// nodeManagers lists package managers by lock file, in order of precedence.
var nodeManagers = []nodeManager{
	{"pnpm-lock.yaml", "pnpm", "pnpm install --frozen-lockfile"},
	{"yarn.lock", "yarn", "yarn install --frozen-lockfile"},
	{"package-lock.json", "npm", "npm ci"},
	{"npm-shrinkwrap.json", "npm", "npm ci"},
	{"", "npm", "npm install"},
}

// noTest is npm init's script for packages without tests.
const noTest = "no test specified"

// nodeToolchain returns setup and checks for the scripts lint, typecheck and test of a Node package, but not for
// Bun.
func (r repository) nodeToolchain() (t Toolchain) {
	var pkg struct {
		Scripts         map[string]string `json:"scripts"`
		Dependencies    map[string]any    `json:"dependencies"`
		DevDependencies map[string]any    `json:"devDependencies"`
		Workspaces      any               `json:"workspaces"`
	}
	usesBun := r.hasFile("bun.lock") || r.hasFile("bun.lockb")
	if json.Unmarshal([]byte(r.readFile("package.json")), &pkg) != nil || usesBun {
		return t
	}
	manager := r.nodeManager()
	for _, script := range []string{"lint", "typecheck", "test"} {
		if text := strings.TrimSpace(pkg.Scripts[script]); text == "" || strings.Contains(text, noTest) {
			continue
		}
		run := manager.name + " run " + script
		if script == "test" {
			run = manager.name + " test"
		}
		t.Checks = append(t.Checks, Command{run, run, "", "10m"})
	}
	if len(pkg.Dependencies)+len(pkg.DevDependencies) > 0 || pkg.Workspaces != nil || manager.lock != "" {
		t.Setup = []Command{{manager.name + " packages", manager.install, presetNetwork("npm"), "10m"}}
	}
	return t
}

// nodeManager returns the first package manager whose lock file exists. The last one, npm, needs none.
func (r repository) nodeManager() nodeManager {
	i := slices.IndexFunc(nodeManagers, func(m nodeManager) bool { return m.lock == "" || r.hasFile(m.lock) })
	manager := nodeManagers[i]
	if manager.name == "yarn" && r.hasFile(".yarnrc.yml") { // from version 2 on
		manager.install = "yarn install --immutable"
	}
	return manager
}

// pythonFiles lists files that may name pytest, pythonRequirements those for pip.
var (
	pythonFiles        = []string{"pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "pytest.ini", "conftest.py", "tests/conftest.py"}
	pythonRequirements = []string{"requirements.txt", "requirements-dev.txt", "requirements-test.txt", "dev-requirements.txt", "test-requirements.txt"}
	pythonPackage      = lazyregexp.New(`(?m)^\[(project|build-system)\]`)
	pythonExtra        = lazyregexp.New(`(?ms)^\[project\.optional-dependencies\]\s*$(.*?)(?:^\[|\z)`)
)

// pythonToolchain returns setup and pytest, if a file of the repository mentions pytest.
func (r repository) pythonToolchain() (t Toolchain) {
	usesPytest := slices.ContainsFunc(slices.Concat(pythonFiles, pythonRequirements), func(name string) bool { return strings.Contains(r.readFile(name), "pytest") })
	if !usesPytest && !r.hasFile("pytest.ini") {
		return t
	}
	project := r.readFile("pyproject.toml")
	switch {
	case r.hasFile("uv.lock"):
		t.Setup = []Command{{"Python packages", "uv sync --locked --all-extras", presetNetwork("pypi"), "10m"}}
		t.Checks = []Command{{"pytest", "uv run --no-sync pytest", "", "10m"}}
	case r.hasFile("poetry.lock"):
		t.Setup = []Command{{"Python packages", "poetry install --no-interaction", presetNetwork("pypi"), "10m"}}
		t.Checks = []Command{{"pytest", "poetry run pytest", "", "10m"}}
	default:
		install := "python3 -m venv .venv && .venv/bin/pip install pytest"
		for _, name := range pythonRequirements {
			if r.hasFile(name) {
				install += " -r " + name
			}
		}
		if pythonPackage().MatchString(project) || r.hasFile("setup.py") || strings.Contains(r.readFile("setup.cfg"), "[metadata]") {
			install += " -e " + packageWithTestExtra(project)
		}
		t.Setup = []Command{{"Python packages", install, presetNetwork("pypi"), "10m"}}
		t.Checks = []Command{{"pytest", ".venv/bin/python -m pytest", "", "10m"}}
	}
	return t
}

// packageWithTestExtra returns pip's argument for the package, with an extra for tests if pyproject.toml has one.
func packageWithTestExtra(project string) string {
	section := pythonExtra().FindStringSubmatch(project)
	for _, name := range []string{"test", "tests", "testing", "dev"} {
		if section != nil && regexp.MustCompile(`(?m)^`+name+`\s*=`).MatchString(section[1]) {
			return "'.[" + name + "]'"
		}
	}
	return "."
}

// rustToolchain returns setup and tests for a Cargo package or workspace in the root.
func (r repository) rustToolchain() (t Toolchain) {
	manifest := r.readFile("Cargo.toml")
	if manifest == "" {
		return t
	}
	fetch, test := "cargo fetch", "cargo test --offline"
	if r.hasFile("Cargo.lock") {
		fetch += " --locked"
	}
	if strings.Contains(manifest, "[workspace]") {
		test += " --workspace"
	}
	return Toolchain{[]Command{{"crates", fetch, presetNetwork("cargo"), "10m"}}, []Command{{"cargo test", test, "", "20m"}}}
}

// mavenToolchain also runs the tests in setup: Maven downloads what they need when they start, and ignores proxies.
func (r repository) mavenToolchain() (t Toolchain) {
	if !r.hasFile("pom.xml") {
		return t
	}
	mvn := "mvn"
	if r.hasFile("mvnw") {
		mvn = r.wrapperCommand("mvnw")
	}
	return Toolchain{
		[]Command{{"Maven packages", mvn + " -B -q -Dmaven.test.failure.ignore=true test", "full", "20m"}},
		[]Command{{"mvn test", mvn + " -B -o test", "", "20m"}},
	}
}

// wrapperCommand returns the command line that starts a build tool's wrapper script.
func (r repository) wrapperCommand(name string) string {
	if info, err := fs.Stat(r, name); err == nil && info.Mode()&0o111 == 0 {
		return "sh ./" + name
	}
	return "./" + name
}

// gradleToolchain runs the tests once in setup, for the reasons given at mavenToolchain.
func (r repository) gradleToolchain() (t Toolchain) {
	if !slices.ContainsFunc([]string{"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"}, r.hasFile) {
		return t
	}
	gradle := "gradle"
	if r.hasFile("gradlew") {
		gradle = r.wrapperCommand("gradlew")
	}
	return Toolchain{
		[]Command{{"Gradle packages", gradle + " --no-daemon --continue test || true", "full", "20m"}},
		[]Command{{"gradle test", gradle + " --no-daemon --offline test", "", "20m"}},
	}
}

// makeTest is a rule for the target test, with its commands.
var makeTest = lazyregexp.New(`(?m)^test[ \t]*:(?:$|[^=:\n][^\n]*$)((?:\n\t[^\n]*)*)`)

// preferMakeTest replaces the checks that a Makefile's target test runs by "make test".
func (r repository) preferMakeTest(t Toolchain) Toolchain {
	makefiles := []string{"GNUmakefile", "makefile", "Makefile"}
	i := slices.IndexFunc(makefiles, r.hasFile)
	if i < 0 {
		return t
	}
	rule := makeTest().FindStringSubmatch(r.readFile(makefiles[i]))
	if rule == nil {
		return t
	}
	commands := rule[1]
	others := slices.DeleteFunc(t.Checks, func(c Command) bool { return strings.Contains(commands, c.Name) })
	t.Checks = append(others, Command{"make test", "make test", "", "10m"})
	return t
}

// Default examples for unknown toolchains.
var (
	setupExample  = lazyregexp.New(`(?m)^# setup:\n(?:#   - .*\n)+`)
	verifyExample = lazyregexp.New(`(?m)^# verify:\n(?:#   - .*\n)+`)
)

// withChecks returns the repository's defaults with the commands of its toolchain in place of examples.
func withChecks(defaults []byte, t Toolchain) []byte {
	var setup, verify strings.Builder
	for _, c := range t.Setup {
		setup.WriteString("  - " + c.yaml() + "\n")
	}
	for _, c := range t.Checks {
		verify.WriteString("  - " + c.yaml() + "\n")
	}
	if setup.Len() > 0 {
		defaults = setupExample().ReplaceAllLiteral(defaults, []byte("setup:\n"+setup.String()))
	}
	if verify.Len() > 0 {
		defaults = verifyExample().ReplaceAllLiteral(defaults, []byte("verify:\n"+verify.String()))
	}
	return defaults
}

// checkNames returns the names of all checks.
func (t Toolchain) checkNames() (names []string) {
	for _, c := range t.Checks {
		names = append(names, c.Name)
	}
	return names
}

// unquotedYAML matches text that needs no quotes in a YAML flow mapping.
var unquotedYAML = lazyregexp.New(`^[A-Za-z./][A-Za-z0-9 ./_=-]*$`)

// yaml returns the command as an entry of setup or verify, in YAML.
func (c Command) yaml() string {
	run := c.Run
	if !unquotedYAML().MatchString(run) {
		run = fmt.Sprintf("%q", run)
	}
	network := ""
	if c.Network != "" {
		network = ", network: " + c.Network
	}
	return "{name: " + c.Name + ", run: " + run + network + ", timeout: " + c.Timeout + "}"
}
