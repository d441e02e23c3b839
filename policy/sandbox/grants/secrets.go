package grants

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/agent-ci/agent-ci/policy/pathname"
)

// Secrets lists the hidden files in writable folders. They are found before the agent's first command,
// and all later sandboxes hide them. So files made by the agent are not hidden, and the agent's links
// cannot change what is hidden.
type Secrets struct {
	Within []string `json:"within"` // the folders, as given and with resolved links
	Found  []Secret `json:"found"`
}

// Secret is a hidden path.
type Secret struct {
	Path    string `json:"path"`         // absolute; as given, or with resolved links
	By      string `json:"by,omitempty"` // what names it: DeniedBy, SecretBy with a name, or a variable; "" for a usual place of credentials
	Named   string `json:"named"`        // the path as given
	Existed bool   `json:"there"`        // a file existed at Path itself, not behind a link
}

// DeniedBy is the rule of a secret in Folders.DenyRead.
const DeniedBy = "policy.deny_read"

// SecretBy begins the rule of a job secret's file. Its name follows.
const SecretBy = "policy.secrets: "

// Paths returns the paths of all secrets. s may be nil.
func (s *Secrets) Paths() []string {
	if s == nil {
		return nil
	}
	paths := make([]string, len(s.Found))
	for i, secret := range s.Found {
		paths[i] = secret.Path
	}
	return paths
}

// Add adds later findings.
func (s *Secrets) Add(later *Secrets) {
	for _, secret := range later.Found {
		s.add(secret)
	}
}

func (s *Secrets) add(secret Secret) {
	i := slices.IndexFunc(s.Found, func(known Secret) bool { return known.Path == secret.Path })
	if i < 0 {
		s.Found = append(s.Found, secret)
		return
	}
	s.Found[i].Existed = s.Found[i].Existed || secret.Existed
}

// FindSecrets finds hidden files in writable folders, with their other names there.
func FindSecrets(ctx context.Context, f Folders) (*Secrets, error) {
	if runtime.GOOS != "linux" {
		return &Secrets{}, nil // other systems cannot hide files from commands
	}
	f.Secrets = nil
	p, err := newPlanOfSecrets(f)
	if err != nil {
		return nil, fmt.Errorf("look for what is kept from commands: %w", err)
	}
	others, err := hardLinks(ctx, p.layers, p.secrets.Within, p.credentials)
	if err != nil {
		return nil, fmt.Errorf("look for further names of what is kept from commands: %w", err)
	}
	for _, other := range others {
		p.secrets.add(other)
	}
	return p.secrets, nil
}

// findSecrets returns the credentials in writable folders or behind links there. It omits a missing one, unless
// it is named explicitly (c.by). A named credential also counts at its own path, even if that is a link.
func (p *Plan) findSecrets() *Secrets {
	secrets := &Secrets{Within: p.folders.sharedWritable(), Found: []Secret{}}
	for _, c := range p.credentials {
		path, isNamed := filepath.Clean(c.path), c.by != ""
		isRelevant := c.exists || isNamed
		if !isRelevant || !secrets.containsAny(path, c.real) {
			continue
		}
		secrets.add(Secret{c.real, c.by, path, c.exists})
		if isNamed {
			secrets.add(Secret{path, c.by, path, false})
		}
	}
	return secrets
}

// containsAny reports whether one of the paths is in the folders.
func (s *Secrets) containsAny(paths ...string) bool {
	return slices.ContainsFunc(paths, func(path string) bool { return pathname.IsInAny(path, s.Within...) })
}

// locateCredentials sets where credentials are. A missing one that is named explicitly is resolved as far as it exists. The
// path of any other missing one is not resolved. locateCredentials replaces credentials in locked folders by the folders.
func (l Layers) locateCredentials(all []credential) []credential {
	l = l.withCache()
	for i := range all {
		c := &all[i]
		real, err := l.resolve(c.path)
		if errors.Is(err, fs.ErrPermission) {
			if folder := lockedFolder(c.path); folder != "" {
				c.path = folder
				real, err = l.resolve(folder)
			}
		}
		c.exists = err == nil
		switch {
		case c.exists:
			c.real = real
		case c.by != "":
			c.real = l.resolveExistingPart(filepath.Clean(c.path))
		default:
			c.real = filepath.Clean(c.path)
		}
	}
	return all
}

