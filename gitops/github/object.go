package github

import (
	"regexp"
	"sync"
)

var objectID = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9a-f]{40}(?:[0-9a-f]{24})?$`)
})

func checkObject(what call, owner, name, id string) error {
	if err := checkRepository(what, owner, name); err != nil {
		return err
	}
	if !objectID().MatchString(id) {
		return &Error{Kind: Invalid, Doing: what.doing, Message: "that is not the id of an object", Remedy: "give all hex digits of it"}
	}
	return nil
}
