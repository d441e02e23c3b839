package workflows

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"mvdan.cc/sh/v3/syntax"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// Bounds on one walk.
const (
	maxSteps    = 4000
	deepestCall = 12
	maxFolders  = 8 // folders that a script may be in at one time
)

// walk follows commands to the files that they run.
type walk struct {
	tree    Tree
	changed []string          // paths of the change
	touched map[string]bool   // the same paths as a set
	via     map[string]string // the run files, by what starts them
	order   []string
	done    map[string]bool // keys of what was followed
	steps   int
}

func newWalk(tree Tree, changed []string) *walk {
	k := &walk{tree: tree, changed: changed, touched: map[string]bool{}, via: map[string]string{}, done: map[string]bool{}}
	for _, p := range changed {
		k.touched[p] = true
	}
	return k
}

// reach records that a file is run. via says what starts it.
func (k *walk) reach(file, via string) {
	if _, known := k.via[file]; !known {
		k.via[file] = via
		k.order = append(k.order, file)
	}
}

// known reports whether a file is run.
func (k *walk) known(file string) bool { _, is := k.via[file]; return is }

// reachChanged records changed files that fit a pattern. A tool reads them although no command
// names them.
func (k *walk) reachChanged(patterns []string, via string) {
	for _, p := range k.changed {
		for _, pattern := range patterns {
			root, anchored := strings.CutPrefix(pattern, "/")
			if pattern = root; !anchored && !strings.Contains(pattern, "/") {
				pattern = "**/" + pattern
			}
			if hit, err := doublestar.Match(pattern, p); hit && err == nil {
				k.reach(p, via)
			}
		}
	}
}

// again reports whether something was not followed yet, and counts it as followed. It returns false
// if the walk is too long or too deep.
func (k *walk) again(key string, depth int) bool {
	if k.done[key] || k.steps >= maxSteps || depth > deepestCall {
		return false
	}
	k.steps++
	k.done[key] = true
	return true
}

// unknown replaces an unknown part of a word, such as a variable.
const unknown = "\x01"

// script follows the commands of a shell script. dirs are the folders where it may start.
func (k *walk) script(text string, dirs []string, via string, depth int) error {
	if !k.again("script\x00"+strings.Join(dirs, "\x00")+"\x00"+text, depth) {
		return nil
	}
	text = expressions().ReplaceAllString(text, "${UNKNOWN}")
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.RecoverErrors(20)).Parse(strings.NewReader(text), "")
	if file == nil || err != nil && len(file.Stmts) == 0 {
		for line := range strings.Lines(text) { // the text may be of another shell
			if err := k.command(strings.Fields(line), dirs, via, depth); err != nil {
				return err
			}
		}
		return nil
	}
	var failed error
	bare := false
	dirs = slices.Clone(dirs)
	syntax.Walk(file, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.Stmt:
			for _, r := range node.Redirs {
				if word := literal(r.Word); r.Op == syntax.RdrIn && word != "" && failed == nil {
					failed = k.named(word, dirs, via, depth)
				} else if r.Hdoc != nil && failed == nil {
					failed = k.script(literal(r.Hdoc), dirs, via, depth+1)
				}
			}
		case *syntax.CallExpr:
			var args []string
			for _, word := range node.Args {
				args = append(args, literal(word))
			}
			if len(args) == 0 || failed != nil {
				return true
			}
			if (args[0] == "cd" || args[0] == "pushd") && len(args) > 1 {
				dirs = within(dirs, args[1])
			}
			bare = bare || len(args) == 1 && shells[path.Base(args[0])]
			failed = k.command(args, dirs, via, depth)
		}
		return true
	})
	if bare && failed == nil { // as in cat FILE | sh
		for word := range strings.FieldsSeq(text) {
			if err := k.named(strings.Trim(word, `"'();|`), dirs, via, depth); err != nil {
				return err
			}
		}
	}
	return failed
}

// within returns dirs and the folders where a script is after "cd to" in them.
func within(dirs []string, to string) []string {
	for _, dir := range slices.Clone(dirs) {
		next := path.Join(dir, known(to))
		if !slices.Contains(dirs, next) && len(dirs) < maxFolders && !strings.HasPrefix(next, "..") {
			dirs = append(dirs, next)
		}
	}
	return dirs
}

// known returns a path without an unknown beginning, such as a variable with the workspace's path.
func known(word string) string {
	if rest, is := strings.CutPrefix(word, unknown); is && strings.HasPrefix(rest, "/") {
		return rest[1:]
	}
	return word
}

