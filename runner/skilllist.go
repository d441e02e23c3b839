package runner

import (
	"context"

	"github.com/agent-ci/agent-ci/runner/settings"
	"github.com/agent-ci/agent-ci/runner/skills"
	"github.com/agent-ci/agent-ci/runner/transcript"
	"github.com/agent-ci/agent-ci/runner/worker"
	"github.com/agent-ci/agent-ci/runner/workspace"
)

// mostSkillWarnings is of how many problems with skills a run warns one by one.
const mostSkillWarnings = 10

// findSkills finds the skills of the base commit that the agent can load.
func (in *invocation) findSkills(so *reached) error {
	found, err := skillsOf(so.workspace.Commit(), so.settings)
	if err != nil {
		return err
	}
	for _, p := range found.Problems[:min(len(found.Problems), mostSkillWarnings)] {
		in.rec.Warn("skill", "The skill %s.", p)
	}
	if more := len(found.Problems) - mostSkillWarnings; more > 0 {
		in.rec.Warn("skill", "There %s more about skills, which agent-ci validate lists.", transcript.Count(more, "problem"))
	}
	var leftOut int
	so.skills, leftOut = skills.NewOffer(found.Skills, so.model.Profile.ContextWindow, in.rec.Redact)
	if leftOut > 0 {
		in.rec.Warn("skills_left_out", "The model is not told of %s: there is no room for more. Name the folders of those that it needs in skills.folders.", transcript.Count(leftOut, "skill"))
	}
	return nil
}

// skillsOf are the skills that a run by these settings can load.
func skillsOf(base settings.Commit, by *settings.Settings) (skills.Found, error) {
	if !worker.OffersSkills(&by.Job) {
		return skills.Found{}, nil
	}
	return skills.Find(base.Checkout, by.Job.Skills.Folders)
}

// ListSkills are the skills that a run in a checkout could load, and what is wrong with them.
// Nothing is run, and nobody asked.
func ListSkills(ctx context.Context, o Checked) (found skills.Found, err error) {
	err = o.look(ctx, func(_ *invocation, ws *workspace.Workspace, set *settings.Settings) (err error) {
		found, err = skillsOf(ws.Commit(), set)
		return err
	})
	return found, err
}
