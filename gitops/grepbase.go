package gitops

import (
	"context"
	"fmt"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/program"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
)

// BaseHolds says whether some file of the base has the text in one line.
// Without git it is false. The base's objects are believed: it is for who asks
// before a command has run that could change them.
func (c *Checkout) BaseHolds(ctx context.Context, text string) (bool, error) {
	if !c.repo.Git.There() || text == "" || strings.ContainsAny(text, "\n\r\x00") {
		return false, nil
	}
	// The text goes by standard input: others see a program's arguments.
	git := c.repo.Git.With("GIT_ALTERNATE_OBJECT_DIRECTORIES=" + repository.QuoteAlternate(c.repo.CommonDir+"/objects"))
	_, err := git.Run(ctx, c.repo.Root, strings.NewReader(text+"\n"), "grep", "--quiet", "--text", "--fixed-strings", "-f", "-", string(c.base.Tree))
	switch {
	case err == nil:
		return true, nil
	case program.ExitStatus(err) == 1:
		return false, nil
	}
	return false, fmt.Errorf("search the base: %w", err)
}
