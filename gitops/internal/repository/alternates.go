package repository

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
)

// ObjectFolders returns the git folders whose objects a repository has: its
// own, and those that objects/info/alternates names, and theirs.
func ObjectFolders(commonDir string) ([]string, error) {
	const deepest = 5 // as in git
	list := []string{commonDir}
	depth := map[string]int{commonDir: 0}
	for i := 0; i < len(list); i++ {
		objects := filepath.Join(list[i], "objects")
		data, err := regularfile.Read(filepath.Join(objects, "info", "alternates"), regularfile.Small)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the alternates of %s: %w", objects, err)
		}
		for line := range strings.SplitSeq(string(data), "\n") {
			if line == "" || line[0] == '#' {
				continue
			}
			alternate := absolute(objects, line)
			if filepath.Base(alternate) != "objects" || strings.HasPrefix(line, `"`) {
				return nil, &UnsupportedError{
					Feature: fmt.Sprintf("the alternate object folder %q", line),
					Remedy:  "run `git repack -a -d` and remove objects/info/alternates",
				}
			}
			dir := filepath.Dir(alternate)
			if _, seen := depth[dir]; !seen && depth[list[i]] < deepest && isDir(alternate) {
				depth[dir] = depth[list[i]] + 1
				list = append(list, dir)
			}
		}
	}
	return list, nil
}

// QuoteAlternate quotes a path for a list that is separated by colons.
func QuoteAlternate(path string) string {
	if strings.ContainsAny(path, ":\"\n") {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
	}
	return path
}
