package workflows

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// makeArguments are the arguments of make.
type makeArguments struct {
	files, folders, targets []string
}

// parseMakeArguments returns the files, folders and targets in the arguments of make.
func parseMakeArguments(args []string) (m makeArguments) {
	for i := 0; i < len(args); i++ {
		flag, value, isJoined := strings.Cut(args[i], "=")
		if !isJoined && i+1 < len(args) { // if the flag takes a value
			value = args[i+1]
		}
		switch {
		case !isJoined && flag == "-f", flag == "--file", flag == "--makefile":
			m.files = append(m.files, value)
		case !isJoined && slices.Contains([]string{"-C", "-I", "--include-dir"}, flag), flag == "--directory":
			m.folders = append(m.folders, value)
		case strings.HasPrefix(flag, "-f"): // such as -fMakefile
			m.files = append(m.files, args[i][2:])
			continue
		case strings.HasPrefix(flag, "-C"):
			m.folders = append(m.folders, args[i][2:])
			continue
		case strings.HasPrefix(flag, "-"), isJoined: // another option, or a variable
			continue
		default:
			m.targets = append(m.targets, flag)
			continue
		}
		if !isJoined {
			i++ // the value is the next argument
		}
	}
	return m
}

// followMake follows the arguments of make into its makefile.
func (k *walk) followMake(args []string, c caller) {
	m := parseMakeArguments(args)
	for _, folder := range m.folders {
		c.dirs = foldersAfterCD(c.dirs, folder)
	}
	for _, dir := range c.dirs {
		k.followMakefilesIn(dir, m, c)
	}
}

// followMakefilesIn follows the makefiles of a folder: the named ones, or the first that make looks for.
func (k *walk) followMakefilesIn(dir string, m makeArguments, c caller) {
	names, firstOnly := m.files, len(m.files) == 0
	if firstOnly {
		names = []string{"GNUmakefile", "makefile", "Makefile"}
	}
	for _, name := range names {
		file, content := k.read(path.Join(dir, withoutUnknownStart(name)))
		if content == nil {
			continue
		}
		k.addReached(file, strings.TrimSpace(c.via+" "+strings.ReplaceAll(strings.Join(m.targets, " "), unknown, "…")))
		k.followMakefile(file, string(content), m.targets, c.oneDeeper())
		if firstOnly {
			return
		}
	}
}

// rule is a line with targets in a makefile, which share its prerequisites and its recipe.
type rule struct {
	prerequisites []string
	recipe        strings.Builder
	followed      bool
}

// makefile holds the variables and rules of a makefile.
type makefile struct {
	variables   map[string]string
	rules       map[string][]*rule // of each target
	firstTarget string             // target
	expanded    int                // bytes of targets and prerequisites
}

// maxExpanded limits the bytes of a makefile's targets and prerequisites with their variables expanded. Later
// rules are not read.
const maxExpanded = 4 << 20

var (
	includes = lazyregexp.New(`^\s*(?:-include|sinclude|include)\s+(.+)$`)
	assigns  = lazyregexp.New(`^\s*(?:export\s+|override\s+)*([A-Za-z_][\w.-]*)\s*(?:[:?+]|::)?=\s*(.*)$`)
	shellOf  = lazyregexp.New(`\$[({]shell\s+([^)}]+)[)}]`)
	variable = lazyregexp.New(`\$[({]([A-Za-z_][\w.-]*)[)}]`)
	makeCall = lazyregexp.New(`\$[({]MAKE[)}]`)
)