// resolveExistingPart resolves the existing part of a path and appends the rest.
func (l Layers) resolveExistingPart(path string) string {
	if real, err := l.resolve(path); err == nil {
		return real
	}
	if path == filepath.Dir(path) {
		return path
	}
	return filepath.Join(l.resolveExistingPart(filepath.Dir(path)), filepath.Base(path))
}

// existingPaths returns the hidden paths that exist now. Inside writable folders these are the secrets
// found earlier; elsewhere they are all credentials. A whole writable folder can be hidden, too.
func (s *Secrets) existingPaths(layers Layers, all []credential) []string {
	var paths []string
	for _, secret := range s.Found {
		if !secret.Existed {
			continue
		}
		real, err := layers.resolve(secret.Path)
		isInPlace := err == nil && real == secret.Path
		if isInPlace {
			paths = append(paths, secret.Path)
		} else if folder := lockedFolder(secret.Path); folder != "" && pathname.IsInAny(secret.Path, folder) {
			paths = append(paths, folder)
		}
	}
	for _, c := range all {
		path := filepath.Clean(c.path)
		isElsewhere := !s.containsAny(c.real, path)
		isWritableFolder := slices.Contains(s.Within, path)
		if c.exists && (isElsewhere || isWritableFolder) {
			paths = append(paths, c.real)
		}
	}
	return paths
}

// lockedFolder returns the folder above path that this user owns and cannot search, or "". Commands
// could change its mode, so it is hidden as a whole.
func lockedFolder(path string) string {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrPermission) {
		return ""
	}
	_, err := filepath.EvalSymlinks(path) // the error names the path that cannot be read
	pathErr := &fs.PathError{}
	if !errors.Is(err, fs.ErrPermission) || !errors.As(err, &pathErr) {
		return ""
	}
	folder := filepath.Dir(pathErr.Path)
	info, err := os.Stat(folder)
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) {
		return ""
	}
	return folder
}

// linkedFiles returns the credential files with several names (hard links), and such files in credential folders that
// are in folders.
func linkedFiles(ctx context.Context, layers Layers, folders []string, all []credential) (map[fileID]credential, error) {
	linked := map[fileID]credential{}
	for _, c := range all {
		if !c.exists {
			continue
		}
		info, _, err := layers.lstat(c.real)
		if err != nil {
			continue
		}
		if info.IsDir() {
			if !pathname.IsInAny(c.real, folders...) {
				continue
			}
			c.by = "" // the folder was named, not the files in it
		}
		err = layers.eachFile(ctx, c.real, func(_ string, info fs.FileInfo) {
			if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Nlink > 1 {
				linked[idOf(info)] = c
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return linked, nil
}

// hardLinks returns further names (hard links) in folders of credential files, and of files in hidden
// folders. It searches only if such a file has several names.
func hardLinks(ctx context.Context, layers Layers, folders []string, all []credential) ([]Secret, error) {
	linked, err := linkedFiles(ctx, layers, folders, all)
	if err != nil {
		return nil, err
	}
	if len(linked) == 0 {
		return nil, nil
	}
	var found []Secret
	for _, folder := range folders {
		err := layers.eachFile(ctx, folder, func(path string, info fs.FileInfo) {
			if c, isLinked := linked[idOf(info)]; isLinked {
				found = append(found, Secret{layers.resolveExistingPart(path), c.by, filepath.Clean(c.path), true})
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// eachFile visits the regular files at and below a path, with their paths as commands see them. It skips
// folders that cannot be listed, since commands cannot list them either. It returns only errors of ctx.
func (l Layers) eachFile(ctx context.Context, path string, visit func(path string, info fs.FileInfo)) error {
	var errs []error
	for _, folder := range l.foldersOnDisk(path) {
		errs = append(errs, filepath.WalkDir(folder, func(at string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return ctx.Err()
			}
			if info, err := entry.Info(); err == nil {
				visit(path+strings.TrimPrefix(at, folder), info)
			}
			return nil
		}))
	}
	return errors.Join(errs...)
}
