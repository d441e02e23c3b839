package workflows

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// makeTargets follows the arguments of make into its makefile.
func (k *walk) makeTargets(args []string, dirs []string, via string, depth int) error {
	files, targets := []string{}, []string{}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		next := ""
		if i+1 < len(args) {
			next = args[i+1]
		}
		switch {
		case arg == "-f" || arg == "--file" || arg == "--makefile":
			files = append(files, next)
			i++
		case arg == "-C" || arg == "--directory" || arg == "-I" || arg == "--include-dir":
			dirs = within(dirs, next)
			i++
		case strings.HasPrefix(arg, "--file="), strings.HasPrefix(arg, "--makefile="), strings.HasPrefix(arg, "--directory="):
			flag, value, _ := strings.Cut(arg, "=")
			if flag == "--directory" {
				dirs = within(dirs, value)
			} else {
				files = append(files, value)
			}
		case strings.HasPrefix(arg, "-f"):
			files = append(files, arg[2:])
		case strings.HasPrefix(arg, "-C"):
			dirs = within(dirs, arg[2:])
		case strings.HasPrefix(arg, "-"), strings.Contains(arg, "="):
		default:
			targets = append(targets, arg)
		}
	}
	for _, dir := range dirs {
		names := files
		if len(names) == 0 {
			names = []string{"GNUmakefile", "makefile", "Makefile"}
		}
		for _, name := range names {
			file, content, err := k.tree.file(path.Join(dir, known(name)))
			if err != nil {
				return err
			}
			if content == nil {
				continue
			}
			k.reach(file, strings.TrimSpace(via+" "+strings.ReplaceAll(strings.Join(targets, " "), unknown, "…")))
			if err := k.makefile(file, string(content), targets, via, depth+1); err != nil {
				return err
			}
			if len(files) == 0 {
				break
			}
		}
	}
	return nil
}

// rule is a line with targets in a makefile, which share its prerequisites and its recipe.
type rule struct {
	needs    []string
	recipe   strings.Builder
	followed bool
}

// makefile holds the variables and rules of a makefile.
type makefile struct {
	values   map[string]string
	rules    map[string][]*rule // of each target
	first    string             // target
	expanded int                // bytes of targets and prerequisites
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

// makefile follows the recipes of targets, or of the first target if there are none. A target
// without a rule stands for all targets, unless it looks like a file. Included files and $(shell …)
// are always followed.
func (k *walk) makefile(file, text string, targets []string, via string, depth int) error {
	if !k.again("make\x00"+file+"\x00"+strings.Join(targets, "\x00"), depth) {
		return nil
	}
	m := makefile{values: map[string]string{}, rules: map[string][]*rule{}}
	if err := k.readMakefile(&m, file, text, targets, via, depth); err != nil {
		return err
	}
	if len(targets) == 0 && m.first != "" {
		targets = []string{m.first}
	}
	seen, all := map[string]bool{}, false
	for len(targets) > 0 {
		name := targets[0]
		targets = targets[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		if m.rules[name] == nil && !all && !strings.ContainsAny(name, "/.") {
			all = true
			targets = append(targets, slices.Sorted(maps.Keys(m.rules))...)
		}
		for _, r := range m.rules[name] {
			if r.followed {
				continue
			}
			r.followed = true
			targets = append(targets, r.needs...)
			if err := k.recipe(file, r.recipe.String(), m.values, via+" → "+name, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

// readMakefile reads the variables and rules of a makefile. It follows what make runs to read it.
func (k *walk) readMakefile(m *makefile, file, text string, targets []string, via string, depth int) error {
	dir := path.Dir(file)
	var at *rule
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(line, "\t") {
			if at != nil {
				at.recipe.WriteString(strings.TrimLeft(line, "\t@+- ") + "\n")
			}
			continue
		}
		for _, found := range shellOf().FindAllStringSubmatch(line, 20) {
			if err := k.script(found[1], []string{dir}, via+" → "+file, depth+1); err != nil {
				return err
			}
		}
		if found := includes().FindStringSubmatch(line); found != nil {
			for word := range strings.FieldsSeq(expand(found[1], m.values)) {
				if err := k.included(word, dir, targets, via+" → include", depth); err != nil {
					return err
				}
			}
			continue
		}
		if found := assigns().FindStringSubmatch(line); found != nil {
			if len(m.values) < 1000 {
				m.values[found[1]] = strings.TrimSpace(found[2])
			}
			if found[1] == "SHELL" {
				if err := k.command(strings.Fields(found[2]), []string{dir}, via+" → SHELL", depth+1); err != nil {
					return err
				}
			}
			continue
		}
		if names, needs, is := strings.Cut(line, ":"); is && names != "" && m.expanded < maxExpanded && !strings.HasPrefix(strings.TrimSpace(line), "#") {
			needs, recipe, _ := strings.Cut(strings.TrimLeft(needs, ":"), ";")
			names, needs = expand(names, m.values), expand(needs, m.values)
			m.expanded += len(names) + len(needs)
			at = &rule{needs: strings.Fields(needs)}
			at.recipe.WriteString(recipe + "\n")
			for name := range strings.FieldsSeq(names) {
				m.rules[name] = append(m.rules[name], at)
				if m.first == "" && !strings.HasPrefix(name, ".") {
					m.first = name
				}
			}
		}
	}
	return nil
}

// recipe follows the commands of a rule.
func (k *walk) recipe(file, text string, values map[string]string, via string, depth int) error {
	text = makeCall().ReplaceAllString(text, "make")
	text = strings.ReplaceAll(expand(text, values), "$$", "$")
	dirs := []string{path.Dir(file)}
	if dirs[0] != "." { // an included makefile runs where make was started
		dirs = append(dirs, ".")
	}
	return k.script(text, dirs, via, depth+1)
}

// included follows a file that a makefile includes. The name may contain wildcards or variables.
func (k *walk) included(name, dir string, targets []string, via string, depth int) error {
	if strings.ContainsAny(name, "*?$") {
		k.reachChanged([]string{path.Join("/", dir, variable().ReplaceAllString(name, "*")), path.Join(dir, variable().ReplaceAllString(name, "*"))}, via)
		return nil
	}
	file, content, err := k.tree.file(path.Join(dir, name))
	if err != nil || content == nil {
		return err
	}
	k.reach(file, via)
	return k.makefile(file, string(content), targets, via, depth+1)
}

// expand replaces variables by their values, up to a few levels deep.
func expand(text string, values map[string]string) string {
	const levels, longest = 3, 64 << 10
	for range levels {
		if !strings.Contains(text, "$") || len(text) > longest {
			break
		}
		text = variable().ReplaceAllStringFunc(text, func(s string) string {
			if value, is := values[s[2:len(s)-1]]; is {
				return value
			}
			return s
		})
	}
	return text
}
