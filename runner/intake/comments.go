package intake

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/agent-ci/agent-ci/gitops/forge"
)

// OwnComments says of comments whether they are an App's or of the token's own
// account, which is asked for once.
func OwnComments(ctx context.Context, on forge.Forge) func(forge.Comment) bool {
	account := sync.OnceValue(func() string {
		viewer, _ := on.Viewer(ctx) // an App's token belongs to nobody
		return viewer.Login
	})
	return func(c forge.Comment) bool {
		return c.Author.Bot || account() != "" && strings.EqualFold(c.Author.Login, account())
	}
}

// OwnProgress is the comment of an earlier run among those that look like one: the
// last of an App or of the token's own account, nil for none. A person's that looks
// like one stays as it is.
func OwnProgress(ctx context.Context, on forge.Forge, like []forge.Comment) *forge.Comment {
	own := OwnComments(ctx, on)
	for i, c := range slices.Backward(like) {
		if own(c) {
			return &like[i]
		}
	}
	return nil
}
