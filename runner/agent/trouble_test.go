package agent_test

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agent-ci/agent-ci/policy/must"
	"github.com/agent-ci/agent-ci/runner/agent"
	"github.com/agent-ci/agent-ci/runner/agent/model"
	"github.com/agent-ci/agent-ci/runner/agent/model/modeltest"
	"github.com/agent-ci/agent-ci/runner/agent/model/responses"
	"github.com/agent-ci/agent-ci/runner/record/outcome/outcometest"
	"github.com/agent-ci/agent-ci/runner/record/price"
	"github.com/agent-ci/agent-ci/runner/record/transcript"
)

// threeTurns has a first, a middle and a last turn.
const threeTurns = `
version: 1
turns:
  - output:
      - item: {type: reasoning, id: rs_1, summary: [], encrypted_content: opaque}
      - {call: read_file, id: one, arguments: {path: a}}
  - output: [{say: Half way.}, {call: read_file, id: two, arguments: {path: b}}]
  - output: [{say: Done.}]
`

// talk is a conversation with a server, over HTTP.
func talk(t *testing.T, session string, o modeltest.Options) (fixture, *modeltest.Server) {
	t.Helper()
	server := must.Get(modeltest.StartScript("session.yml", strings.NewReader(session), o))(t)
	t.Cleanup(server.Close)
	api := must.Get(responses.New(model.Endpoint{BaseURL: server.BaseURL(), IdleLimit: time.Hour}))(t)
	f := converse(t, "version: 1\nturns: [{output: []}]\n")
	f.Model = &model.Retrying{Next: api, FirstPause: time.Microsecond}
	f.mustTell(t, "The task.")
	f.Begin()
	return f, server
}

func noFaults(t *testing.T, server *modeltest.Server) {
	t.Helper()
	must.None(t, server.Faults(), "the server found")
}

