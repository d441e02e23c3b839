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

// newWalk returns a walk through a tree. changed has the paths of the change.
func newWalk(tree Tree, changed []string) *walk {
	k := &walk{tree: tree, changed: changed, touched: map[string]bool{}, via: map[string]string{}, done: map[string]bool{}}
	for _, p := range changed {
		k.touched[p] = true
	}
	return k
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
			if hit, err := doublestar.Match(pattern, p); hit && err == nil {
				k.addReached(p, via)
			}
		}
	}
}

// takeNew reports whether the thing with this key was not followed yet, and marks it as followed. It returns
// false if the walk is too long or too deep.
func (k *walk) takeNew(key string, depth int) bool {
	if k.done[key] || k.steps >= maxSteps || depth > deepestCall {
		return false
	}
	k.steps++
	k.done[key] = true
	return true
}

// unknown replaces an unknown part of a word, such as a variable.
const unknown = "\x01"

// followScript follows the commands of a shell script. dirs are the folders where it may start.
func (k *walk) followScript(text string, dirs []string, via string, depth int) error {
	if !k.takeNew("script\x00"+strings.Join(dirs, "\x00")+"\x00"+text, depth) {
		return nil
	}
	text = expressions().ReplaceAllString(text, "${UNKNOWN}")
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.RecoverErrors(20)).Parse(strings.NewReader(text), "")
	if file == nil || err != nil && len(file.Stmts) == 0 {
		return k.followForeignScript(text, dirs, via, depth)
	}
	s := shellScript{walk: k, dirs: slices.Clone(dirs), via: via, depth: depth}
	syntax.Walk(file, func(node syntax.Node) bool {
		if s.err == nil {
			s.err = s.visit(node)
		}
		return true
	})
	if s.err == nil && s.shellReadsInput {
		s.err = s.followEveryWord(text)
	}
	return s.err
}

// followForeignScript follows each line of a script that may be of another shell.
func (k *walk) followForeignScript(text string, dirs []string, via string, depth int) error {
	for line := range strings.Lines(text) {
		if err := k.followCommand(strings.Fields(line), dirs, via, depth); err != nil {
			return err
		}
	}
	return nil
}

// shellScript is the walk through one shell script.
type shellScript struct {
	*walk
	dirs            []string // the folders where the script may be
	via             string
	depth           int
	shellReadsInput bool // a shell runs its standard input, as in cat FILE | sh
	err             error
}

// visit follows one node of the script's syntax tree.
func (s *shellScript) visit(node syntax.Node) error {
	switch node := node.(type) {
	case *syntax.Stmt:
		return s.followRedirections(node.Redirs)
	case *syntax.CallExpr:
		return s.followCall(node.Args)
	}
	return nil
}

