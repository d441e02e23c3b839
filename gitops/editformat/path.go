package editformat

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

const longestPath = 250

// wellKnown are files whose names alone don't look like names of files.
var wellKnown = []string{
	"Makefile", "Dockerfile", "Containerfile", "Gemfile", "Rakefile", "Procfile", "Jenkinsfile", "Vagrantfile", "Justfile", "Brewfile",
	"LICENSE", "NOTICE", "README", "CHANGELOG", "AUTHORS", "CODEOWNERS", "VERSION", "BUILD", "WORKSPACE",
}

// pathIn is the path that is all of a line, with what models put around it: "#",
// "**", backticks, a colon. Blanks are of a path only between backticks.
func pathIn(line string) string {
	if len(line) > 2*longestPath {
		return ""
	}
	name := strings.TrimLeft(strings.TrimSpace(line), "#")
	quoted := false
	for {
		inner := strings.TrimSpace(strings.TrimSuffix(name, ":"))
		for _, around := range []string{"**", "`"} {
			if bare, ok := strings.CutPrefix(inner, around); ok && len(bare) > len(around) && strings.HasSuffix(bare, around) {
				inner, quoted = strings.TrimSuffix(bare, around), quoted || around == "`"
			}
		}
		if inner == name {
			break
		}
		name = inner
	}
	if !quoted && strings.ContainsFunc(name, unicode.IsSpace) || !looksLikePath(name) {
		return ""
	}
	return cleaned(name)
}

func looksLikePath(name string) bool {
	if slices.Contains(wellKnown, name) {
		return true
	}
	return strings.ContainsAny(name, "./") && !strings.HasSuffix(name, ".") && !strings.HasSuffix(name, "/") &&
		!strings.Contains(name, "://") && !strings.ContainsAny(name, "`*?<>|\"\\") && len(strings.Trim(name, "./")) > 0
}

// cleaned is a path in the one spelling that names of an answer are compared in;
// nothing where no path can be meant.
func cleaned(name string) string {
	if name == "" || len(name) > longestPath || strings.ContainsFunc(name, unicode.IsControl) {
		return ""
	}
	return path.Clean(name)
}

// tag is what some write in the place of a fence.
var tag = regexp.MustCompile(`^<(source|sourcecode|code|codename|pre)>\w*$`)

// pathAbove is the path that stands above a line. Fences may stand between, and a
// blank line.
func (p *parser) pathAbove(line int) string {
	blanks := 0
	for i := line - 1; i >= max(0, line-4); i-- {
		f, isFence := opened(p.lines[i])
		switch {
		case strings.TrimSpace(p.lines[i]) == "":
			if blanks++; blanks > 1 {
				return ""
			}
		case !isFence && !tag.MatchString(p.lines[i]):
			return pathIn(p.lines[i])
		case f.path != "":
			return f.path
		}
	}
	return ""
}

// bareName is the word alone above a fence, with nothing or a blank line above it.
func (p *parser) bareName() string {
	if p.at == 0 || p.at > 1 && strings.TrimSpace(p.lines[p.at-2]) != "" {
		return ""
	}
	name := p.lines[p.at-1]
	if len(name) > longestPath || strings.ContainsFunc(name, func(r rune) bool { return r != '_' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		return ""
	}
	return name
}

// isProse reports whether a file is one of text for people, which may hold
// examples of anything.
func isProse(name string) bool {
	return slices.Contains([]string{"", ".txt", ".md", ".mdx", ".markdown", ".rst", ".adoc"}, strings.ToLower(path.Ext(name)))
}

// isScript reports whether a fence of a shell that a path stands above is that
// file, and no command.
func isScript(language, name string) bool {
	return language != "read" && language != "plan" && language != "console" &&
		slices.Contains([]string{"", ".sh", ".bash", ".zsh", ".bats", ".envrc"}, path.Ext(name))
}
