package policy

import (
	"fmt"
	"path"
	"slices"
)

// Treatment is how a run handles a change with a given concern.
type Treatment string

// The treatments. An empty treatment means Fail.
const (
	Fail  Treatment = "fail"  // the change is not published
	Warn  Treatment = "warn"  // the change is published, with a warning for the reviewer
	Allow Treatment = "allow" // the change is published
	Drop  Treatment = "drop"  // for protected paths only: the rest of the change is published
)

// Concern is a property of a changed path worth a reviewer's attention.
type Concern string

// The concerns, named like the keys of policy.change. Five have no key and always fail: ConcernName
// (some systems mistake the name for .git), ConcernUnreadable, ConcernLarge and ConcernTooDeep (a
// change cannot contain them), and ConcernOwn (files that no agent may write).
const (
	ConcernProtected  Concern = "protected"
	ConcernSubmodule  Concern = "submodules"
	ConcernNestedGit  Concern = "nested_git"
	ConcernSymlinkOut Concern = "symlinks_out"
	ConcernSymlink    Concern = "symlinks"
	ConcernExecutable Concern = "executables"
	ConcernLockfile   Concern = "lockfiles"
	ConcernName       Concern = "name"
	ConcernUnreadable Concern = "unreadable"
	ConcernLarge      Concern = "large"
	ConcernTooDeep    Concern = "too_deep"
	ConcernOwn        Concern = "own"
)

// hasKey reports whether policy.change has a key for the concern.
func (c Concern) hasKey() bool {
	return !slices.Contains([]Concern{ConcernName, ConcernUnreadable, ConcernLarge, ConcernTooDeep, ConcernOwn}, c)
}

// ChangedFile describes a changed path for Judge. Modes are git's, in octal; an empty mode means a
// missing path.
type ChangedFile struct {
	Path             string
	OldMode, NewMode string
	// Found lists the concerns that depend on the tree: ConcernSymlinkOut, ConcernNestedGit,
	// ConcernSubmodule, ConcernName, ConcernOwn, ConcernUnreadable, ConcernLarge, ConcernTooDeep.
	Found []Concern
}

// Finding is a concern about a path.
type Finding struct {
	Path    string
	Concern Concern
}

// String returns the finding as a phrase for people, with the deciding key of policy.change, if any.
func (f Finding) String() string {
	if !f.Concern.hasKey() {
		return fmt.Sprintf("%q %s", f.Path, concernWords[f.Concern])
	}
	return fmt.Sprintf("%q %s (policy.change.%s)", f.Path, concernWords[f.Concern], f.Concern)
}

var concernWords = map[Concern]string{
	ConcernProtected:  "is protected by policy.protect",
	ConcernSubmodule:  "is a submodule or points to another commit of one",
	ConcernNestedGit:  "is a repository of its own, of which nothing is part of the change",
	ConcernSymlinkOut: "is a symbolic link that leads out of the repository",
	ConcernSymlink:    "is a symbolic link",
	ConcernExecutable: "is newly executable",
	ConcernLockfile:   "is a lockfile",
	ConcernName:       "has a name that some systems take for .git",
	ConcernUnreadable: "cannot be read, so that it is no part of the change",
	ConcernLarge:      "is too large to be part of a change",
	ConcernTooDeep:    "lies too deep to be part of a change",
	ConcernOwn:        "is what runs and people write, and no agent",
}

// Changes judges changed paths by the rules of a job.
type Changes struct {
	Protect []string // patterns, as Protected takes them
	// Treat maps concerns to treatments. A missing concern fails.
	Treat map[Concern]Treatment
}

// Verdict is the judgement of a change. It may be published when Fail is empty,
// without the paths in Drop.
type Verdict struct {
	Fail []Finding
	Warn []Finding
	Drop []string
}

// ExcludesPath reports whether a path prevents the publication of the change, or is dropped from it.
func (v Verdict) ExcludesPath(path string) bool {
	return slices.Contains(v.Drop, path) || slices.ContainsFunc(v.Fail, func(f Finding) bool { return f.Path == path })
}

// Judge sorts the concerns of all files by their treatment. The other concerns of a dropped path
// are ignored. It returns an error for an invalid pattern in Protect.
func (c Changes) Judge(files []ChangedFile) (Verdict, error) {
	var v Verdict
	for _, file := range files {
		concerns, err := c.findConcerns(file)
		if err != nil {
			return Verdict{}, err
		}
		if c.Treat[ConcernProtected] == Drop && slices.Contains(concerns, ConcernProtected) {
			v.Drop = append(v.Drop, file.Path)
			continue
		}
		for _, concern := range concerns {
			v.addFinding(Finding{file.Path, concern}, c.Treat[concern])
		}
	}
	return v, nil
}

// addFinding records a finding by its treatment. A concern without a key always fails.
func (v *Verdict) addFinding(f Finding, treatment Treatment) {
	switch {
	case treatment == Allow && f.Concern.hasKey(): // nothing to record
	case treatment == Warn && f.Concern.hasKey():
		v.Warn = append(v.Warn, f)
	default:
		v.Fail = append(v.Fail, f)
	}
}

// Git's modes for anything but an ordinary file.
const (
	modeExecutable = "100755"
	modeSymlink    = "120000"
	modeSubmodule  = "160000"
)

// findConcerns returns the concerns about a file, each once.
func (c Changes) findConcerns(file ChangedFile) ([]Concern, error) {
	concerns := slices.Clone(file.Found)
	addIf := func(concern Concern, applies bool) {
		if applies && !slices.Contains(concerns, concern) {
			concerns = append(concerns, concern)
		}
	}
	protected, err := Protected(c.Protect, file.Path)
	if err != nil {
		return nil, err
	}
	addIf(ConcernProtected, protected)
	addIf(ConcernSubmodule, file.OldMode == modeSubmodule || file.NewMode == modeSubmodule)
	addIf(ConcernSymlink, file.NewMode == modeSymlink && !slices.Contains(concerns, ConcernSymlinkOut))
	addIf(ConcernExecutable, file.NewMode == modeExecutable && file.OldMode != modeExecutable)
	addIf(ConcernLockfile, lockfiles[path.Base(file.Path)])
	return concerns, nil
}

// lockfiles lists the names of files with pinned dependency versions.
var lockfiles = wordSet(`go.sum go.work.sum package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock bun.lockb deno.lock
	Cargo.lock poetry.lock uv.lock pdm.lock pixi.lock Pipfile.lock conda-lock.yml Gemfile.lock gems.locked composer.lock mix.lock rebar.lock
	pubspec.lock Podfile.lock Package.resolved packages.lock.json paket.lock gradle.lockfile flake.lock stack.yaml.lock cabal.project.freeze
	.terraform.lock.hcl Chart.lock buf.lock MODULE.bazel.lock`)
