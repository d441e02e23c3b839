package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

// landlockAlone are the grants where there are no namespaces: what is not
// granted is refused, so that what must not be read is left out folder by
// folder around it.
func (p *plan) landlockAlone(abi int) (*stage.Landlock, error) {
	if err := p.mustBeSeparable(); err != nil {
		return nil, err
	}
	l := &stage.Landlock{Config: abi, DenyNet: p.options.Network != NetworkFull}
	denied := append([]string{"/tmp", "/var/tmp", "/run", "/var/run", "/dev", "/sys/kernel/debug", "/sys/kernel/tracing", "/sys/fs/bpf"}, p.hidden...)
	for file := range p.userGit.cleaned {
		denied = append(denied, existingForms(file)...)
	}
	l.Read = append(around("/", denied), p.readable...)
	l.Read = append(l.Read, p.workspace, filepath.Join(p.options.Scratch, "git"))
	for _, folder := range p.lent {
		l.Read = append(l.Read, around(folder, p.hidden)...)
	}
	l.Write = append(l.Write, p.writable...)
	l.Write = append(l.Write, p.ownFolders()...)
	l.Use = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}
	if shared, err := os.ReadDir("/dev/shm"); err == nil && len(shared) == 0 {
		l.Write = append(l.Write, "/dev/shm") // multiprocessing needs it; where others use it, it is theirs
	}
	return l, nil
}

// gitVariables lead git around configurations that it may not read: it ends
// when it meets one.
func (p *plan) gitVariables() []string {
	var variables []string
	for name, files := range map[string][]string{
		"GIT_CONFIG_SYSTEM": {"/etc/gitconfig"},
		"GIT_CONFIG_GLOBAL": {
			filepath.Join(p.options.Home, ".gitconfig"), filepath.Join(variable(p.options.Environ, "XDG_CONFIG_HOME"), "git/config"),
			filepath.Join(p.options.Home, ".config/git/config"),
		},
	} {
		for _, file := range files {
			if copied, cleaned := p.userGit.cleaned[file]; cleaned {
				variables = append(variables, name+"="+copied)
				break
			}
			if slices.Contains(p.userGit.secretFiles, file) {
				variables = append(variables, name+"=/dev/null")
				break
			}
		}
	}
	return variables
}

// ownFolders are the scratch folders that commands write to.
func (p *plan) ownFolders() []string {
	return []string{filepath.Join(p.options.Scratch, "tmp"), filepath.Join(p.options.Scratch, "cache")}
}

// mustBeSeparable refuses what Landlock can't keep: it grants a folder with all
// that is in it.
func (p *plan) mustBeSeparable() error {
	for _, path := range p.hidden {
		if within(path, append(p.writable, p.workspace)) {
			return inseparable("Take it out of there", "%s lies in a folder that commands may read, and without namespaces it can't be kept from them", path)
		}
	}
	for file := range p.git.cleaned {
		return inseparable("Check out without credentials (actions/checkout: persist-credentials: false)",
			"%s holds credentials, and without namespaces they can't be kept from commands", file)
	}
	return nil
}

// inseparableError is what Landlock alone can't keep from commands, and what to do
// about it.
type inseparableError struct {
	*insideError
	remedy string
}

func (e *inseparableError) Unwrap() error { return e.insideError }

// inseparable says what it is; do is the first part of the remedy.
func inseparable(do, format string, args ...any) error {
	return &inseparableError{&insideError{layerLandlock, fmt.Sprintf(format, args...)}, do +
		", allow user namespaces on this machine (" + opensNamespaces + "), " +
		"or run without confinement by policy.sandbox: danger-full-access."}
}

// around lists the paths that together are all of dir but the denied ones.
func around(dir string, denied []string) []string {
	holds := false
	for _, path := range denied {
		if path == dir {
			return nil
		}
		holds = holds || within(path, []string{dir})
	}
	if !holds {
		return []string{dir}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var paths []string
	for _, entry := range entries {
		if entry.Type()&os.ModeSymlink != 0 {
			continue // what it leads to is granted where that lies, or not
		}
		paths = append(paths, around(filepath.Join(dir, entry.Name()), denied)...)
	}
	return paths
}

// cacheVariables move the caches of well-known tools below dir, but for those
// whose place the operator has set.
func (o Options) cacheVariables(dir string) []string {
	var variables []string
	for _, v := range []string{
		"XDG_CACHE_HOME=.", "GOCACHE=go-build", "npm_config_cache=npm", "PIP_CACHE_DIR=pip", "UV_CACHE_DIR=uv", "YARN_CACHE_FOLDER=yarn",
		"COMPOSER_CACHE_DIR=composer", "GRADLE_USER_HOME=gradle", "CCACHE_DIR=ccache", "SCCACHE_DIR=sccache", "PYTHONPYCACHEPREFIX=pycache",
	} {
		name, folder, _ := strings.Cut(v, "=")
		if !slices.Contains(o.Set, name) {
			variables = append(variables, name+"="+filepath.Join(dir, folder))
		}
	}
	return variables
}
