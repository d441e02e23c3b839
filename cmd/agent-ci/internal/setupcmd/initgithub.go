package setupcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/agent-ci/agent-ci/cmd/agent-ci/internal/cli"
	"github.com/agent-ci/agent-ci/gitops"
	"github.com/agent-ci/agent-ci/gitops/github"
	"github.com/agent-ci/agent-ci/runner/place/workspace"
	"github.com/agent-ci/agent-ci/runner/publish"
	"github.com/agent-ci/agent-ci/runner/setup/onboard"
	"github.com/agent-ci/agent-ci/runner/task/form"
	"github.com/agent-ci/agent-ci/runner/task/intake"
	"github.com/agent-ci/agent-ci/runner/task/job"
	"github.com/agent-ci/agent-ci/runner/task/settings"
)

// gitHubSetup has the values of the flags of init --github. No flag takes a key, because other users of
// the machine can see a process's arguments.
type gitHubSetup struct {
	on, replace            bool
	provider, model        string
	baseURL, wire, keyName string

	repo      string
	workflows []string
	toolchain onboard.Toolchain // found in the current checkout; empty if it is of another repository
}

// defineFlags adds the flags of init --github.
func (g *gitHubSetup) defineFlags(flags *cli.FlagSet) {
	var providers []string
	for _, p := range onboard.Providers() {
		providers = append(providers, p.Name)
	}
	flags.Boolean(&g.on, "github", "set up the repository on GitHub and open a pull request with the files")
	flags.Text(&g.provider, "provider", "NAME", "with --github: who serves the model: "+strings.Join(providers, ", "), providers...)
	flags.Text(&g.model, "model", "NAME", "with --github: the model to ask")
	flags.Text(&g.baseURL, "base-url", "URL", "with --github: where the model's API is, for another provider")
	flags.Text(&g.wire, "wire", "API", "with --github: API of another provider: responses or chat", "responses", "chat")
	flags.Boolean(&g.replace, "replace-secret", "with --github: replace the secret if it exists")
	flags.Text(&g.keyName, "key-env", "NAME", "with --github: variable with the provider's key (default: OPENAI_API_KEY and the like)")
}

// flagProblem returns what is wrong with the flags, or "".
func (g *gitHubSetup) flagProblem() string {
	_, known := onboard.ProviderNamed(g.provider)
	hasOtherFlag := g.replace || cmp.Or(g.provider, g.model, g.baseURL, g.wire, g.keyName) != ""
	switch {
	case hasOtherFlag && !g.on:
		return "--provider, --model, --base-url, --wire, --key-env and --replace-secret go with --github"
	case g.provider != "" && !known:
		return "there is no provider " + g.provider
	case g.on && len(g.workflows) > 1:
		return "--github adds one workflow; add others without it"
	case g.wire != "" && g.wire != "responses" && g.wire != "chat":
		return "--wire is responses or chat"
	}
	return ""
}

// setUp asks for missing values, and sets up the repository on GitHub.
func (g *gitHubSetup) setUp(ctx context.Context, p cli.Process) error {
	person := newDialog(p)
	hub, server, err := g.openRepository(ctx, p, person)
	if err != nil {
		return err
	}
	setup, err := g.readSetup(ctx, p, person)
	if err == nil {
		setup.Server = server
		setup.Replace, err = g.confirmSetup(ctx, person, setup, hub)
	}
	if err != nil {
		return err
	}
	ctx, stop := cli.UntilSignal(ctx) // after the questions, so that Ctrl-C ends a question at once
	defer stop()
	report, err := setup.Apply(ctx, hub)
	printReport(p, report)
	return err
}

// printReport prints what was done, and what is left to do by hand.
func printReport(p cli.Process, report onboard.Report) {
	for _, done := range report.Done {
		p.Print("done: %s", done)
	}
	for _, left := range report.Left {
		p.Print("left for you: %s", left)
	}
	if report.URL != "" {
		p.Print("pull request: %s", report.URL)
	}
}

// openRepository returns a client for the repository on GitHub, and the address of the server. It asks a
// person for a missing token or name.
func (g *gitHubSetup) openRepository(ctx context.Context, p cli.Process, person *dialog) (github.Setup, string, error) {
	env := settings.Environment(p.Environ)
	server := env.ForgeServer()
	token, err := askToken(p, person)
	if err != nil {
		return github.Setup{}, "", err
	}
	origin, err := readOrigin(ctx, g.repo, p.Variable("PATH"), server)
	if err != nil {
		return github.Setup{}, "", err
	}
	name, err := askRepository(p, person, origin, server)
	if err != nil {
		return github.Setup{}, "", err
	}
	client, _, err := publish.NewClient(env, p.Version, token)
	if err != nil {
		return github.Setup{}, "", err
	}
	if inCheckout := intake.RepositoryInURL(origin, server); inCheckout != "" && strings.EqualFold(inCheckout, name) {
		g.toolchain = onboard.DetectToolchain(g.repo)
	}
	return client.Setup(name), server, nil
}

// askToken returns the token of GitHub, from its variable or the person.
func askToken(p cli.Process, person *dialog) (string, error) {
	token := settings.Environment(p.Environ).Token()
	if token == "" && person == nil {
		return "", errors.New("there is no GitHub token: set GITHUB_TOKEN to one of a person who may change the repository's settings")
	}
	return person.askHidden(token, "GitHub token with contents, workflows, pull requests, issues, secrets and administration: write") // returns a known token without a question
}