func answer(status int, header, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if name, value, ok := strings.Cut(header, ": "); ok {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

func stream(events string) http.HandlerFunc {
	return answer(200, "Content-Type: text/event-stream", events)
}

func failed(code, message string) http.HandlerFunc {
	return stream(fmt.Sprintf("data: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":%q,\"message\":%q},"+
		"\"usage\":{\"input_tokens\":7,\"output_tokens\":3}}}\n\n", code, message))
}

// passing are failures after which the same request succeeds, by their kinds.
var passing = map[model.Kind]map[string]http.HandlerFunc{
	model.ServerError: {
		"408": answer(408, "", "{}"), "409": answer(409, "", "{}"), "500": answer(500, "", "<html>"), "503": answer(503, "", "{}"),
		"502": answer(502, "", `{"error":"bad gateway"}`), "504": answer(504, "", ""), "529": answer(529, "", `{"error":{"code":529,"message":"overloaded"}}`),
		"response failed":              failed("server_error", "boom"),
		"response failed by overload":  failed("server_is_overloaded", "busy"),
		"response failed with no word": stream("data: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\"}}\n\n"),
		"a status that is a code":      stream("data: {\"error\":{\"code\":502,\"message\":\"upstream\"}}\n\n"),
		"error event":                  stream("data: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"x\"}\n\n"),
	},
	model.RateLimited: {
		"429":                             answer(429, "Retry-After-Ms: 1", "{}"),
		"429 that says when":              answer(429, "", `{"error":{"message":"Rate limit reached. Please try again in 2ms.","code":"rate_limit_exceeded"}}`),
		"response failed by a rate limit": failed("rate_limit_exceeded", "Please try again in 1ms."),
	},
	model.Unreachable: {
		"connection reset": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"a page to log in": answer(200, "Content-Type: text/html; charset=utf-8", "<html>Please log in"),
	},
	model.StreamCut: {
		"stream is empty":       stream(""),
		"stream ends early":     stream("data: {\"type\":\"response.created\"}\n\n"),
		"response is cancelled": answer(200, "", `{"status":"cancelled","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Do"}]}]}`),
		"cancelled, and empty":  answer(200, "", `{"status":"cancelled"}`),
		"connection broken": func(w http.ResponseWriter, r *http.Request) {
			stream("data: {\"type\":\"response.created\"}\n\n")(w, r)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		},
	},
	model.Incomplete: {
		"response is incomplete": stream("data: {\"type\":\"response.incomplete\",\"response\":{\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"max_output_tokens\"}}}\n\n"),
	},
}

func TestRetriesTemporaryFailureAtEachTurn(t *testing.T) {
	t.Parallel()
	for kind, handlers := range passing {
		for name, handler := range handlers {
			for turn := 1; turn <= 3; turn++ {
				t.Run(fmt.Sprintf("%s at turn %d", name, turn), func(t *testing.T) {
					f, server := talk(t, threeTurns, modeltest.Options{})
					server.Replace(turn, handler)
					var kinds []model.Kind
					f.Model.(*model.Retrying).Report = func(f *model.Failure, _ time.Duration) error {
						kinds = append(kinds, f.Kind)
						return nil
					}
					f.mustSay(t, "Done.")
					f.wholeAndOnce(t, server)
					if requests := server.Requests(); len(requests) != 4 || string(requests[turn-1].Body) != string(requests[turn].Body) {
						t.Errorf("the request was not sent again as it was; there were %d", len(requests))
					}
					must.Same(t, []model.Kind{kind}, kinds, "failures")
				})
			}
		}
	}
}

// wholeAndOnce checks that every request was right and each call ran once.
func (f fixture) wholeAndOnce(t *testing.T, server *modeltest.Server) {
	t.Helper()
	noFaults(t, server)
	var ids []string
	for _, call := range f.box.asked {
		ids = append(ids, call.ID)
	}
	must.Same(t, []string{"one", "two"}, ids, "calls")
}

func TestSurvivesStreamCutAtAnyEvent(t *testing.T) {
	t.Parallel()
	for turn := 1; turn <= 3; turn++ {
		for events := 1; ; events++ {
			f, server := talk(t, threeTurns, modeltest.Options{})
			server.Cut(turn, events)
			if said, err := f.Run(t.Context()); err != nil || said != "Done." {
				t.Fatalf("turn %d cut after %d events: Run = %q, %v", turn, events, said, err)
			}
			f.wholeAndOnce(t, server)
			if len(server.Requests()) == 3 { // nothing was cut: the answer has no more events
				if events < 4 {
					t.Fatalf("turn %d was never cut", turn)
				}
				break
			}
		}
	}
}

// lasting are failures that end a run at once, with their reason.
var lasting = map[string]struct {
	handler http.HandlerFunc
	reason  string
	told    string
}{
	"400":                    {answer(400, "", `{"error":{"message":"bad field"}}`), "invalid_request", "bad field"},
	"401":                    {answer(401, "", `{"error":{"message":"bad key"}}`), "unauthorized", "model.api_key_env"},
	"403":                    {answer(403, "", `{"error":{"message":"no"}}`), "forbidden", "permissions"},
	"404":                    {answer(404, "", `{"error":{"message":"no model"}}`), "not_found", "/responses; check model.name"},
	"quota":                  {answer(429, "", `{"error":{"message":"pay","code":"insufficient_quota"}}`), "quota", "billing"},
	"no money":               {answer(402, "", `{"error":{"message":"Insufficient balance","code":402}}`), "quota", "Insufficient balance"},
	"error is words alone":   {answer(404, "", `{"error":"model x not found"}`), "not_found", "model x not found"},
	"error in no envelope":   {answer(400, "", `{"object":"error","message":"no such field","code":400}`), "invalid_request", "no such field"},
	"error with a detail":    {answer(403, "", `{"detail":"not for you"}`), "forbidden", "not for you"},
	"content filter":         {stream("data: {\"type\":\"response.incomplete\",\"response\":{\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"content_filter\"}}}\n\n"), "refused", "content filter"},
	"policy":                 {failed("bio_policy", "no"), "refused", "reword"},
	"error at the top":       {stream("data: {\"error\":{\"code\":\"insufficient_quota\",\"message\":\"pay\"}}\n\n"), "quota", "pay"},
	"no response":            {answer(200, "", `{"object":"response"}`), "malformed", "the answer is no response"},
	"event is not JSON":      {stream("data: {\"type\": oops}\n\n"), "malformed", "invalid character"},
	"answer is not JSON":     {stream("data: {\"type\":\"response.completed\",\"response\":[]}\n\n"), "malformed", "not what the API describes"},
	"asked to wait too long": {answer(429, "Retry-After: 3600", `{"error":{"message":"later"}}`), "rate_limited", "it asks to wait 1h;"},
}

func TestEndsOnPermanentFailureAtEachTurn(t *testing.T) {
	t.Parallel()
	for name, c := range lasting {
		for turn := 1; turn <= 3; turn++ {
			t.Run(fmt.Sprintf("%s at turn %d", name, turn), func(t *testing.T) {
				f, server := talk(t, threeTurns, modeltest.Options{})
				server.Replace(turn, c.handler)
				outcometest.Want(t, must.Err(f.Run(t.Context())), "model_failed/"+c.reason, c.told)
				if log := f.text(t); name == "event is not JSON" && !strings.Contains(log, `"data":"{\"type\": oops}"`) {
					t.Errorf("the transcript lacks the bytes of the event:\n%s", log)
				}
				must.Same(t, turn, len(server.Requests()))
				types := f.types(t)
				must.Same(t, "model.failure", types[len(types)-1], "the transcript", types)
			})
		}
	}
}

func TestChargesNamedServiceTier(t *testing.T) {
	t.Parallel()
	const answer = `{"status":%q,"service_tier":%s,"usage":{"input_tokens":1000,"input_tokens_details":{"cached_tokens":0,"cache_write_tokens":400},"output_tokens":100},` +
		`"incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done."}]}]}`
	events := map[string]string{"completed": "data: {\"type\":\"response.completed\",\"response\":%s}\n\n", "incomplete": "data: {\"type\":\"response.incomplete\",\"response\":%s}\n\n"}
	list := &price.List{Rates: price.Rates{Input: 1e3, CacheWrite: 2e3, Output: 1e4}, Service: map[string]price.Rates{"flex": {Input: 500, Output: 5e3}}}
	for name, test := range map[string]struct {
		tier, status string
		told         string // in the transcript; empty for nothing
		cost         float64
		warned       []string
	}{
		"none":                  {`null`, "completed", "", 2.4, nil},
		"default":               {`"default"`, "completed", "default", 2.4, nil},
		"flex":                  {`"flex"`, "completed", "flex", 1, nil},
		"one without price":     {`"priority"`, "completed", "priority", 2.4, []string{"tier_price"}},
		"no name":               {`{"a":1}`, "completed", "", 2.4, nil},
		"a name that is not":    {`"` + strings.Repeat("x", 100) + `"`, "completed", "", 2.4, nil},
		"an answer that failed": {`"flex"`, "incomplete", "flex", 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f, server := talk(t, threeTurns, modeltest.Options{})
			f.Model.(*model.Retrying).Attempts = 1
			server.Replace(1, stream(fmt.Sprintf(events[test.status], fmt.Sprintf(answer, test.status, test.tier))))
			var warned []string
			f.UseModel(agent.ModelOptions{Price: list})
			f.Warn = func(code, _ string, _ ...any) { warned = append(warned, code) }
			_, err := f.Run(t.Context())
			must.Same(t, test.status == "incomplete", err != nil, "it failed", err)
			if cost, known := transcript.CostOf(f.Spent().Models); !known || math.Abs(cost-test.cost) > 1e-9 {
				t.Errorf("costs %v, %t", cost, known)
			}
			must.Same(t, test.warned, warned, "warnings")
			log := f.text(t)
			if told := strings.Contains(log, `"service_tier":`); told != (test.told != "") || told && !strings.Contains(log, `"cache_write":400,"output":100,"reasoning":0,"service_tier":"`+test.told+`"}`) {
				t.Errorf("the transcript has another tier:\n%s", log)
			}
		})
	}
}

// The request of this conversation has 231 bytes, the answer 86.
func TestEstimatesImpossibleUsage(t *testing.T) {
	t.Parallel()
	estimated := model.Usage{Input: 58, Output: 22}
	for name, c := range map[string]struct {
		usage string
		want  model.Usage
		warns bool
	}{
		"told":             {`{"input_tokens":7,"output_tokens":3}`, model.Usage{Input: 7, Output: 3}, false},
		"null":             {`null`, estimated, true},
		"nothing of it":    {`{}`, estimated, true},
		"zeros":            {`{"input_tokens":0,"output_tokens":0}`, estimated, true},
		"negative":         {`{"input_tokens":-1000000,"output_tokens":-5}`, estimated, true},
		"one is negative":  {`{"input_tokens":7,"output_tokens":-1000000}`, model.Usage{Input: 7, Output: 22}, true},
		"huge":             {`{"input_tokens":9223372036854775807,"output_tokens":9223372036854775807}`, estimated, true},
		"beyond 64 bits":   {`{"input_tokens":1e300,"output_tokens":1e30}`, estimated, true},
		"a part of one":    {`{"input_tokens":7.5,"output_tokens":3}`, model.Usage{Input: 58, Output: 3}, true},
		"as a float":       {`{"input_tokens":7.0,"output_tokens":3e0}`, model.Usage{Input: 7, Output: 3}, false},
		"words":            {`{"input_tokens":"NaN","output_tokens":"Infinity"}`, estimated, true},
		"no object":        {`"many"`, estimated, true},
		"details missing":  {`{"input_tokens":7,"input_tokens_details":null,"output_tokens":3}`, model.Usage{Input: 7, Output: 3}, false},
		"cached beside it": {`{"input_tokens":7,"input_tokens_details":{"cached_tokens":100},"output_tokens":3}`, model.Usage{Input: 107, Cached: 100, Output: 3}, false},
		"cached negative":  {`{"input_tokens":7,"input_tokens_details":{"cached_tokens":-900},"output_tokens":3}`, model.Usage{Input: 7, Output: 3}, false},
		"cache writes":     {`{"input_tokens":90,"input_tokens_details":{"cached_tokens":20,"cache_write_tokens":60},"output_tokens":3}`, model.Usage{Input: 90, Cached: 20, CacheWrite: 60, Output: 3}, false},
		"writes beside it": {`{"input_tokens":7,"input_tokens_details":{"cached_tokens":5,"cache_write_tokens":60},"output_tokens":3}`, model.Usage{Input: 72, Cached: 5, CacheWrite: 60, Output: 3}, false},
		"writes negative":  {`{"input_tokens":7,"input_tokens_details":{"cache_write_tokens":-60},"output_tokens":3}`, model.Usage{Input: 7, Output: 3}, false},
		"too many in all":  {`{"input_tokens":90,"input_tokens_details":{"cached_tokens":80,"cache_write_tokens":80},"output_tokens":3}`, model.Usage{Input: 90, Cached: 80, CacheWrite: 10, Output: 3}, false},
		"reasoned apart":   {`{"input_tokens":7,"output_tokens":3,"output_tokens_details":{"reasoning_tokens":9}}`, model.Usage{Input: 7, Output: 12, Reasoning: 9}, false},
	} {
		t.Run(name, func(t *testing.T) {
			f, server := talk(t, threeTurns, modeltest.Options{})
			server.Replace(1, stream(fmt.Sprintf("data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":"+
				"[{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"Done.\"}]}],\"usage\":%s}}\n\n", c.usage)))
			var warned []string
			f.Warn = func(code, _ string, _ ...any) { warned = append(warned, code) }
			f.mustRun(t)
			must.Same(t, c.want, f.Spent().Usage, "of a request", len(server.Requests()[0].Body))
			if warns := len(warned) == 1 && warned[0] == "no_usage"; warns != c.warns || !warns && len(warned) > 0 {
				t.Errorf("warned of %q", warned)
			}
		})
	}
}

func TestLimitsHoldDespiteFalseUsage(t *testing.T) {
	t.Parallel()
	for name, usage := range map[string]string{"nothing": `null`, "huge": `{"input_tokens":9e18,"output_tokens":9e18}`} {
		for reason, limits := range map[string]agent.Limits{"tokens": {Tokens: 600}, "cost": {CostUSD: 0.0006}} {
			t.Run(name+" "+reason, func(t *testing.T) {
				f, server := talk(t, threeTurns, modeltest.Options{})
				f.Limits = limits
				f.UseModel(agent.ModelOptions{Price: &price.List{Rates: price.Rates{Input: 1, Output: 1}}})
				for n := 1; n <= 20; n++ {
					server.Replace(n, stream(fmt.Sprintf("data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r%d\",\"status\":\"completed\",\"output\":"+
						"[{\"type\":\"function_call\",\"id\":\"f%d\",\"call_id\":\"c%d\",\"status\":\"completed\",\"name\":\"read_file\",\"arguments\":\"{\\\"n\\\":%d}\"}],\"usage\":%s}}\n\n", n, n, n, n, usage)))
				}
				outcometest.Want(t, must.Err(f.Run(t.Context())), "budget_exceeded/"+reason)
			})
		}
	}
}

func TestCountsTokensOfFailedAnswers(t *testing.T) {
	t.Parallel()
	f, server := talk(t, threeTurns, modeltest.Options{})
	for n := 1; n <= 2; n++ {
		server.Replace(n, failed("server_error", "boom"))
	}
	f.Model.(*model.Retrying).Attempts = 2
	f.Model.(*model.Retrying).Report = f.RecordRetried
	must.Fail(t, "after 2 attempts", must.Err(f.Run(t.Context())), "Run ended in")
	must.Same(t, 20, f.Spent().Usage.Total())
}

// TestEndsSilentAnswer has a server fall silent in the second answer, before or after a finished call.
func TestEndsSilentAnswer(t *testing.T) {
	t.Parallel()
	for session, c := range map[string]struct {
		text     string
		requests int
	}{
		threeTurns: {": still here", 4},
		"version: 1\nturns:\n  - output: [{call: read_file, id: one, arguments: {path: a}}]\n  - output: [{say: Done.}]\n": {`data: {"type":"response.output_item.done","item":{"type":"function_call","id":"fc","call_id":"two","name":"read_file","arguments":"{}","status":"completed"}}`, 3},
	} {
		for limit := 50 * time.Millisecond; ; limit *= 2 {
			f, server := talk(t, session, modeltest.Options{})
			api := must.Get(responses.New(model.Endpoint{BaseURL: server.BaseURL(), IdleLimit: limit}))(t)
			f.Model = &model.Retrying{Next: api, FirstPause: time.Microsecond, Attempts: 1000}
			server.Replace(2, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				fmt.Fprint(w, c.text+"\n\n")
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			})
			said, err := f.Run(t.Context())
			if len(server.Requests()) != c.requests && limit < time.Minute { // a busy machine had no time for other answers
				continue
			}
			must.Same(t, c.requests, len(server.Requests()), "requests")
			must.Do(t, err)
			must.Same(t, "Done.", said)
			f.wholeAndOnce(t, server)
			break
		}
	}
}