// followMakefile follows the recipes of targets, or of the first target if there are none. A target
// without a rule stands for all targets, unless it looks like a file. Included files and $(shell …)
// are always followed.
func (k *walk) followMakefile(file, text string, targets []string, c caller) {
	if !k.takeNew("make\x00"+file+"\x00"+strings.Join(targets, "\x00"), c.depth) {
		return
	}
	m := makefile{variables: map[string]string{}, rules: map[string][]*rule{}}
	k.readMakefile(&m, file, text, targets, c)
	if len(targets) == 0 && m.firstTarget != "" {
		targets = []string{m.firstTarget}
	}
	dirs := []string{path.Dir(file)}
	if dirs[0] != "." { // an included makefile runs where make was started
		dirs = append(dirs, ".")
	}
	seen, followsAll := map[string]bool{}, false
	for len(targets) > 0 {
		name := targets[0]
		targets = targets[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		if m.rules[name] == nil && !followsAll && !strings.ContainsAny(name, "/.") {
			followsAll = true
			targets = append(targets, slices.Sorted(maps.Keys(m.rules))...)
		}
		for _, r := range m.rules[name] {
			if r.followed {
				continue
			}
			r.followed = true
			targets = append(targets, r.prerequisites...)
			recipe := expand(makeCall().ReplaceAllString(r.recipe.String(), "make"), m.variables)
			k.followScript(strings.ReplaceAll(recipe, "$$", "$"), c.to(name).oneDeeper(dirs...))
		}
	}
}

// readMakefile reads the variables and rules of a makefile. It follows what make runs to read it.
func (k *walk) readMakefile(m *makefile, file, text string, targets []string, c caller) {
	dir := path.Dir(file)
	var last *rule
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(line, "\t") {
			if last != nil {
				last.recipe.WriteString(strings.TrimLeft(line, "\t@+- ") + "\n")
			}
			continue
		}
		for _, found := range shellOf().FindAllStringSubmatch(line, 20) {
			k.followScript(found[1], c.to(file).oneDeeper(dir))
		}
		if found := includes().FindStringSubmatch(line); found != nil {
			for word := range strings.FieldsSeq(expand(found[1], m.variables)) {
				k.followInclude(word, dir, targets, c.to("include"))
			}
		} else if found := assigns().FindStringSubmatch(line); found != nil {
			m.assign(found[1], strings.TrimSpace(found[2]))
			if found[1] == "SHELL" {
				k.followCommand(strings.Fields(found[2]), c.to("SHELL").oneDeeper(dir))
			}
		} else if r := m.addRule(line); r != nil {
			last = r
		}
	}
}

// assign sets a variable, up to a number of variables.
func (m *makefile) assign(name, value string) {
	const mostVariables = 1000
	if len(m.variables) < mostVariables {
		m.variables[name] = value
	}
}

// addRule adds the rule of a line, such as "target: prerequisite; command". It returns nil if the
// line has none, or if the makefile is too long.
func (m *makefile) addRule(line string) *rule {
	names, needs, hasColon := strings.Cut(line, ":")
	isComment := strings.HasPrefix(strings.TrimSpace(line), "#")
	if !hasColon || names == "" || isComment || m.expanded >= maxExpanded {
		return nil
	}
	needs, recipe, _ := strings.Cut(strings.TrimLeft(needs, ":"), ";")
	names, needs = expand(names, m.variables), expand(needs, m.variables)
	m.expanded += len(names) + len(needs)
	r := &rule{prerequisites: strings.Fields(needs)}
	r.recipe.WriteString(recipe + "\n")
	for name := range strings.FieldsSeq(names) {
		m.rules[name] = append(m.rules[name], r)
		if m.firstTarget == "" && !strings.HasPrefix(name, ".") {
			m.firstTarget = name
		}
	}
	return r
}

// followInclude follows a file that a makefile includes. The name may contain wildcards or variables.
func (k *walk) followInclude(name, dir string, targets []string, c caller) {
	if strings.ContainsAny(name, "*?$") {
		pattern := variable().ReplaceAllString(name, "*")
		k.addChangedMatching([]string{path.Join("/", dir, pattern), path.Join(dir, pattern)}, c.via)
		return
	}
	if file, content := k.read(path.Join(dir, name)); content != nil {
		k.addReached(file, c.via)
		k.followMakefile(file, string(content), targets, c.oneDeeper())
	}
}

// expand replaces variables by their values, up to a few levels deep.
func expand(text string, values map[string]string) string {
	const levels, longest = 3, 64 << 10
	for range levels {
		if !strings.Contains(text, "$") || len(text) > longest {
			break
		}
		text = variable().ReplaceAllStringFunc(text, func(s string) string {
			if value, found := values[s[2:len(s)-1]]; found {
				return value
			}
			return s
		})
	}
	return text
}
