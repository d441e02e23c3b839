package grants

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/agent-ci/agent-ci/policy/outside"
	"github.com/agent-ci/agent-ci/policy/pathname"
	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

// privateFolders lists the folders that a sandbox replaces by its own. Package stage makes /dev and
// /proc.
var privateFolders = []string{"/tmp", "/var/tmp", "/run", "/var/run", "/dev", "/proc"}

// Plan describes the commands' file system as of NewPlan. Its paths contain no links.
type Plan struct {
	folders    Folders
	workspace  string
	secondPath string   // the resolved Folders.SecondPath; set by Mounts
	layers     Layers   // of the workspace
	writable   []string // including the workspace
	readable   []string
	hiddenPaths
	borrowed map[string]string
	shownFiles
	home        string
	namedCaches map[string]cache // the folders of cache variables, as the variables name them
	caches      []string         // the cache folders with private changes
	mounts      map[string]stage.Mount
}

// hiddenPaths lists what commands must not reach.
type hiddenPaths struct {
	credentials []credential
	secrets     *Secrets
	hidden      []string // the existing credentials and denied paths
	sockets     []string
}

// shownFiles lists files whose content commands see in another form, or must not change.
type shownFiles struct {
	restrictions        outside.Restrictions
	copies              map[string]string // the cleaned copies of Restrictions.Cleaned
	userCopies          map[string]string // the cleaned copies of Restrictions.UserCleaned
	replacements        map[string]string // paths seen by commands, with the file shown there
	missingReplacements []string          // replacements missing outside
}

