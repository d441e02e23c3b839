package editformat

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

const maxPath = 250

// wellKnown lists file names that are recognized as paths although they have no dot or slash.
var wellKnown = []string{
	"Makefile", "Dockerfile", "Containerfile", "Gemfile", "Rakefile", "Procfile", "Jenkinsfile", "Vagrantfile", "Justfile", "Brewfile",
	"LICENSE", "NOTICE", "README", "CHANGELOG", "AUTHORS", "CODEOWNERS", "VERSION", "BUILD", "WORKSPACE",
}

// pathIn returns the path in a line that contains nothing else except "#", "**", backticks and a
// colon: "a b.go" for "## **`a b.go`**:". It returns "" for other lines. A path with blanks must be in
// backticks.
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
	hasBareBlank := !quoted && strings.ContainsFunc(name, unicode.IsSpace)
	if hasBareBlank || !looksLikePath(name) {
		return ""
	}
	return cleanPath(name)
}

func looksLikePath(name string) bool {
	if slices.Contains(wellKnown, name) {
		return true
	}
	endsSentence := strings.HasSuffix(name, ".")
	isFolder := strings.HasSuffix(name, "/")
	isURL := strings.Contains(name, "://")
	hasForbidden := strings.ContainsAny(name, "`*?<>|\"\\")
	hasName := strings.Trim(name, "./") != ""
	if endsSentence || isFolder || isURL || hasForbidden {
		return false
	}
	return strings.ContainsAny(name, "./") && hasName
}

// cleanPath returns the canonical spelling of a path, or "" for anything else.
func cleanPath(name string) string {
	if name == "" || len(name) > maxPath || strings.ContainsFunc(name, unicode.IsControl) {
		return ""
	}
	return path.Clean(name)
}

// tag matches tags that some models write in place of a fence.
var tag = lazyregexp.New(`^<(source|sourcecode|code|codename|pre)>\w*$`)

// pathAbove returns the path above a line, or "". Fence lines and one blank line may be between
// them.
func (p *parser) pathAbove(line int) string {
	blanks := 0
	for i := line - 1; i >= max(0, line-4); i-- {
		f, isFence := parseFence(p.lines[i])
		switch {
		case strings.TrimSpace(p.lines[i]) == "":
			if blanks++; blanks > 1 {
				return ""
			}
		case !isFence && !tag().MatchString(p.lines[i]):
			return pathIn(p.lines[i])
		case f.path != "":
			return f.path
		}
	}
	return ""
}

// bareName returns the word above a fence, if it is alone on its line and the line above is blank
// or missing. Otherwise it returns "".
func (p *parser) bareName() string {
	isBelowText := p.at > 1 && strings.TrimSpace(p.lines[p.at-2]) != ""
	if p.at == 0 || isBelowText {
		return ""
	}
	name := p.lines[p.at-1]
	isUnusual := func(r rune) bool { return r != '_' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	if len(name) > maxPath || strings.ContainsFunc(name, isUnusual) {
		return ""
	}
	return name
}

// isProse reports whether a file contains text for people, in which any example may occur.
func isProse(name string) bool {
	return slices.Contains([]string{"", ".txt", ".md", ".mdx", ".markdown", ".rst", ".adoc"}, strings.ToLower(path.Ext(name)))
}

// isScript reports whether a shell fence below a path is the content of that file, instead of
// commands to run.
func isScript(language, name string) bool {
	if slices.Contains([]string{"read", "plan", "console"}, language) {
		return false
	}
	return slices.Contains([]string{"", ".sh", ".bash", ".zsh", ".bats", ".envrc"}, path.Ext(name))
}