// literal returns a word without quotes. Expansions are replaced by unknown.
func literal(word *syntax.Word) string {
	if word == nil {
		return ""
	}
	var s strings.Builder
	var write func(parts []syntax.WordPart)
	write = func(parts []syntax.WordPart) {
		for _, part := range parts {
			switch part := part.(type) {
			case *syntax.Lit:
				s.WriteString(unescaped(part.Value))
			case *syntax.SglQuoted:
				s.WriteString(part.Value)
			case *syntax.DblQuoted:
				write(part.Parts)
			default:
				s.WriteString(unknown)
			}
		}
	}
	write(word.Parts)
	return s.String()
}

// unescaped removes the backslashes of a shell word.
func unescaped(text string) string {
	return strings.NewReplacer("\\\n", "", `\\`, `\`, `\ `, " ", `\"`, `"`, `\$`, "$").Replace(text)
}

// Sets of programs, by what they run.
var (
	shells       = words("sh bash zsh dash ksh ash fish busybox pwsh powershell")
	interpreters = words("sh bash zsh dash ksh ash fish pwsh powershell source . node nodejs deno bun tsx ts-node ruby perl php lua Rscript python python3 python2 pypy pypy3 py osascript groovy kotlin scala java awk gawk")
	harmless     = words("echo printf cat grep egrep rg ls cd pushd popd test [ [[ rm mkdir touch which command type apt-get apt brew curl wget sed head tail sort uniq wc cut tr tee diff chmod chown ln git export local readonly unset true false : exit return")
	makes        = words("make gmake gnumake mingw32-make")
	packages     = words("npm yarn pnpm bun npx pnpx bunx yarnpkg corepack")
)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		set[word] = true
	}
	return set
}

// reads lists the files that a tool runs or obeys although no command names them, by the tool's
// name.
var reads = map[string][]string{
	"pytest": pytestFiles, "py.test": pytestFiles, "coverage": pytestFiles, "tox": append([]string{"tox.ini", "setup.py"}, pytestFiles...), "nox": append([]string{"noxfile.py"}, pytestFiles...), "unittest": {"sitecustomize.py"},
	"pip": setupFiles, "pip3": setupFiles, "uv": setupFiles, "poetry": setupFiles, "hatch": setupFiles, "pdm": setupFiles, "pipenv": append([]string{"Pipfile"}, setupFiles...), "build": setupFiles,
	"jest": {"jest.config.*", "jest.setup.*", "babel.config.*", ".babelrc*", "setupTests.*"}, "vitest": viteFiles, "vite": viteFiles, "mocha": {".mocharc*"}, "eslint": {"eslint.config.*", ".eslintrc*"}, "prettier": {".prettierrc*", "prettier.config.*"},
	"webpack": {"webpack.config.*", "webpack.*.js", "babel.config.*"}, "rollup": {"rollup.config.*"}, "next": {"next.config.*", "postcss.config.*", "tailwind.config.*"}, "playwright": {"playwright.config.*"}, "cypress": {"cypress.config.*", "cypress/plugins/**", "cypress/support/**"},
	"gulp": {"gulpfile.*"}, "grunt": {"Gruntfile.*"}, "turbo": {"turbo.json", "package.json"}, "nx": {"nx.json", "project.json", "package.json"}, "lerna": {"lerna.json", "package.json"}, "semantic-release": {".releaserc*", "release.config.*", "package.json"}, "changeset": {".changeset/config.json"},
	"cargo": {"build.rs", "**/.cargo/config", "**/.cargo/config.toml", "Cargo.toml", "rust-toolchain*"}, "mvn": {"pom.xml", "**/.mvn/**"}, "mvnw": {"pom.xml", "**/.mvn/**"},
	"gradle": gradleFiles, "gradlew": gradleFiles, "sbt": {"build.sbt", "project/**"}, "docker": dockerFiles, "docker-compose": dockerFiles, "podman": dockerFiles, "buildah": dockerFiles, "earthly": {"Earthfile"},
	"rake": {"Rakefile", "*.rake"}, "rspec": {".rspec", "spec_helper.rb", "rails_helper.rb"}, "bundle": {"Gemfile", "*.gemspec"}, "fastlane": {"Fastfile", "Appfile"}, "terraform": {"*.tf", "*.tfvars"}, "tofu": {"*.tf", "*.tfvars"}, "pulumi": {"Pulumi*.yaml"},
	"pre-commit": {".pre-commit-config.yaml"}, "just": {"justfile", "Justfile", ".justfile", "*.just"}, "task": {"Taskfile*"}, "bazel": {"BUILD", "BUILD.bazel", "WORKSPACE*", "MODULE.bazel", "*.bzl", ".bazelrc"}, "composer": {"composer.json"}, "phpunit": {"phpunit.xml*"},
	"dotnet": {"*.csproj", "*.fsproj", "Directory.Build.*", "nuget.config"}, "msbuild": {"*.csproj", "Directory.Build.*"}, "cmake": {"CMakeLists.txt", "*.cmake"}, "ctest": {"CTestTestfile.cmake", "CMakeLists.txt"}, "meson": {"meson.build"}, "scons": {"SConstruct"}, "invoke": {"tasks.py"}, "inv": {"tasks.py"},
	"ansible-playbook": {"ansible.cfg"}, "goreleaser": {".goreleaser.*"}, "mage": {"magefile.go"}, "mix": {"mix.exs"}, "swift": {"Package.swift"}, "flutter": {"pubspec.yaml"}, "helm": {"Chart.yaml"}, "mise": {"mise.toml", ".mise.toml"}, "wrangler": {"wrangler.*"}, "vercel": {"vercel.json"}, "firebase": {"firebase.json"}, "serverless": {"serverless.*"},
}

var (
	pytestFiles = []string{"conftest.py", "pytest.ini", ".pytest.ini", "pyproject.toml", "setup.cfg", "tox.ini", "sitecustomize.py"}
	setupFiles  = []string{"setup.py", "setup.cfg", "pyproject.toml", "hatch_build.py"}
	viteFiles   = []string{"vite.config.*", "vitest.config.*", "vitest.workspace.*", "vitest.setup.*"}
	gradleFiles = []string{"build.gradle", "build.gradle.kts", "settings.gradle*", "gradle.properties", "gradlew", "gradlew.bat", "**/gradle/wrapper/**", "gradle/wrapper/**", "buildSrc/**", "init.gradle*"}
	dockerFiles = []string{"Dockerfile*", "*.Dockerfile", "docker-compose*.yml", "docker-compose*.yaml", "compose*.yml", "compose*.yaml", "docker-bake.*"}
)

// command follows a command: its program and the programs and files in its arguments.
func (k *walk) command(args []string, dirs []string, via string, depth int) error {
	const mostArgs = 200
	args = args[:min(len(args), mostArgs)]
	for i, arg := range args {
		name := strings.TrimSuffix(path.Base(known(arg)), ".exe")
		if i == 0 && harmless[name] && name != "command" {
			if name == "git" && slices.Contains(args, "bisect") {
				continue
			}
			return nil
		}
		rest := args[i+1:]
		var err error
		switch {
		case i == 0 && name == "eval", shells[name] && slices.ContainsFunc(rest, isCommandFlag):
			for _, text := range rest {
				if !strings.HasPrefix(text, "-") {
					err = k.script(strings.ReplaceAll(text, unknown, "${UNKNOWN}"), dirs, via+" → "+name, depth+1)
				}
			}
		case makes[name]:
			err = k.makeTargets(rest, dirs, via+" → "+name, depth)
		case packages[name]:
			err = k.packageScript(name, rest, dirs, via+" → "+name, depth)
		case name == "go":
			err = k.goCommand(rest, dirs, via+" → go", depth)
		}
		if files := reads[name]; files != nil && err == nil && onlyWrappers(args[:i]) {
			k.reachChanged(files, via+" → "+name)
		}
		if err == nil && (i == 0 || interpreters[path.Base(args[i-1])] || looksRun(arg)) {
			err = k.named(arg, dirs, via, depth)
		}
		if err == nil && arg == "-m" && i+1 < len(args) && i > 0 && strings.HasPrefix(path.Base(args[0]), "py") {
			err = k.pythonModule(args[i+1], dirs, via, depth)
		}
		if _, value, is := strings.Cut(arg, "="); is && err == nil && looksRun(value) {
			err = k.named(value, dirs, via, depth)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// wrappers are programs that start the program in their arguments.
var wrappers = words("sudo env time timeout nice nohup xargs exec command xvfb-run doas stdbuf retry npx pnpx bunx yarn pnpm npm bun uv uvx pipx poetry pipenv hatch pdm rye bundle python python3 py coverage dlx run x mise asdf direnv setsid ionice node")

// onlyWrappers reports whether the words before a program do no more than start it.
func onlyWrappers(args []string) bool {
	for _, arg := range args {
		if !wrappers[path.Base(arg)] && !strings.HasPrefix(arg, "-") && !strings.Contains(arg, "=") && strings.Trim(arg, "0123456789smh") != "" {
			return false
		}
	}
	return true
}

// isCommandFlag reports whether a shell's option is followed by a script, such as -c or -ec.
func isCommandFlag(arg string) bool {
	return len(arg) > 1 && arg[0] == '-' && arg[1] != '-' && strings.Contains(arg, "c") || strings.EqualFold(arg, "-command")
}

// looksRun reports whether an argument looks like a file that is run.
func looksRun(arg string) bool {
	switch strings.ToLower(path.Ext(arg)) {
	case ".sh", ".bash", ".zsh", ".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".rb", ".pl", ".php", ".ps1", ".psm1", ".bat", ".cmd", ".mk", ".lua", ".groovy", ".gradle", ".rake", ".awk", ".r", ".kts", ".exs", ".tf", ".sql":
		return true
	}
	return strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, "../")
}

// named follows a file that a command names, relative to its folders. An unknown part of the name
// matches anything.
func (k *walk) named(word string, dirs []string, via string, depth int) error {
	word = known(strings.TrimSpace(word))
	if word == "" || word == unknown || strings.HasPrefix(word, "-") || len(word) > 500 {
		return nil
	}
	for _, dir := range dirs {
		name := path.Join(dir, strings.ReplaceAll(word, unknown, "*"))
		if strings.Contains(word, unknown) {
			if strings.Trim(name, "*/.") != "" {
				k.reachChanged([]string{"/" + name, name}, via+" → "+strings.ReplaceAll(word, unknown, "…"))
			}
			continue
		}
		if err := k.program(name, via, depth); err != nil {
			return err
		}
	}
	return nil
}

// program follows a file that is run, if it exists.
func (k *walk) program(name, via string, depth int) error {
	file, content, err := k.tree.file(name)
	if err != nil || content == nil {
		return err
	}
	via += " → " + name
	k.reach(file, via)
	if !k.again("file\x00"+file, depth) {
		return nil
	}
	dirs := []string{"."}
	if dir := path.Dir(file); dir != "." {
		dirs = append(dirs, dir)
	}
	text := string(content)
	switch ext := strings.ToLower(path.Ext(file)); {
	case ext == ".mk":
		return k.makefile(file, text, nil, via, depth+1)
	case strings.HasPrefix(text, "#!") && !shebang().MatchString(text), ext != "" && ext != ".sh" && ext != ".bash" && ext != ".zsh" && ext != ".bats" && ext != ".env" && !strings.HasPrefix(text, "#!"):
		return k.mentions(file, text, dirs, via, depth+1)
	}
	return k.script(text, dirs, via, depth+1)
}

var shebang = lazyregexp.New(`^#!\s*\S*(?:/env\s+(?:-\S+\s+)*)?(?:/|\b)(?:ba|z|da|k|a)?sh\b`)

// texts matches strings that may be file names, and imports of neighbouring modules.
var texts = lazyregexp.New("[\"'`]([^\"'`\\s]{1,200})[\"'`]|(?m:^\\s*(?:from|import)\\s+(\\.?[A-Za-z_][\\w.]{0,100}))")

// mentions follows what a program that is no shell script names: files, modules next to it, and
// commands in strings.
func (k *walk) mentions(file, text string, dirs []string, via string, depth int) error {
	const most = 400
	for _, m := range texts().FindAllStringSubmatch(text, most) {
		names := []string{m[1]}
		if m[2] != "" {
			module := strings.ReplaceAll(strings.TrimLeft(m[2], "."), ".", "/")
			names = []string{module + ".py", module + "/__init__.py"}
		} else if strings.HasPrefix(m[1], "./") || strings.HasPrefix(m[1], "../") {
			names = append(names, m[1]+".js", m[1]+".ts", m[1]+".mjs", m[1]+".cjs", m[1]+"/index.js", m[1]+".rb")
		} else if !looksRun(m[1]) {
			continue
		}
		for _, name := range names {
			for _, dir := range dirs {
				if err := k.program(path.Join(dir, name), via, depth); err != nil {
					return err
				}
			}
		}
	}
	for _, m := range shellCalls().FindAllStringSubmatch(text, most) {
		if err := k.script(m[1], dirs, via, depth); err != nil {
			return err
		}
	}
	return nil
}

// shellCalls matches strings that a program passes to a shell.
var shellCalls = lazyregexp.New("\\b(?:system|popen|run|call|check_call|check_output|exec|execSync|spawnSync|Popen|getoutput|sh)\\s*\\(\\s*[fr]?[\"'`]([^\"'`\\n]{1,500})[\"'`]")

// pythonModule follows a module that python -m runs.
func (k *walk) pythonModule(name string, dirs []string, via string, depth int) error {
	if files := reads[name]; files != nil {
		k.reachChanged(files, via+" → "+name)
	}
	module := strings.ReplaceAll(name, ".", "/")
	for _, dir := range dirs {
		for _, file := range []string{module + ".py", module + "/__main__.py", module + "/__init__.py", "src/" + module + "/__main__.py", "src/" + module + ".py"} {
			if err := k.program(path.Join(dir, file), via, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// goCommand follows the files of go run and go generate, and the programs in -exec and similar
// options. Tests and sources of go test and go build are not followed.
func (k *walk) goCommand(args []string, dirs []string, via string, depth int) error {
	if len(args) == 0 {
		return nil
	}
	switch args[0] {
	case "run", "generate":
		for _, arg := range args[1:] {
			for _, dir := range dirs {
				if !strings.HasPrefix(arg, "-") && !strings.Contains(arg, "@") {
					k.reachChanged([]string{"/" + path.Join(dir, arg), path.Join(dir, strings.TrimSuffix(arg, "/...")) + "/*.go"}, via+" "+args[0])
				}
			}
		}
	case "test", "build", "vet":
		k.reachChanged([]string{"go.env", "go.work"}, via+" "+args[0])
		for i, arg := range args {
			for _, flag := range []string{"exec", "toolexec", "vettool"} {
				value, is := strings.CutPrefix(strings.TrimLeft(arg, "-"), flag)
				if !is || !strings.HasPrefix(arg, "-") {
					continue
				}
				if value = strings.TrimPrefix(value, "="); value == "" && i+1 < len(args) {
					value = args[i+1]
				}
				if err := k.command(strings.Fields(value), dirs, via, depth+1); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// lifecycle lists the scripts that an installation runs.
var lifecycle = []string{"preinstall", "install", "postinstall", "preprepare", "prepare", "postprepare", "prepublish", "prepack", "postpack", "prepublishOnly", "publish", "postpublish"}

// packageScript follows npm, yarn, pnpm or bun into package.json.
func (k *walk) packageScript(tool string, args []string, dirs []string, via string, depth int) error {
	names, elsewhere := []string{}, false
	dirs = slices.Clone(dirs)
	for i, arg := range args {
		flag, value, joined := strings.Cut(arg, "=")
		if !joined && i+1 < len(args) {
			value = args[i+1]
		}
		switch flag {
		case "--prefix", "-C", "--cwd", "--dir":
			dirs = within(dirs, value)
		case "-w", "--workspace", "--workspaces", "-ws", "--filter", "-F", "-r", "--recursive", "workspaces", "workspace", "foreach":
			elsewhere = true
		}
		if !strings.HasPrefix(arg, "-") {
			names = append(names, strings.ReplaceAll(arg, unknown, ""))
		}
	}
	if len(names) == 0 {
		names = []string{"install"}
	}
	if names[0] == "exec" || names[0] == "dlx" || names[0] == "x" || strings.HasSuffix(tool, "x") {
		return nil // command looks at the program among the arguments
	}
	if slices.ContainsFunc(names, func(n string) bool {
		return slices.Contains([]string{"ci", "install", "i", "add", "publish", "pack", "rebuild", "install-test", "it", "cit"}, n)
	}) {
		names = append(names, lifecycle...)
	}
	for _, dir := range dirs {
		if err := k.packageFile(path.Join(dir, "package.json"), names, via, depth); err != nil {
			return err
		}
	}
	for _, p := range k.changed {
		if elsewhere && path.Base(p) == "package.json" {
			if err := k.packageFile(p, names, via, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// partOf separates a file's name from the part of it that is run.
const partOf = "\x00"

// packageFile follows the scripts of a package.json. The text of each script is recorded as a part
// of the file. So a new dependency alone does not count as something that is run.
func (k *walk) packageFile(name string, names []string, via string, depth int) error {
	file, content, err := k.tree.file(name)
	if err != nil || content == nil {
		return err
	}
	var read struct {
		Scripts map[string]string `json:"scripts"`
	}
	if json.Unmarshal(content, &read) != nil {
		k.reach(file, via)
		return nil
	}
	for _, called := range names {
		for _, script := range []string{"pre" + called, called, "post" + called} {
			text, is := read.Scripts[script]
			if !is {
				continue
			}
			k.reach(file+partOf+script+"="+text, via+" "+script)
			if err := k.script(text, []string{path.Dir(file)}, via+" "+script, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}
