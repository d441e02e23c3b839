package learn

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/agent-ci/agent-ci/tools/memory"
)

// Lessons are the findings as lessons. The id of one goes by its kind and subject: what newer runs
// show of the same is no other lesson.
func (l *Learnt) Lessons() []memory.Lesson {
	var all []memory.Lesson
	for _, f := range l.Findings {
		sum := sha256.Sum256([]byte(f.Subject))
		all = append(all, memory.Lesson{
			ID: strings.ReplaceAll(string(f.Kind), "_", "-") + "-" + hex.EncodeToString(sum[:4]), Claim: f.Sentence(), Evidence: l.evidence(f),
			Run: f.In[len(f.In)-1], Date: l.Day(),
		})
	}
	return all
}
