package gitops_test

import "testing"

func TestBaseHolds(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	r.Seed()
	c := r.open()
	r.Write("README", "changed since\n")
	r.Write("new", "not committed\n")
	for text, want := range map[string]bool{
		"package main": true, "ackage mai": true, "to be deleted": true, "changed since": false, "not committed": false,
		"p.ckage": false, "one\ntwo": false, "": false, "-e one": false,
	} {
		if got, err := c.BaseContainsText(t.Context(), text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}
