package transcript

import (
	"reflect"
	"strings"
	"testing"
)

// eventData are the event types with an empty value of their data.
var eventData = map[Type]any{
	TypeRunStarted: RunStarted{}, TypeTask: Task{}, TypeWorkspace: Workspace{}, TypePolicy: Policy{}, TypeSetup: Setup{}, TypeNetwork: Network{}, TypeService: Service{}, TypeMCPServer: MCPServer{}, TypeHooks: Hooks{}, TypeHook: Hook{}, TypeSkills: Skills{}, TypeSecretUsed: SecretUsed{},
	TypeModelRequest: ModelRequest{}, TypeModelResponse: ModelResponse{}, TypeModelRetry: ModelRetry{},
	TypeModelFailure: ModelFailure{}, TypeModelFallback: ModelFallback{}, TypeCompaction: Compaction{},
	TypeAgentStarted: AgentStarted{}, TypeAgentFinished: AgentFinished{},
	TypeToolStarted: ToolStarted{}, TypeToolFinished: ToolFinished{}, TypePlan: Plan{}, TypeVerify: Verify{},
	TypeChange: Change{}, TypePublish: Publish{}, TypeMemory: Memory{}, TypeLesson: Lesson{}, TypeLessons: Lessons{}, TypeWarning: Warning{}, TypeRunResumed: RunResumed{}, TypeRunFinished: RunFinished{},
}

func TestEventsAreDocumented(t *testing.T) {
	sections := map[string]string{}
	for section := range strings.SplitSeq(contents(t, "../../docs/reference/run-directory.md"), "\n#### ") {
		name, text, _ := strings.Cut(section, "\n")
		sections[name] = text
	}
	for kind, data := range eventData {
		text, ok := sections[string(kind)]
		if !ok {
			t.Errorf("docs/reference/run-directory.md has no section %s", kind)
		}
		for _, field := range fieldNames(reflect.TypeOf(data)) {
			if !strings.Contains(text, "`"+field+"`") {
				t.Errorf("docs/reference/run-directory.md does not tell of %s in %s", field, kind)
			}
		}
	}
	if got, want := len(sections)-1, len(eventData); got != want {
		t.Errorf("docs/reference/run-directory.md has %d event types, there are %d", got, want)
	}
	for kind := range folds {
		if _, ok := eventData[kind]; !ok {
			t.Errorf("%s is projected and not known here", kind)
		}
	}
}

// fieldNames are the names in JSON of a struct's fields and of those in its
// lists of structs.
func fieldNames(of reflect.Type) []string {
	var names []string
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		names = append(names, name)
		if inner := field.Type; inner.Kind() == reflect.Slice && inner.Elem().Kind() == reflect.Struct {
			names = append(names, fieldNames(inner.Elem())...)
		}
	}
	return names
}
