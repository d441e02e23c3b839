package editformat

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

const maxPath = 250

// wellKnown lists file names without an extension.
var wellKnown = []string{
	"Makefile", "Dockerfile", "Containerfile", "Gemfile", "Rakefile", "Procfile", "Jenkinsfile", "Vagrantfile", "Justfile", "Brewfile",
	"LICENSE", "NOTICE", "README", "CHANGELOG", "AUTHORS", "CODEOWNERS", "VERSION", "BUILD", "WORKSPACE",
}

// pathIn returns the path that fills a line, without "#", "**", backticks and a colon. Only a path
// in backticks may contain blanks.
func pathIn(line string) string {
	if len(line) > 2*maxPath {
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

// cleaned returns the canonical spelling of a path, or "" for anything else.
func cleaned(name string) string {
	if name == "" || len(name) > maxPath || strings.ContainsFunc(name, unicode.IsControl) {
		return ""
	}
	return path.Clean(name)
}

// tag matches tags used instead of a fence.
var tag = regexp.MustCompile(`^<(source|sourcecode|code|codename|pre)>\w*$`)

// pathAbove returns the path above a line. Fences and one blank line may be between.
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
	if len(name) > maxPath || strings.ContainsFunc(name, func(r rune) bool { return r != '_' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		return ""
	}
	return name
}

// isProse reports whether a file is text for people, which may contain any example.
func isProse(name string) bool {
	return slices.Contains([]string{"", ".txt", ".md", ".mdx", ".markdown", ".rst", ".adoc"}, strings.ToLower(path.Ext(name)))
}

// isScript reports whether a shell fence below a path is that file instead of commands.
func isScript(language, name string) bool {
	return language != "read" && language != "plan" && language != "console" &&
		slices.Contains([]string{"", ".sh", ".bash", ".zsh", ".bats", ".envrc"}, path.Ext(name))
}