// TestRecordsWaitInWords has the time to wait in the words of an error alone. Azure:
// https://github.com/icereed/paperless-gpt/issues/814
func TestRecordsWaitInWords(t *testing.T) {
	t.Parallel()
	for _, wire := range wires {
		f, _ := oddly(t, wire, answer(429, "", `{"error":{"code":"429","message":"Please retry after 3 milliseconds."}}`), saying(wire, "Done."))
		f.mustSay(t, "Done.")
		must.Contain(t, f.text(t), `"wait_seconds":0.003`)
	}
}

func TestReadsAnswersInOnePiece(t *testing.T) {
	t.Parallel()
	f, server := talk(t, threeTurns, modeltest.Options{})
	f.Settings.NoStream, f.Settings.Effort, f.Settings.Summary = true, "xhigh", "auto"
	f.Settings.ServiceTier, f.Settings.MaxOutputTokens, f.Settings.SerialCalls = "flex", 5000, true
	f.mustSay(t, "Done.")
	f.wholeAndOnce(t, server)
	body := string(server.Requests()[0].Body)
	must.Contain(t, body,
		`"stream":false`, `"reasoning":{"effort":"xhigh","summary":"auto"}`, `"service_tier":"flex"`, `"max_output_tokens":5000`, `"parallel_tool_calls":false`,
	)
	for _, next := range server.Requests()[1:] { // what the provider has cached
		must.Same(t, true, strings.HasPrefix(string(next.Body), strings.TrimSuffix(body, "]}")), "the request does not begin with the bytes of the one before", body, next.Body)
		body = string(next.Body)
	}
}