// askRepository returns the repository's name, from the checkout's origin, GITHUB_REPOSITORY or the person.
func askRepository(p cli.Process, person *dialog, origin, server string) (string, error) {
	naming := intake.RepositorySources{Job: &job.Job{}, Origin: origin, Server: server}
	naming.Event.Repository = p.Variable("GITHUB_REPOSITORY")
	name, err := naming.Repository()
	if err == nil {
		name, err = person.ask(name, "Repository on "+server+" (OWNER/REPO)", "")
	}
	if err != nil {
		return "", err
	}
	if form.ValidateRepository(name) != nil {
		return "", fmt.Errorf("it is not known which repository on %s this is%s: run in a checkout whose origin is there, or set GITHUB_REPOSITORY to OWNER/REPO", server, intake.ForeignOrigin(origin, server))
	}
	return name, nil
}

// readOrigin returns the address that a checkout was cloned from, or "" if it is unknown.
func readOrigin(ctx context.Context, dir, path, server string) (string, error) {
	dir = cmp.Or(dir, ".")
	state, err := os.MkdirTemp("", "agent-ci-init-")
	if err != nil {
		return "", nil //nolint:nilerr // without an origin the person is asked
	}
	defer os.RemoveAll(state)
	checkout, err := gitops.Open(ctx, gitops.Options{Dir: dir, Git: workspace.FindGit(path, dir), State: state, Forge: server})
	if gitError, is := errors.AsType[*gitops.GitError](err); is {
		return "", gitError
	}
	if err != nil {
		return "", nil //nolint:nilerr // the folder is probably not a checkout
	}
	return checkout.Origin(), checkout.Close()
}

// readSetup returns the setup from flags, variables and answers. It checks the key with a request to the provider.
func (g *gitHubSetup) readSetup(ctx context.Context, p cli.Process, person *dialog) (onboard.Setup, error) {
	s := onboard.Setup{Workflow: "issue", Build: p.Build, Toolchain: g.toolchain}
	if len(g.workflows) > 0 {
		s.Workflow = g.workflows[0]
	}
	if err := g.askProvider(&s, person); err != nil {
		return s, err
	}
	if err := g.askModel(&s, person); err != nil {
		return s, err
	}
	if err := g.askKey(&s, p, person); err != nil {
		return s, err
	}
	checked, err := s.Provider.CheckKey(ctx, s.Key)
	if err != nil {
		return s, err
	}
	if checked {
		p.Note("The key is good.")
	} else {
		p.Note("The provider does not tell whether the key is good.")
	}
	return s, nil
}

// askProvider sets the provider. It asks for what the flags lack. The provider "other" needs an address, too.
func (g *gitHubSetup) askProvider(s *onboard.Setup, person *dialog) (err error) {
	var names []string
	for _, p := range onboard.Providers() {
		names = append(names, p.Name)
		if g.provider == "" && person != nil {
			fmt.Fprintf(person.screen, "  %-12s %s\n", p.Name, p.Title)
		}
	}
	name, err := person.askChoice(g.provider, "Who serves the model", "openai", names...)
	if err != nil {
		return err
	}
	provider, _ := onboard.ProviderNamed(cmp.Or(name, "openai")) // flagProblem and askChoice accept only known names
	isOther := provider.Name == "other"
	address, wire := g.baseURL, g.wire
	if isOther {
		if address, err = person.ask(address, "Address of its API, as https://HOST/v1", ""); err != nil {
			return err
		}
		if address == "" {
			return errors.New("give the address of the provider's API with --base-url")
		}
	}
	if s.Provider, err = provider.WithBaseURL(address); err == nil && isOther {
		wire, err = person.askChoice(wire, "What it speaks, responses or chat", "responses", "responses", "chat")
	}
	s.Provider.Wire = cmp.Or(wire, s.Provider.Wire)
	return err
}

// askModel sets the model: the flag, the person's answer, or the provider's default.
func (g *gitHubSetup) askModel(s *onboard.Setup, person *dialog) (err error) {
	if s.Model, err = person.ask(g.model, "Model", s.Provider.Model); err != nil {
		return err
	}
	if s.Model = cmp.Or(s.Model, s.Provider.Model); s.Model == "" {
		return errors.New("give the name of the model with --model")
	}
	return nil
}

// askKey sets the provider's key, from its variable or the person.
func (g *gitHubSetup) askKey(s *onboard.Setup, p cli.Process, person *dialog) (err error) {
	variable := cmp.Or(g.keyName, s.Provider.Secret)
	if s.Key, err = person.askHidden(strings.TrimSpace(p.Variable(variable)), "Key of "+s.Provider.Title); err != nil {
		return err
	}
	if s.Key == "" {
		return fmt.Errorf("there is no key: set %s to that of the provider", variable)
	}
	return settings.CheckKey(variable, s.Key)
}

// confirmSetup shows a person what init is about to do, and asks for consent. replace reports whether to
// replace an existing secret. Without a person it is the flag's value.
func (g *gitHubSetup) confirmSetup(ctx context.Context, person *dialog, s onboard.Setup, hub github.Setup) (replace bool, err error) {
	if person == nil {
		return g.replace, nil
	}
	fmt.Fprintf(person.screen, "In %s: set the secret %s, let workflows open pull requests, make the label %s, and open a pull request with %s and %s.\n",
		hub.Name(), s.Provider.Secret, onboard.Label, onboard.DefaultsPath, onboard.WorkflowPath(s.Workflow))
	yes, err := person.confirm()
	switch {
	case err != nil:
		return false, err
	case !yes:
		return false, errors.New("nothing was done")
	case g.replace:
		return true, nil
	}
	if exists, err := hub.HasSecret(ctx, s.Provider.Secret); err != nil || !exists {
		return false, nil // setting the secret later reports the same error
	}
	answer, err := person.askChoice("", "The secret "+s.Provider.Secret+" is there already. Replace it, yes or no", "no", "yes", "no")
	return answer == "yes", err
}
