package guard

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/config"

	"github.com/agent-ci/agent-ci/gitops/internal/regularfile"
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// Credentials lists the files with credentials in the git configuration of a work tree. It includes
// files that the configuration includes, and stores of credential helpers.
func Credentials(root string) ([]string, error) {
	l, err := layoutOf(root)
	if err != nil {
		return nil, err
	}
	c := configurations{cleaned: make(map[string][]byte)}
	if err := c.read(l.configurations()...); err != nil {
		return nil, err
	}
	files := slices.Collect(maps.Keys(c.cleaned))
	for _, file := range c.secret {
		if real, err := filepath.EvalSymlinks(file); err == nil {
			files = append(files, real)
		}
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

// configurations collects the results of several configuration files.
type configurations struct {
	cleaned map[string][]byte // by file with credentials: its content without them
	secret  []string          // included files, stores of credential helpers, and unreadable files
}

// read reads configuration files and adds the results to c. It skips a missing file. It returns an error
// for a file that is unreadable, invalid or too large.
func (c *configurations) read(files ...string) error {
	for _, file := range files {
		raw, err := readSmall(file)
		if regularfile.Absent(err) { // HOME may be /dev/null
			continue
		}
		if err != nil {
			return fmt.Errorf("read git configuration: %w", err)
		}
		withoutSecrets, included, err := withoutCredentials(raw)
		if err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		for _, path := range included {
			c.secret = append(c.secret, resolveIncluded(file, path))
		}
		if withoutSecrets != nil { // nil: the file has nothing to remove
			c.cleaned[file] = withoutSecrets
		}
	}
	return nil
}

// readOrHide reads configuration files and adds the results to c. It treats a file that is invalid, too large
// or not permitted as secret. It returns any other error of the file system.
func (c *configurations) readOrHide(files ...string) error {
	for _, file := range files {
		err := c.read(file)
		if errors.As(err, new(*fs.PathError)) && !errors.Is(err, fs.ErrPermission) {
			return err
		}
		if err != nil {
			c.secret = append(c.secret, file)
		}
	}
	return nil
}

// userConfigurations lists the git configuration files outside the repository, the system's first. homes
// lists the user's home folders.
func (c Checkout) userConfigurations(homes []string) []string {
	files := []string{systemConfiguration}
	for _, home := range homes {
		files = append(files, filepath.Join(home, ".gitconfig"), filepath.Join(home, ".config/git/config"))
	}
	if dir := c.variable("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		files = append(files, filepath.Join(dir, "git/config"))
	}
	for _, name := range []string{"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"} {
		if file := c.variable(name); filepath.IsAbs(file) && file != os.DevNull {
			files = append(files, file)
		}
	}
	return files
}

const systemConfiguration = "/etc/gitconfig"

// variables returns environment variables that point git to other configuration files. Without
// them, git would stop at files that commands may not read. user has the results of userConfigurations.
func (c Checkout) variables(user *configurations) map[string]string {
	leading := make(map[string]string)
	for name, files := range map[string][]string{
		"GIT_CONFIG_SYSTEM": {systemConfiguration},
		"GIT_CONFIG_GLOBAL": {
			filepath.Join(c.Home, ".gitconfig"), filepath.Join(c.variable("XDG_CONFIG_HOME"), "git/config"), filepath.Join(c.Home, ".config/git/config"),
		},
	} {
		for _, file := range files {
			if _, cleaned := user.cleaned[file]; cleaned {
				leading[name] = file
				break
			}
			if slices.Contains(user.secret, file) {
				leading[name] = os.DevNull
				break
			}
		}
	}
	return leading
}

// variable returns the last value of a variable in the environment, or "" if it is not set.
func (c Checkout) variable(name string) string {
	for _, v := range slices.Backward(c.Environ) {
		if value, is := strings.CutPrefix(v, name+"="); is {
			return value
		}
	}
	return ""
}

// resolveIncluded returns the absolute path for a path in a configuration file. A relative one is
// relative to that file, "~/" is the home folder.
func resolveIncluded(file, path string) string {
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

// withoutCredentials returns a git configuration without settings that contain credentials, run
// credential helpers or include files. cleaned is nil if there are none. named lists the included
// files and the stores of helpers.
func withoutCredentials(raw []byte) (cleaned []byte, named []string, err error) {
	c := config.New()
	if err := config.NewDecoder(bytes.NewReader(raw)).Decode(c); err != nil {
		return nil, nil, err
	}
	changed := false
	for _, section := range c.Sections {
		for _, options := range optionLists(section) {
			found, removed := cleanOptions(section, options)
			named, changed = append(named, found...), changed || removed
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
	b := bytes.NewBuffer([]byte{}) // not nil, even if no setting is left
	err = config.NewEncoder(b).Encode(c)
	return b.Bytes(), named, err
}

// cleanOptions is withoutCredentials for the settings of a section or of one of its subsections.
func cleanOptions(section *config.Section, options *config.Options) (named []string, changed bool) {
	kept := slices.DeleteFunc(slices.Clone(*options), func(o *config.Option) bool {
		if isInclude(section) {
			named = append(named, o.Value)
		}
		if store := storeFile().FindStringSubmatch(o.Value); section.IsName("credential") && store != nil {
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
	return named, changed
}

// storeFile matches the file of git-credential-store(1) in a helper command.
var storeFile = lazyregexp.New(`--file[= ]+(\S+)`)

// optionLists returns the settings of a section and of its subsections.
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

// holdsCredential reports whether an option of a configuration section may hold a credential.
func holdsCredential(section string, o *config.Option) bool {
	key := strings.ToLower(o.Key)
	switch strings.ToLower(section) {
	case "credential":
		return true
	case "http":
		return slices.Contains([]string{"extraheader", "cookiefile", "sslkey", "sslcert", "proxysslkey"}, key)
	}
	if key == "proxy" && strings.Contains(o.Value, "@") && !strings.Contains(o.Value, "://") {
		return true // user:password@host, which url.Parse does not understand
	}
	return key == "pass" || slices.ContainsFunc(credentialWords, func(word string) bool { return strings.Contains(key, word) })
}

// credentialWords lists words in the names of settings that contain credentials.
var credentialWords = []string{"password", "token", "secret", "apikey", "smtppass"}

// withoutUserinfo returns a URL without user and password. hadSecret is false if there is nothing secret to
// remove.
func withoutUserinfo(text string) (plain string, hadSecret bool) {
	u, err := url.Parse(text)
	if err != nil || u.User == nil || u.Host == "" {
		return "", false
	}
	_, hasPassword := u.User.Password()
	isHTTP := u.Scheme == "https" || u.Scheme == "http"
	if !hasPassword && !isHTTP {
		return "", false // ssh needs a user, who is no secret
	}
	u.User = nil
	return u.String(), true
}
