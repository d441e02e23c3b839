package workflows

import (
	"encoding/json"
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/policy/pathname"
)

// Bounds on one walk.
const (
	maxSteps    = 4000
	deepestCall = 12
	maxFolders  = 8 // folders that a script may be in at one time
)

// walk follows commands to the files that they run. After an error of the tree it reads nothing more.
type walk struct {
	tree    Tree
	changed []string          // paths of the change
	touched map[string]bool   // the same paths as a set
	via     map[string]string // the run files, by what starts them
	order   []string
	done    map[string]bool // keys of what was followed
	steps   int
	err     error // the first error of the tree
}

// caller describes what starts a command.
type caller struct {
	dirs  []string // the folders where the command may start
	via   string   // what starts it, for people
	depth int      // of calls
}

// to returns the caller of something that c starts by name.
func (c caller) to(name string) caller {
	c.via += " → " + name
	return c
}

// oneDeeper returns the caller of something one call deeper that starts in dirs.
func (c caller) oneDeeper(dirs ...string) caller {
	c.dirs, c.depth = dirs, c.depth+1
	return c
}

// newWalk returns a walk through a tree. changed has the paths of the change.
func newWalk(tree Tree, changed []string) *walk {
	k := &walk{tree: tree, changed: changed, touched: map[string]bool{}, via: map[string]string{}, done: map[string]bool{}}
	for _, p := range changed {
		k.touched[p] = true
	}
	return k
}

// read reads a file of the tree. name is then its path behind the links. content is nil for a missing file.
func (k *walk) read(name string) (file string, content []byte) {
	if k.err != nil {
		return "", nil
	}
	file, content, k.err = readFollowingLinks(k.tree, name)
	return file, content
}

// addReached records that a file is run. via says what starts it.
func (k *walk) addReached(file, via string) {
	if _, known := k.via[file]; !known {
		k.via[file] = via
		k.order = append(k.order, file)
	}
}

// isReached reports whether a file is run.
func (k *walk) isReached(file string) bool { _, found := k.via[file]; return found }

// addChangedMatching records the changed files that match a pattern. A tool reads them although no command
// names them.
func (k *walk) addChangedMatching(patterns []string, via string) {
	for _, p := range k.changed {
		for _, pattern := range patterns {
			pattern, anchored := strings.CutPrefix(pattern, "/")
			if !anchored && !strings.Contains(pattern, "/") {
				pattern = "**/" + pattern
			}
			if hit, err := pathname.MatchGlob(pattern, p); hit || errors.Is(err, pathname.ErrAlternatives) {
				k.addReached(p, via)
			}
		}
	}
}

// takeNew reports whether the thing with this key was not followed yet, and marks it as followed. It returns
// false if the walk has failed, or is too long or too deep.
func (k *walk) takeNew(key string, depth int) bool {
	if k.err != nil || k.done[key] || k.steps >= maxSteps || depth > deepestCall {
		return false
	}
	k.steps++
	k.done[key] = true
	return true
}

// unknown replaces an unknown part of a word, such as a variable.
const unknown = "\x01"

// followScript follows the commands of a shell script.
func (k *walk) followScript(text string, c caller) {
	if !k.takeNew("script\x00"+strings.Join(c.dirs, "\x00")+"\x00"+text, c.depth) {
		return
	}
	text = expressions().ReplaceAllString(text, "${UNKNOWN}")
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.RecoverErrors(20)).Parse(strings.NewReader(text), "")
	if file == nil || err != nil && len(file.Stmts) == 0 { // it may be of another shell
		for line := range strings.Lines(text) {
			k.followCommand(strings.Fields(line), c)
		}
		return
	}
	shellReadsInput := false // a shell runs its standard input, as in cat FILE | sh
	syntax.Walk(file, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.Stmt:
			k.followRedirections(node.Redirs, c)
		case *syntax.CallExpr:
			var args []string
			for _, word := range node.Args {
				args = append(args, wordText(word))
			}
			switch {
			case len(args) > 1 && (args[0] == "cd" || args[0] == "pushd"):
				c.dirs = foldersAfterCD(c.dirs, args[1])
			case len(args) == 1 && shells[path.Base(args[0])]:
				shellReadsInput = true
			}
			k.followCommand(args, c)
		}
		return true
	})
	if shellReadsInput {
		for word := range strings.FieldsSeq(text) {
			k.followNamedFile(strings.Trim(word, `"'();|`), c)
		}
	}
}