// followRedirections follows files and texts that become the input of a command.
func (s *shellScript) followRedirections(all []*syntax.Redirect) error {
	for _, r := range all {
		var err error
		if word := wordText(r.Word); r.Op == syntax.RdrIn && word != "" {
			err = s.followNamedFile(word, s.dirs, s.via, s.depth)
		} else if r.Hdoc != nil {
			err = s.followScript(wordText(r.Hdoc), s.dirs, s.via, s.depth+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// followCall follows a command of the script.
func (s *shellScript) followCall(words []*syntax.Word) error {
	if len(words) == 0 {
		return nil
	}
	var args []string
	for _, word := range words {
		args = append(args, wordText(word))
	}
	switch {
	case len(args) > 1 && (args[0] == "cd" || args[0] == "pushd"):
		s.dirs = foldersAfterCD(s.dirs, args[1])
	case len(args) == 1 && shells[path.Base(args[0])]:
		s.shellReadsInput = true
	}
	return s.followCommand(args, s.dirs, s.via, s.depth)
}

// followEveryWord follows all words of the script that name files.
func (s *shellScript) followEveryWord(text string) error {
	for word := range strings.FieldsSeq(text) {
		if err := s.followNamedFile(strings.Trim(word, `"'();|`), s.dirs, s.via, s.depth); err != nil {
			return err
		}
	}
	return nil
}

// foldersAfterCD returns dirs and the folders that "cd to" leads to from there.
func foldersAfterCD(dirs []string, to string) []string {
	for _, dir := range slices.Clone(dirs) {
		next := path.Join(dir, withoutUnknownStart(to))
		if !slices.Contains(dirs, next) && len(dirs) < maxFolders && !strings.HasPrefix(next, "..") {
			dirs = append(dirs, next)
		}
	}
	return dirs
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
func (k *walk) followCommand(args []string, dirs []string, via string, depth int) error {
	const mostArgs = 200
	args = args[:min(len(args), mostArgs)]
	if len(args) == 0 {
		return nil
	}
	first := 0
	if name := programName(args[0]); harmlessPrograms[name] {
		if name != "git" || !slices.Contains(args, "bisect") {
			return nil
		}
		first = 1 // git bisect starts a program in its arguments
	}
	for i := first; i < len(args); i++ {
		if err := k.followArgument(args, i, dirs, via, depth); err != nil {
			return err
		}
	}
	return nil
}

// programName returns the name of a program without its folder.
func programName(arg string) string {
	return strings.TrimSuffix(path.Base(withoutUnknownStart(arg)), ".exe")
}

// followArgument follows word i of a command if it names a program or a file that is run.
func (k *walk) followArgument(args []string, i int, dirs []string, via string, depth int) error {
	arg, name := args[i], programName(args[i])
	if err := k.followProgramArguments(name, args[i+1:], i == 0, dirs, via+" → "+name, depth); err != nil {
		return err
	}
	if files := toolFiles[name]; files != nil && onlyWrappers(args[:i]) {
		k.addChangedMatching(files, via+" → "+name)
	}
	if i == 0 || interpreters[path.Base(args[i-1])] || looksExecutable(arg) {
		if err := k.followNamedFile(arg, dirs, via, depth); err != nil {
			return err
		}
	}
	isPython := i > 0 && strings.HasPrefix(path.Base(args[0]), "py")
	if isPython && arg == "-m" && i+1 < len(args) {
		if err := k.followPythonModule(args[i+1], dirs, via, depth); err != nil {
			return err
		}
	}
	if _, value, found := strings.Cut(arg, "="); found && looksExecutable(value) {
		return k.followNamedFile(value, dirs, via, depth)
	}
	return nil
}

// followProgramArguments follows the arguments of a program that is known to run what they name: a shell,
// make, a package manager or go. isFirst means that the program is the first word of the command.
func (k *walk) followProgramArguments(name string, args []string, isFirst bool, dirs []string, via string, depth int) error {
	switch {
	case isFirst && name == "eval", shells[name] && slices.ContainsFunc(args, isCommandFlag):
		return k.followScriptArguments(args, dirs, via, depth)
	case makePrograms[name]:
		return k.followMake(args, dirs, via, depth)
	case packageManagers[name]:
		return k.followPackageManager(name, args, dirs, via, depth)
	case name == "go":
		return k.followGo(args, dirs, via, depth)
	}
	return nil
}

// followScriptArguments follows arguments that are shell scripts.
func (k *walk) followScriptArguments(args []string, dirs []string, via string, depth int) error {
	for _, text := range args {
		if strings.HasPrefix(text, "-") {
			continue
		}
		if err := k.followScript(strings.ReplaceAll(text, unknown, "${UNKNOWN}"), dirs, via, depth+1); err != nil {
			return err
		}
	}
	return nil
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
func (k *walk) followNamedFile(word string, dirs []string, via string, depth int) error {
	word = withoutUnknownStart(strings.TrimSpace(word))
	const maxNameBytes = 500
	if word == "" || word == unknown || strings.HasPrefix(word, "-") || len(word) > maxNameBytes {
		return nil
	}
	for _, dir := range dirs {
		name := path.Join(dir, strings.ReplaceAll(word, unknown, "*"))
		if strings.Contains(word, unknown) {
			if strings.Trim(name, "*/.") != "" {
				k.addChangedMatching([]string{"/" + name, name}, via+" → "+strings.ReplaceAll(word, unknown, "…"))
			}
			continue
		}
		if err := k.followFile(name, via, depth); err != nil {
			return err
		}
	}
	return nil
}

// followFile records a file that is run, and follows its content. It ignores a missing file.
func (k *walk) followFile(name, via string, depth int) error {
	file, content, err := k.tree.readFollowingLinks(name)
	if err != nil || content == nil {
		return err
	}
	via += " → " + name
	k.addReached(file, via)
	if !k.takeNew("file\x00"+file, depth) {
		return nil
	}
	dirs := []string{"."}
	if dir := path.Dir(file); dir != "." {
		dirs = append(dirs, dir)
	}
	text := string(content)
	switch {
	case strings.EqualFold(path.Ext(file), ".mk"):
		return k.followMakefile(file, text, nil, via, depth+1)
	case isShellScript(file, text):
		return k.followScript(text, dirs, via, depth+1)
	}
	return k.followMentions(text, dirs, via, depth+1)
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
func (k *walk) followMentions(text string, dirs []string, via string, depth int) error {
	const maxMatches = 400
	for _, m := range quotedTexts().FindAllStringSubmatch(text, maxMatches) {
		for _, name := range filesNamedBy(m[1], m[2]) {
			for _, dir := range dirs {
				if err := k.followFile(path.Join(dir, name), via, depth); err != nil {
					return err
				}
			}
		}
	}
	for _, m := range shellCalls().FindAllStringSubmatch(text, maxMatches) {
		if err := k.followScript(m[1], dirs, via, depth); err != nil {
			return err
		}
	}
	return nil
}

// filesNamedBy returns the files that a string or an imported Python module in a program may mean.
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
func (k *walk) followPythonModule(name string, dirs []string, via string, depth int) error {
	if files := toolFiles[name]; files != nil {
		k.addChangedMatching(files, via+" → "+name)
	}
	module := strings.ReplaceAll(name, ".", "/")
	for _, dir := range dirs {
		for _, file := range []string{module + ".py", module + "/__main__.py", module + "/__init__.py", "src/" + module + "/__main__.py", "src/" + module + ".py"} {
			if err := k.followFile(path.Join(dir, file), via, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// followGo follows the files of go run and go generate, and the programs in -exec and similar
// options. It does not follow tests and sources of go test and go build.
func (k *walk) followGo(args []string, dirs []string, via string, depth int) error {
	if len(args) == 0 {
		return nil
	}
	switch args[0] {
	case "run", "generate":
		k.addGoFiles(args[1:], dirs, via+" "+args[0])
	case "test", "build", "vet":
		k.addChangedMatching([]string{"go.env", "go.work"}, via+" "+args[0])
		return k.followGoTools(args, dirs, via, depth)
	}
	return nil
}

// addGoFiles records the changed files and packages of go run or go generate.
func (k *walk) addGoFiles(args []string, dirs []string, via string) {
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") || strings.Contains(arg, "@") {
			continue
		}
		for _, dir := range dirs {
			k.addChangedMatching([]string{"/" + path.Join(dir, arg), path.Join(dir, strings.TrimSuffix(arg, "/...")) + "/*.go"}, via)
		}
	}
}

// followGoTools follows the programs in options such as -exec=PROGRAM or -toolexec PROGRAM.
func (k *walk) followGoTools(args []string, dirs []string, via string, depth int) error {
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
			if err := k.followCommand(strings.Fields(value), dirs, via, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// lifecycle lists the scripts that an installation runs.
var lifecycle = []string{"preinstall", "install", "postinstall", "preprepare", "prepare", "postprepare", "prepublish", "prepack", "postpack", "prepublishOnly", "publish", "postpublish"}

// runsLifecycle has the subcommands that run lifecycle scripts.
var runsLifecycle = setOf("ci install i add publish pack rebuild install-test it cit")

// followPackageManager follows npm, yarn, pnpm or bun into package.json.
func (k *walk) followPackageManager(tool string, args []string, dirs []string, via string, depth int) error {
	names, inWorkspaces := []string{}, false
	dirs = slices.Clone(dirs)
	for i, arg := range args {
		flag, value, joined := strings.Cut(arg, "=")
		if !joined && i+1 < len(args) {
			value = args[i+1]
		}
		switch flag {
		case "--prefix", "-C", "--cwd", "--dir":
			dirs = foldersAfterCD(dirs, value)
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
	runsProgram := slices.Contains([]string{"exec", "dlx", "x"}, names[0]) || strings.HasSuffix(tool, "x")
	if runsProgram {
		return nil // followCommand looks at the program among the arguments
	}
	if slices.ContainsFunc(names, func(name string) bool { return runsLifecycle[name] }) {
		names = append(names, lifecycle...)
	}
	for _, dir := range dirs {
		if err := k.followPackageJSON(path.Join(dir, "package.json"), names, via, depth); err != nil {
			return err
		}
	}
	if !inWorkspaces {
		return nil
	}
	for _, p := range k.changed {
		if path.Base(p) != "package.json" {
			continue
		}
		if err := k.followPackageJSON(p, names, via, depth); err != nil {
			return err
		}
	}
	return nil
}

// partSeparator separates a file's name from the part of it that is run.
const partSeparator = "\x00"

// followPackageJSON follows the named scripts of a package.json. It records the text of each script as a part
// of the file, so that a new dependency alone does not count as something that is run.
func (k *walk) followPackageJSON(name string, names []string, via string, depth int) error {
	file, content, err := k.tree.readFollowingLinks(name)
	if err != nil || content == nil {
		return err
	}
	var read struct {
		Scripts map[string]string `json:"scripts"`
	}
	if json.Unmarshal(content, &read) != nil {
		k.addReached(file, via)
		return nil
	}
	for _, called := range names {
		for _, script := range []string{"pre" + called, called, "post" + called} {
			text, found := read.Scripts[script]
			if !found {
				continue
			}
			k.addReached(file+partSeparator+script+"="+text, via+" "+script)
			if err := k.followScript(text, []string{path.Dir(file)}, via+" "+script, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}
