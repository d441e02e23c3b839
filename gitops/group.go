package gitops

import (
	"errors"
	"sync"
)

// group is work aside that its owner waits for.
type group struct {
	wg   sync.WaitGroup
	mu   sync.Mutex
	errs []error
}

func (g *group) run(work func() error) {
	g.wg.Go(func() {
		if err := work(); err != nil {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.errs = append(g.errs, err)
		}
	})
}

func (g *group) wait() error {
	g.wg.Wait()
	return errors.Join(g.errs...)
}