// NewPlan looks at the file system as it is now, and makes the scratch folder.
func NewPlan(f Folders) (*Plan, error) {
	if err := f.makeScratch(); err != nil {
		return nil, err
	}
	p, err := newPlanOfSecrets(f)
	if err != nil {
		return nil, err
	}
	if err := p.cleanRestricted(); err != nil {
		return nil, err
	}
	p.hidden = p.secrets.existingPaths(p.layers.withCache(), p.credentials)
	p.borrowed = p.resolveBorrowed()
	for _, path := range hostSockets() {
		p.sockets = append(p.sockets, Layers{}.resolveIfExists(path)...)
	}
	p.home = p.resolveHome()
	if err := p.prepareReplacements(); err != nil {
		return nil, err
	}
	named, caches := f.classifyCaches(p.cacheAt)
	p.namedCaches, p.caches = named, p.outermostWithMounts(caches)
	for _, path := range p.caches {
		if err := f.makeChangesFolders(cacheFolder(path)); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// newPlanOfSecrets returns the part of a plan that secrets need. It does not use the scratch folder.
func newPlanOfSecrets(f Folders) (*Plan, error) {
	p := &Plan{folders: f, mounts: make(map[string]stage.Mount)}
	if err := p.resolveGrants(); err != nil {
		return nil, err
	}
	if f.Outside != nil {
		var err error
		if p.restrictions, err = f.Outside.Restrictions(p.writable, f.homes()); err != nil {
			return nil, err
		}
	}
	p.credentials = p.layers.locateCredentials(append(f.credentials(), credentialsBy("", p.restrictions.Secret)...))
	if p.secrets = f.Secrets; p.secrets == nil {
		p.secrets = p.findSecrets()
	}
	return p, nil
}

// resolveHome returns the home folder with resolved links. It returns "" for a missing or hidden folder, and
// for one that has a mount of its own anyway.
func (p *Plan) resolveHome() string {
	home, err := filepath.EvalSymlinks(p.folders.Home) // "" for ""
	if err != nil {
		return ""
	}
	isReplaced := home == "/" || home == os.DevNull || slices.Contains(privateFolders, home)
	if isReplaced || pathname.IsInAny(home, p.hidden...) {
		return ""
	}
	return home
}

// ErrNoProc reports a machine without /proc, which cannot confine commands.
var ErrNoProc = errors.New("/proc is not mounted: mount it (mount -t proc proc /proc), or run without confinement by policy.sandbox: danger-full-access")

// resolveGrants resolves the workspace, writable and readable paths.
func (p *Plan) resolveGrants() (err error) {
	f := p.folders
	if p.workspace, err = filepath.EvalSymlinks(f.Workspace); err != nil {
		return fmt.Errorf("find the workspace: %w", err)
	}
	p.layers = f.layers()
	if f.Mode == WorkspaceWrite {
		p.writable = append(p.writable, p.workspace)
		for _, path := range f.Writable {
			real, err := p.resolveGrant(path)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			p.writable = append(p.writable, real)
		}
	}
	self, err := os.Executable() // commands run this program as apply_patch, and the supervisor is this program
	if errors.Is(err, fs.ErrNotExist) && runtime.GOOS == "linux" {
		return ErrNoProc
	}
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	for _, path := range append([]string{self}, f.Readable...) {
		p.readable = append(p.readable, Layers{}.resolveIfExists(path)...)
	}
	return nil
}

// resolveGrant resolves a writable path. It refuses a path in the workspace that leads out of it, since
// commands may have made the link.
func (p *Plan) resolveGrant(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	if pathname.IsInAny(path, p.folders.Workspace, p.workspace) && !pathname.IsInAny(real, p.workspace) {
		return "", fmt.Errorf("the writable path %s leads out of the workspace, to %s", path, real)
	}
	if real == "/" {
		return "", fmt.Errorf("the writable path %s is the whole file system; use the mode %s instead", path, DangerFullAccess)
	}
	return real, nil
}

// cleanRestricted writes the cleaned copies of restricted files.
func (p *Plan) cleanRestricted() (err error) {
	if p.copies, err = p.folders.writeCopies("own", p.restrictions.Cleaned); err != nil {
		return err
	}
	p.userCopies, err = p.folders.writeCopies("user", p.restrictions.UserCleaned)
	return err
}

// resolveBorrowed resolves BorrowedFolders and omits missing and hidden ones.
func (p *Plan) resolveBorrowed() map[string]string {
	borrowed := make(map[string]string)
	for place, folder := range p.folders.BorrowedFolders {
		place, placeErr := p.resolvePlace(place)
		folder, folderErr := filepath.EvalSymlinks(folder)
		if placeErr != nil || folderErr != nil {
			continue
		}
		if pathname.IsInAny(place, p.workspace) && !p.isHiddenBorrowed(folder) {
			borrowed[place] = folder
		}
	}
	return borrowed
}

// resolvePlace resolves a place in the workspace, possibly in its separate git folder.
func (p *Plan) resolvePlace(place string) (string, error) {
	git := p.gitFolder()
	inside, inGit := pathname.Below(git, place)
	if p.folders.Git == "" || !inGit {
		return filepath.EvalSymlinks(place)
	}
	_, err := os.Lstat(filepath.Join(p.folders.Git, inside))
	return filepath.Join(git, inside), err
}

// isHiddenBorrowed reports whether a borrowed folder is inside a hidden one. It reports false if the
// workspace is inside the same hidden folder, or if SecondPath shows the folder.
func (p *Plan) isHiddenBorrowed(folder string) bool {
	hidingFolder, second := p.deepestHidden(folder), p.folders.SecondPath
	inSecond := pathname.IsInAny(folder, second) && (!pathname.IsInAny(hidingFolder, second) || hidingFolder == second)
	return hidingFolder != "" && hidingFolder != p.deepestHidden(p.workspace) && !inSecond
}

// deepestHidden returns the deepest hidden path that contains path, or "".
func (p *Plan) deepestHidden(path string) (deepest string) {
	for _, hidden := range p.hidden {
		if pathname.IsInAny(path, hidden) && len(hidden) > len(deepest) {
			deepest = hidden
		}
	}
	return deepest
}

// Workspace returns the workspace with resolved links.
func (p *Plan) Workspace() string { return p.workspace }

// Variables returns the variables that a sandbox with namespaces sets for commands. canChange reports
// whether commands can change a home or cache folder. Moved caches are in home, or else in /tmp.
func (p *Plan) Variables(canChange func(path string) bool) []string {
	changesHome := p.home == "" || canChange(p.home)
	dir := "/tmp/.cache"
	if p.home != "" && changesHome {
		dir = filepath.Join(p.home, ".cache")
	}
	return append(temporaryVariables("/tmp"), p.movedCaches(dir, changesHome, canChange)...)
}

// LandlockVariables returns the variables that a sandbox without namespaces sets for commands.
func (p *Plan) LandlockVariables() []string {
	canChange := func(string) bool { return false }
	variables := append(temporaryVariables(p.folders.inScratch("tmp")), p.movedCaches(p.folders.inScratch("cache"), false, canChange)...)
	for name, file := range p.restrictions.Variables {
		if copied, is := p.userCopies[file]; is {
			file = copied
		}
		variables = append(variables, name+"="+file)
	}
	return variables
}

func temporaryVariables(dir string) []string {
	return []string{"TMPDIR=" + dir, "TMP=" + dir, "TEMP=" + dir}
}