func TestAdaptsToEndpointWithoutStreams(t *testing.T) {
	t.Parallel()
	f, server := talk(t, strings.Replace(threeTurns, "  - output: [{say: Done.}]\n", "", 1), modeltest.Options{})
	server.Replace(3, answer(200, "Content-Type: application/json", `{"id":"r","status":"completed","usage":{"input_tokens":7},`+
		`"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Done at once."}]}]}`))
	if said, err := f.Run(t.Context()); err != nil || said != "Done at once." || f.Spent().Usage.Input < 7 {
		t.Errorf("Run = %q, %v, with %+v", said, err, f.Spent().Usage)
	}
	f.wholeAndOnce(t, server)
}

func TestReportsScarceBudgets(t *testing.T) {
	t.Parallel()
	calls := strings.Repeat("  - output: [{call: read_file, arguments: {}}]\n    usage: {input: 10}\n", 20)
	for name, c := range map[string]struct {
		limits  agent.Limits
		turns   int // that are taken
		reason  string
		told    string
		warning int // request that is the first to have told
	}{
		"turns":  {agent.Limits{Turns: 10}, 10, "turns", "2 turns (limits.turns)", 9},
		"calls":  {agent.Limits{Calls: 20}, 20, "tool_calls", "4 tool calls (limits.tool_calls)", 17},
		"tokens": {agent.Limits{Tokens: 100}, 10, "tokens", "20 tokens (limits.tokens)", 9},
		"cost":   {agent.Limits{CostUSD: 100}, 10, "cost", "20.0000 US dollars (limits.cost_usd)", 9},
	} {
		t.Run(name, func(t *testing.T) {
			f := converse(t, "version: 1\nturns:\n"+calls)
			f.Limits = c.limits
			f.UseModel(agent.ModelOptions{Price: dollarForToken()})
			outcometest.Want(t, must.Err(f.Run(t.Context())), "budget_exceeded/"+c.reason)
			must.Same(t, c.turns, len(f.requests.bodies))
			for i, body := range f.requests.bodies {
				must.Same(t, i+1 >= c.warning, strings.Contains(body, c.told), "request", i+1, "tells", c.told)
			}
		})
	}
}

// TestLastTurnRunsItsCalls is of a last turn that does not end the work.
func TestLastTurnRunsItsCalls(t *testing.T) {
	t.Parallel()
	f := converse(t, "version: 1\nturns:\n  - output: [{call: read_file, arguments: {}}]\n    usage: {input: 96}\n"+
		"  - output: [{say: Nearly.}, {call: read_file, arguments: {}}]\n    usage: {input: 1}\n")
	f.Limits.Tokens = 100
	said, err := f.Run(t.Context())
	if outcometest.Reason(err) != "tokens" || said != "Nearly." || len(f.box.asked) != 2 {
		t.Errorf("Run = %q, %v after %d calls", said, err, len(f.box.asked))
	}
}
