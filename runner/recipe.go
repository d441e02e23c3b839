package runner

import (
	"context"
)

// followRecipe runs the job's recipe before the agent's first turn, and says whether the run is done
// with it: every check is green on its change, and the agent is not to work in any case.
func (so *reached) followRecipe(ctx, whole context.Context, attempts int) (done bool, err error) {
	if so.job().Recipe.Run == "" || attempts > 0 || so.goesOn || so.task.Subject != nil {
		return false, nil
	}
	if err := so.checks().Recipe(ctx); err != nil {
		return false, err
	}
	if err := so.takeChange(ctx); err != nil {
		return false, err
	}
	switch {
	case so.job().Recipe.Agent == "always" || len(so.job().Verify) == 0:
		return false, so.goOnFromRecipe(ctx, "")
	case so.change.Empty() && so.baselineGreen():
		so.told.Summary = "The recipe changed nothing, and every check is green."
		return true, nil
	case so.change.Empty():
		return false, nil
	}
	if err := so.verify(ctx, whole, 1); err != nil {
		return false, err
	}
	if so.table.Passed {
		so.told.Summary = "The recipe made this change. Every check is green on it, and no model was asked."
		return true, nil
	}
	words, err := so.checks().Words(so.table, "")
	if err != nil {
		return false, err
	}
	return false, so.goOnFromRecipe(ctx, words)
}

// goOnFromRecipe keeps what the recipe did, for a run that goes on in another checkout, and tells the
// agent of it and of what checks say of it.
func (so *reached) goOnFromRecipe(ctx context.Context, words string) error {
	if so.change.Empty() {
		return nil
	}
	if err := so.agent.KeepMade(ctx, so.change); err != nil {
		return err
	}
	told := so.checks().RecipeWords()
	if words != "" {
		told += "\n\n" + words
	}
	return so.agent.Tell(told)
}

func (so *reached) baselineGreen() bool {
	for _, row := range so.baseline.Rows {
		if row.Before != "green" {
			return false
		}
	}
	return true
}
