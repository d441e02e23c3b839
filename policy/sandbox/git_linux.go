package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing/format/config"
)

// gitState is what of a checkout's git folders commands may read only, and
// what of it they must not see.
type gitState struct {
	folders     []string          // the gitdir, and the one that it shares with other worktrees
	cleaned     map[string]string // configuration with credentials, and a copy without them
	secretFiles []string          // files that the configuration includes or asks for credentials
}

// readGitState looks at the .git of a workspace. Copies of configuration that
// must be cleaned are put into scratch.
func readGitState(workspace, scratch string) (gitState, error) {
	s := gitState{cleaned: make(map[string]string)}
	folders, err := gitFolders(workspace)
	if err != nil || len(folders) == 0 {
		return s, err
	}
	s.folders = folders
	gitDir, commonDir := folders[0], folders[len(folders)-1]
	if info, err := os.Lstat(gitDir); err == nil && !info.IsDir() {
		gitDir = folders[1]
	}
	return s, s.clean(configFiles(gitDir, commonDir), scratch)
}

// configFiles are the configurations of the repository and of its submodules.
func configFiles(gitDir, commonDir string) []string {
	files := []string{filepath.Join(commonDir, "config"), filepath.Join(gitDir, "config.worktree"), filepath.Join(commonDir, "config.worktree")}
	_ = filepath.WalkDir(filepath.Join(commonDir, "modules"), func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case entry.IsDir() && (entry.Name() == "objects" || entry.Name() == "refs" || entry.Name() == "logs"):
			return fs.SkipDir
		case entry.Type().IsRegular() && (entry.Name() == "config" || entry.Name() == "config.worktree"):
			files = append(files, path)
		}
		return nil
	})
	return files
}

func (s *gitState) clean(files []string, scratch string) error {
	for i, file := range files {
		raw, err := readConfiguration(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read git configuration: %w", err)
		}
		if len(raw) > configLimit {
			return fmt.Errorf("%s has more than %d bytes", file, configLimit)
		}
		cleaned, named, err := withoutCredentials(raw)
		if err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		for _, path := range named {
			s.secretFiles = append(s.secretFiles, besides(file, path))
		}
		if cleaned == nil {
			continue
		}
		copied := filepath.Join(scratch, fmt.Sprintf("config-%d", i))
		if err := os.MkdirAll(scratch, 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(copied, cleaned, 0o600); err != nil {
			return err
		}
		s.cleaned[file] = copied
	}
	return nil
}

// readConfiguration reads a little more than a configuration may have. Where
// Landlock is alone, commands can put a pipe there, or a file that says that it
// has terabytes.
func readConfiguration(file string) ([]byte, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s is no regular file", file))
	}
	return io.ReadAll(io.LimitReader(f, configLimit+1))
}

// besides is a path of a configuration file, which may start at the user's
// folder or at the file's.
func besides(file, path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}

// withoutCredentials is a git configuration without the keys that hold
// credentials, run helpers that know them, or include other files, which may
// hold some; nil when there are none. named are the files that it includes and
// the stores of helpers.
func withoutCredentials(raw []byte) (cleaned []byte, named []string, err error) {
	c := config.New()
	if err := config.NewDecoder(bytes.NewReader(raw)).Decode(c); err != nil {
		return nil, nil, err
	}
	changed := false
	for _, section := range c.Sections {
		for _, options := range optionLists(section) {
			kept := slices.DeleteFunc(slices.Clone(*options), func(o *config.Option) bool {
				if isInclude(section) {
					named = append(named, o.Value)
				}
				if store := storeFile.FindStringSubmatch(o.Value); section.IsName("credential") && store != nil {
					named = append(named, store[1])
				}
				return isInclude(section) || holdsCredential(section.Name, o)
			})
			for _, o := range kept {
				if plain, ok := withoutUserinfo(o.Value); ok {
					o.Value, changed = plain, true
				}
			}
			changed = changed || len(kept) < len(*options)
			*options = kept
		}
		for _, sub := range section.Subsections {
			if plain, ok := withoutUserinfo(sub.Name); ok {
				sub.Name, changed = plain, true
			}
		}
	}
	if !changed {
		return nil, named, nil
	}
	b := bytes.NewBuffer([]byte{}) // not nil when nothing is left
	err = config.NewEncoder(b).Encode(c)
	return b.Bytes(), named, err
}

// storeFile is the file of a credential helper (git-credential-store(1)).
var storeFile = regexp.MustCompile(`--file[= ]+(\S+)`)

// readUserGitState looks at the configurations of git that are not a
// repository's. One that cannot be read is taken for secret as a whole.
func readUserGitState(files []string, scratch string) (gitState, error) {
	s := gitState{cleaned: make(map[string]string)}
	for i, file := range files {
		err := s.clean([]string{file}, filepath.Join(scratch, fmt.Sprintf("user-%d", i)))
		if errors.As(err, new(*fs.PathError)) && !errors.Is(err, fs.ErrPermission) {
			return s, err
		}
		if err != nil {
			s.secretFiles = append(s.secretFiles, file)
		}
	}
	return s, nil
}

func optionLists(section *config.Section) []*config.Options {
	lists := []*config.Options{&section.Options}
	for _, sub := range section.Subsections {
		lists = append(lists, &sub.Options)
	}
	return lists
}

func isInclude(section *config.Section) bool {
	return section.IsName("include") || section.IsName("includeif")
}

func holdsCredential(section string, o *config.Option) bool {
	key := strings.ToLower(o.Key)
	switch strings.ToLower(section) {
	case "credential":
		return true
	case "http":
		return slices.Contains([]string{"extraheader", "cookiefile", "sslkey", "sslcert", "proxysslkey"}, key)
	}
	if key == "proxy" && strings.Contains(o.Value, "@") && !strings.Contains(o.Value, "://") {
		return true // user:password@host, which is no URL
	}
	return key == "pass" || slices.ContainsFunc(credentialWords, func(word string) bool { return strings.Contains(key, word) })
}

// credentialWords give away a key whose value is a credential.
var credentialWords = []string{"password", "token", "secret", "apikey", "smtppass"}

// withoutUserinfo takes name and password out of a URL.
func withoutUserinfo(text string) (string, bool) {
	u, err := url.Parse(text)
	if err != nil || u.User == nil || u.Host == "" {
		return "", false
	}
	if _, secret := u.User.Password(); !secret && u.Scheme != "https" && u.Scheme != "http" {
		return "", false // git@host is no secret
	}
	u.User = nil
	return u.String(), true
}

// GitCredentials names the files of a workspace's git configuration that hold
// credentials, and those that it includes or that hold some for it. Copies
// without them go to scratch.
func GitCredentials(workspace, scratch string) ([]string, error) {
	state, err := readGitState(workspace, scratch)
	if err != nil {
		return nil, err
	}
	files := slices.Collect(maps.Keys(state.cleaned))
	for _, file := range state.secretFiles {
		files = append(files, existingForms(file)...)
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}