// followRedirections follows files and texts that become the input of a command.
func (k *walk) followRedirections(all []*syntax.Redirect, c caller) {
	for _, r := range all {
		if word := wordText(r.Word); r.Op == syntax.RdrIn && word != "" {
			k.followNamedFile(word, c)
		} else if r.Hdoc != nil {
			k.followScript(wordText(r.Hdoc), c.oneDeeper(c.dirs...))
		}
	}
}

// foldersAfterCD returns dirs and the folders that "cd to" leads to from there.
func foldersAfterCD(dirs []string, to string) []string {
	all := slices.Clip(dirs)
	for _, dir := range dirs {
		next := path.Join(dir, withoutUnknownStart(to))
		if !slices.Contains(all, next) && len(all) < maxFolders && filepath.IsLocal(next) {
			all = append(all, next)
		}
	}
	return all
}

// withoutUnknownStart returns a path without an unknown first element, such as a variable with the
// workspace's path.
func withoutUnknownStart(word string) string {
	if rest, found := strings.CutPrefix(word, unknown); found && strings.HasPrefix(rest, "/") {
		return rest[1:]
	}
	return word
}

// wordText returns a word without quotes. Expansions are replaced by unknown.
func wordText(word *syntax.Word) string {
	if word == nil {
		return ""
	}
	var s strings.Builder
	var write func(parts []syntax.WordPart)
	write = func(parts []syntax.WordPart) {
		for _, part := range parts {
			switch part := part.(type) {
			case *syntax.Lit:
				s.WriteString(withoutBackslashes(part.Value))
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

// withoutBackslashes removes the backslashes of a shell word.
func withoutBackslashes(text string) string {
	return strings.NewReplacer("\\\n", "", `\\`, `\`, `\ `, " ", `\"`, `"`, `\$`, "$").Replace(text)
}

// Sets of programs, by what they run.
var (
	shells           = setOf("sh bash zsh dash ksh ash fish busybox pwsh powershell")
	interpreters     = setOf("sh bash zsh dash ksh ash fish pwsh powershell source . node nodejs deno bun tsx ts-node ruby perl php lua Rscript python python3 python2 pypy pypy3 py osascript groovy kotlin scala java awk gawk")
	harmlessPrograms = setOf("echo printf cat grep egrep rg ls cd pushd popd test [ [[ rm mkdir touch which type apt-get apt brew curl wget sed head tail sort uniq wc cut tr tee diff chmod chown ln git export local readonly unset true false : exit return")
	makePrograms     = setOf("make gmake gnumake mingw32-make")
	packageManagers  = setOf("npm yarn pnpm bun npx pnpx bunx yarnpkg corepack")
)

// setOf returns the words of a list as a set.
func setOf(list string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		set[word] = true
	}
	return set
}

// toolFiles lists the files that a tool runs or obeys although no command names them, by the tool's
// name.
var toolFiles = map[string][]string{
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

// followCommand follows a command: its program and the programs and files in its arguments.
func (k *walk) followCommand(args []string, c caller) {
	const mostArgs = 200
	args = args[:min(len(args), mostArgs)]
	first := 0
	if len(args) > 0 && harmlessPrograms[programName(args[0])] {
		if programName(args[0]) != "git" || !slices.Contains(args, "bisect") {
			return
		}
		first = 1 // git bisect starts a program in its arguments
	}
	for i := first; i < len(args); i++ {
		k.followArgument(args, i, c)
	}
}

// programName returns the name of a program without its folder.
func programName(arg string) string {
	return strings.TrimSuffix(path.Base(withoutUnknownStart(arg)), ".exe")
}

// followArgument follows word i of a command if it names a program or a file that is run.
func (k *walk) followArgument(args []string, i int, c caller) {
	arg, name := args[i], programName(args[i])
	k.followProgramArguments(name, args[i+1:], i == 0, c.to(name))
	if files := toolFiles[name]; files != nil && onlyWrappers(args[:i]) {
		k.addChangedMatching(files, c.to(name).via)
	}
	if i == 0 || interpreters[path.Base(args[i-1])] || looksExecutable(arg) {
		k.followNamedFile(arg, c)
	}
	isPython := i > 0 && strings.HasPrefix(path.Base(args[0]), "py")
	if isPython && arg == "-m" && i+1 < len(args) {
		k.followPythonModule(args[i+1], c)
	}
	if _, value, found := strings.Cut(arg, "="); found && looksExecutable(value) {
		k.followNamedFile(value, c)
	}
}

// followProgramArguments follows the arguments of a program that is known to run what they name: a shell,
// make, a package manager or go. isFirst means that the program is the first word of the command.
func (k *walk) followProgramArguments(name string, args []string, isFirst bool, c caller) {
	switch {
	case isFirst && name == "eval", shells[name] && slices.ContainsFunc(args, isCommandFlag):
		for _, text := range args { // each may be a script
			if !strings.HasPrefix(text, "-") {
				k.followScript(strings.ReplaceAll(text, unknown, "${UNKNOWN}"), c.oneDeeper(c.dirs...))
			}
		}
	case makePrograms[name]:
		k.followMake(args, c)
	case packageManagers[name]:
		k.followPackageManager(name, args, c)
	case name == "go":
		k.followGo(args, c)
	}
}

// wrapperPrograms are programs that start the program in their arguments.
var wrapperPrograms = setOf("sudo env time timeout nice nohup xargs exec command xvfb-run doas stdbuf retry npx pnpx bunx yarn pnpm npm bun uv uvx pipx poetry pipenv hatch pdm rye bundle python python3 py coverage dlx run x mise asdf direnv setsid ionice node")

// onlyWrappers reports whether the words before a program do no more than start it.
func onlyWrappers(args []string) bool {
	for _, arg := range args {
		isOption := strings.HasPrefix(arg, "-") || strings.Contains(arg, "=")
		isDuration := strings.Trim(arg, "0123456789smh") == ""
		if !wrapperPrograms[path.Base(arg)] && !isOption && !isDuration {
			return false
		}
	}
	return true
}

// isCommandFlag reports whether a shell's option is followed by a script, such as -c or -ec.
func isCommandFlag(arg string) bool {
	isShort := len(arg) > 1 && arg[0] == '-' && arg[1] != '-'
	return isShort && strings.Contains(arg, "c") || strings.EqualFold(arg, "-command")
}

// looksExecutable reports whether an argument looks like a file that is run.
func looksExecutable(arg string) bool {
	switch strings.ToLower(path.Ext(arg)) {
	case ".sh", ".bash", ".zsh", ".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".rb", ".pl", ".php", ".ps1", ".psm1", ".bat", ".cmd", ".mk", ".lua", ".groovy", ".gradle", ".rake", ".awk", ".r", ".kts", ".exs", ".tf", ".sql":
		return true
	}
	return strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, "../")
}

// followNamedFile follows a file that a command names, relative to its folders. An unknown part of the name
// matches anything.
func (k *walk) followNamedFile(word string, c caller) {
	word = withoutUnknownStart(strings.TrimSpace(word))
	const maxNameBytes = 500
	if word == "" || word == unknown || strings.HasPrefix(word, "-") || len(word) > maxNameBytes {
		return
	}
	for _, dir := range c.dirs {
		name := path.Join(dir, strings.ReplaceAll(word, unknown, "*"))
		switch {
		case !strings.Contains(word, unknown):
			k.followFile(name, c)
		case strings.Trim(name, "*/.") != "":
			k.addChangedMatching([]string{"/" + name, name}, c.to(strings.ReplaceAll(word, unknown, "…")).via)
		}
	}
}

// followFile records a file that is run, and follows its content. It ignores a missing file.
func (k *walk) followFile(name string, c caller) {
	file, content := k.read(name)
	if content == nil {
		return
	}
	c = c.to(name)
	k.addReached(file, c.via)
	if !k.takeNew("file\x00"+file, c.depth) {
		return
	}
	text, c := string(content), c.oneDeeper(".")
	if dir := path.Dir(file); dir != "." {
		c.dirs = append(c.dirs, dir)
	}
	switch {
	case strings.EqualFold(path.Ext(file), ".mk"):
		k.followMakefile(file, text, nil, c)
	case isShellScript(file, text):
		k.followScript(text, c)
	default:
		k.followMentions(text, c)
	}
}

var shellExtensions = setOf(".sh .bash .zsh .bats .env")

// isShellScript reports whether a file is run by a shell, by its first line or else its name.
func isShellScript(file, text string) bool {
	if strings.HasPrefix(text, "#!") {
		return shellShebang().MatchString(text)
	}
	ext := strings.ToLower(path.Ext(file))
	return ext == "" || shellExtensions[ext]
}

var shellShebang = lazyregexp.New(`^#!\s*\S*(?:/env\s+(?:-\S+\s+)*)?(?:/|\b)(?:ba|z|da|k|a)?sh\b`)

// quotedTexts matches strings that may be file names, and imports of neighbouring modules.
var quotedTexts = lazyregexp.New("[\"'`]([^\"'`\\s]{1,200})[\"'`]|(?m:^\\s*(?:from|import)\\s+(\\.?[A-Za-z_][\\w.]{0,100}))")

// followMentions follows what a program that is no shell script names: files, modules next to it, and
// commands in strings.
func (k *walk) followMentions(text string, c caller) {
	const maxMatches = 400
	for _, m := range quotedTexts().FindAllStringSubmatch(text, maxMatches) {
		k.followFiles(filesNamedBy(m[1], m[2]), c)
	}
	for _, m := range shellCalls().FindAllStringSubmatch(text, maxMatches) {
		k.followScript(m[1], c)
	}
}

// followFiles follows files, each in all folders of the caller.
func (k *walk) followFiles(names []string, c caller) {
	for _, name := range names {
		for _, dir := range c.dirs {
			k.followFile(path.Join(dir, name), c)
		}
	}
}

// filesNamedBy returns the files that a program may mean by a string or by an imported Python module. module is ""
// for a string, and text is not used for a module.
func filesNamedBy(text, module string) []string {
	switch {
	case module != "":
		module = strings.ReplaceAll(strings.TrimLeft(module, "."), ".", "/")
		return []string{module + ".py", module + "/__init__.py"}
	case strings.HasPrefix(text, "./"), strings.HasPrefix(text, "../"):
		return []string{text, text + ".js", text + ".ts", text + ".mjs", text + ".cjs", text + "/index.js", text + ".rb"}
	case looksExecutable(text):
		return []string{text}
	}
	return nil
}

// shellCalls matches strings that a program passes to a shell.
var shellCalls = lazyregexp.New("\\b(?:system|popen|run|call|check_call|check_output|exec|execSync|spawnSync|Popen|getoutput|sh)\\s*\\(\\s*[fr]?[\"'`]([^\"'`\\n]{1,500})[\"'`]")

// followPythonModule follows a module that python -m runs.
func (k *walk) followPythonModule(name string, c caller) {
	k.addChangedMatching(toolFiles[name], c.to(name).via)
	module := strings.ReplaceAll(name, ".", "/")
	k.followFiles([]string{module + ".py", module + "/__main__.py", module + "/__init__.py", "src/" + module + "/__main__.py", "src/" + module + ".py"}, c)
}

// followGo follows the files of go run and go generate, and the programs in -exec and similar
// options. It does not follow tests and sources of go test and go build.
func (k *walk) followGo(args []string, c caller) {
	if len(args) == 0 {
		return
	}
	switch via := c.via + " " + args[0]; args[0] {
	case "run", "generate":
		k.addGoFiles(args[1:], c.dirs, via)
	case "test", "build", "vet":
		k.addChangedMatching([]string{"go.env", "go.work"}, via)
		k.followGoTools(args, c)
	}
}

// addGoFiles records the changed files and packages of go run or go generate.
func (k *walk) addGoFiles(args, dirs []string, via string) {
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") || strings.Contains(arg, "@") {
			continue
		}
		for _, dir := range dirs {
			k.addChangedMatching([]string{"/" + path.Join(dir, arg), path.Join(dir, strings.TrimSuffix(arg, "/...")) + "/*.go"}, via)
		}
	}
}

// followGoTools follows the programs in options such as -exec=PROGRAM or -toolexec PROGRAM. PROGRAM may have
// arguments.
func (k *walk) followGoTools(args []string, c caller) {
	for i, arg := range args {
		if !strings.HasPrefix(arg, "-") {
			continue
		}
		for _, flag := range []string{"exec", "toolexec", "vettool"} {
			value, found := strings.CutPrefix(strings.TrimLeft(arg, "-"), flag)
			if !found {
				continue
			}
			value = strings.TrimPrefix(value, "=")
			if value == "" && i+1 < len(args) {
				value = args[i+1]
			}
			k.followCommand(strings.Fields(value), c.oneDeeper(c.dirs...))
		}
	}
}

// lifecycle lists the scripts that an installation runs.
var lifecycle = []string{"preinstall", "install", "postinstall", "preprepare", "prepare", "postprepare", "prepublish", "prepack", "postpack", "prepublishOnly", "publish", "postpublish"}

// runsLifecycle has the subcommands that run lifecycle scripts.
var runsLifecycle = setOf("ci install i add publish pack rebuild install-test it cit")

// followPackageManager follows npm, yarn, pnpm or bun into the package.json of its folders, and for commands in
// workspaces also into every changed package.json. It treats each argument as a possible name of a script.
func (k *walk) followPackageManager(tool string, args []string, c caller) {
	names, inWorkspaces := []string{}, false
	for i, arg := range args {
		flag, value, joined := strings.Cut(arg, "=")
		if !joined && i+1 < len(args) {
			value = args[i+1]
		}
		switch flag {
		case "--prefix", "-C", "--cwd", "--dir":
			c.dirs = foldersAfterCD(c.dirs, value)
		case "-w", "--workspace", "--workspaces", "-ws", "--filter", "-F", "-r", "--recursive", "workspaces", "workspace", "foreach":
			inWorkspaces = true
		}
		if !strings.HasPrefix(arg, "-") {
			names = append(names, strings.ReplaceAll(arg, unknown, ""))
		}
	}
	if len(names) == 0 {
		names = []string{"install"}
	}
	if slices.Contains([]string{"exec", "dlx", "x"}, names[0]) || strings.HasSuffix(tool, "x") {
		return // followCommand looks at the program among the arguments
	}
	if slices.ContainsFunc(names, func(name string) bool { return runsLifecycle[name] }) {
		names = append(names, lifecycle...)
	}
	for _, dir := range c.dirs {
		k.followPackageJSON(path.Join(dir, "package.json"), names, c)
	}
	for _, p := range k.changed {
		if inWorkspaces && path.Base(p) == "package.json" {
			k.followPackageJSON(p, names, c)
		}
	}
}

// partSeparator separates a file's name from the part of it that is run.
const partSeparator = "\x00"

// followPackageJSON follows the named scripts of a package.json. It records the text of each script as a part
// of the file, so that a new dependency alone does not count as something that is run.
func (k *walk) followPackageJSON(name string, names []string, c caller) {
	file, content := k.read(name)
	if content == nil {
		return
	}
	var read struct {
		Scripts map[string]string `json:"scripts"`
	}
	if json.Unmarshal(content, &read) != nil {
		k.addReached(file, c.via)
		return
	}
	for _, called := range names {
		for _, script := range []string{"pre" + called, called, "post" + called} {
			text, found := read.Scripts[script]
			if !found {
				continue
			}
			starts := c.oneDeeper(path.Dir(file))
			starts.via += " " + script
			k.addReached(file+partSeparator+script+"="+text, starts.via)
			k.followScript(text, starts)
		}
	}
}
