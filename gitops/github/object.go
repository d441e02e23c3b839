package github

import (
	"regexp"
	"sync"

	"github.com/agent-ci/agent-ci/gitops/forge"
)

var objectID = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9a-f]{40}(?:[0-9a-f]{24})?$`)
})

func checkObject(what call, owner, name, id string) error {
	if err := checkRepository(what, owner, name); err != nil {
		return err
	}
	if !objectID().MatchString(id) {
		return &forge.Error{Kind: forge.Invalid, Doing: what.doing, Message: "that is not the id of an object", Remedy: "give all hex digits of it"}
	}
	return nil
}
