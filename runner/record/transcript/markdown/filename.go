package markdown

import (
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/policy/clip"
)

// FileName returns a path for people. It returns a Go string literal if the path has invisible characters,
// terminal controls or invalid UTF-8, or looks quoted. Different paths have different results.
func FileName(path string) string {
	quoted := strconv.Quote(path)
	needsNoEscape := quoted == `"`+path+`"` && !strings.ContainsFunc(path, Hidden)
	if needsNoEscape && path != "" && path == strings.TrimSpace(path) {
		return path
	}
	var b strings.Builder
	for _, c := range quoted {
		if Hidden(c) {
			b.WriteString(strings.Trim(strconv.QuoteToASCII(string(c)), `"`))
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}

// FileNames applies FileName to each path.
func FileNames(paths []string) []string {
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = FileName(path)
	}
	return names
}

// SomeFiles returns the first few paths, for a message.
func SomeFiles(paths []string) string {
	return clip.List(FileNames(paths), 3)
}
