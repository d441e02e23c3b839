package runner

import (
	"context"
)

// followRecipe runs the job's recipe before the agent's first turn, and says whether the run is done
// with it: every check is green on its change, and the agent is not to work in any case.
func (so *reached) followRecipe(ctx, whole context.Context, attempts int) (done bool, err error) {
	if so.job().Recipe.Run == "" || attempts > 0 || so.worked || so.task.Subject != nil {
		return false, nil
	}
	if err := so.checks().Recipe(ctx); err != nil {
		return false, err
	}
	if err := so.takeChange(ctx); err != nil {
		return false, err
	}
	if so.job().Recipe.Agent == "always" || len(so.job().Verify) == 0 {
		return false, so.tellRecipe("")
	}
	if so.change.Empty() {
		so.told.Summary = "The recipe changed nothing, and every check is green."
		return so.baselineGreen(), nil
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
	return false, so.tellRecipe(words)
}

// tellRecipe tells the agent what the recipe did, and what checks say of it.
func (so *reached) tellRecipe(words string) error {
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
