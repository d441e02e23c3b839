package job

import (
	"errors"
	"io/fs"
	"path"
	"strings"
	"unicode"

	"github.com/agent-ci/agent-ci/policy/pathname"
	"github.com/agent-ci/agent-ci/runner/task/form"
)

// pathPart matches one path segment except . and .., in three alternatives: no leading dot, one, or
// two. A JSON Schema pattern has no other way to exclude the two.
const (
	inPath   = `[^/\\\x00-\x1f\x7f-\x9f]`
	pathPart = `(?:[^/.\\\x00-\x1f\x7f-\x9f]` + inPath + `*|\.[^/.\\\x00-\x1f\x7f-\x9f]` + inPath + `*|\.\.` + inPath + `+)`
)

// checkImage requires an https address or a path relative to the job file.
func checkImage(s string) error {
	if strings.HasPrefix(s, "https://") {
		return form.FilledLine.Check(s)
	}
	return form.RelativeFile.Check(s)
}

// checkRulesFile requires a path without .., absolute or below the repository's root.
func checkRulesFile(s string) error {
	if below := strings.TrimPrefix(s, "/"); !fs.ValidPath(below) || below == "." || strings.Contains(s, `\`) {
		return errors.New("must be the path of a file without .., below the repository's root or absolute")
	}
	return form.FilledLine.Check(s)
}

// checkSkillFolder rejects the repository's root: skill folders are protected from changes.
func checkSkillFolder(s string) error {
	if s == "." {
		return errors.New("must be a folder below the repository's root, such as tools/skills")
	}
	return form.Folder.Check(s)
}

// checkProtect checks an entry of policy.protect.
func checkProtect(s string) error { return checkPattern(strings.TrimPrefix(s, openPrefix)) }

// checkPattern requires a glob for paths below the repository's root that can match some path.
func checkPattern(s string) error {
	if _, err := path.Match(s, ""); err != nil {
		return errors.New("must be a pattern of paths: a bracket or a backslash in it is not complete")
	}
	if strings.HasPrefix(s, "/") || strings.HasPrefix(s, "!") {
		return errors.New("must be a pattern of paths below the repository's root, without / or ! in front")
	}
	switch err := pathname.CheckGlob(s); {
	case errors.Is(err, pathname.ErrAlternatives):
		return errors.New("must be a pattern of paths: its braces stand for too many alternatives")
	case err != nil:
		return errors.New("must be a pattern of paths: a brace in it is not complete")
	}
	isUnclean := s != "" && path.Clean(s) != s
	if isUnclean || s == "." || s == ".." {
		return errors.New("must be a pattern that a path can match: without ./, ../ and //, and not with / at its end; what is in a folder is folder/**")
	}
	return form.FilledLine.Check(s)
}

// checkHeaderValue rejects control characters except tab: they could end the header (RFC 9110, 5.5).
func checkHeaderValue(s string) error {
	if strings.ContainsFunc(s, func(r rune) bool { return r != '\t' && unicode.IsControl(r) }) {
		return errors.New("must be one line without control characters")
	}
	return nil
}

func checkAbsoluteFile(s string) error {
	if !path.IsAbs(s) {
		return errors.New("must be an absolute path")
	}
	return form.FilledLine.Check(s)
}
