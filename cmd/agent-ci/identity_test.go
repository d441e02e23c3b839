package main_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/agent-ci/agent-ci/policy/proxy/proxytest"
	"github.com/agent-ci/agent-ci/runner/agent/model/modeltest"
)

var identityCommands = map[string]func(*testscript.TestScript, bool, []string){
	"keyless":   usage("FILE", startKeyless),
	"exchanged": usage("", showExchanged),
	"unlet":     refuseExchange,
}

// The values that a keyless run must keep to itself, beside the job's token.
const (
	mintedKey    = "sk-minted-8c2f51d7a94e4b06"
	requestToken = "request-token-5d1e7b90c3f24a68"
)

// keyless is OpenAI's API and what gives keys for it, under their own names, and the
// service of Actions that gives tokens of jobs.
type keyless struct {
	model atomic.Pointer[modeltest.Server] // that answers

	mu     sync.Mutex
	asked  []string
	refuse []string // for each of the next exchanges: a status and an answer
	drop   int      // how many of the next requests find their key ended
}

// jobToken is a signed JSON Web Token of a job, as far as anybody looks at it here.
func jobToken(audience string) string {
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	claims, _ := json.Marshal(map[string]string{"iss": "https://token.example", "sub": "repo:octo/widgets:ref:refs/heads/main", "aud": audience})
	return part(`{"alg":"RS256"}`) + "." + part(string(claims)) + "." + part("signed-by-nobody-0123456789")
}

// startKeyless has the script's model answer as https://api.openai.com, with keys that
// auth.openai.com gives for the token of a job, and writes down who vouches for both:
// keyless FILE.
func startKeyless(ts *testscript.TestScript, args []string) {
	w := worldOf(ts)
	w.keyless = &keyless{}
	internet := proxytest.Start(w.t, map[string]http.Handler{
		"api.openai.com:443": http.HandlerFunc(func(writer http.ResponseWriter, r *http.Request) {
			if w.keyless.ended() {
				http.Error(writer, `{"error": {"message": "The key has ended.", "code": "invalid_api_key"}}`, http.StatusUnauthorized)
				return
			}
			if r.URL.Path == "/v1/models" {
				w.keyless.note("%s %s %s", r.Method, r.URL.Path, r.Header.Get("Authorization"))
				fmt.Fprint(writer, `{"data": []}`)
				return
			}
			w.keyless.model.Load().Config.Handler.ServeHTTP(writer, r)
		}),
		"auth.openai.com:443": http.HandlerFunc(w.keyless.exchange),
	})
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), internet.Authority, 0o644))
	service := httptest.NewServer(http.HandlerFunc(w.keyless.token))
	ts.Defer(service.Close)
	ts.Setenv("HTTPS_PROXY", internet.Proxy)
	ts.Setenv("SSL_CERT_FILE", ts.MkAbs(args[0]))
	ts.Setenv("OPENAI_BASE_URL", "")
	ts.Setenv("OPENAI_API_KEY", "")
	ts.Setenv("ACTIONS_ID_TOKEN_REQUEST_URL", service.URL+"/token?api-version=2.0")
	ts.Setenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", requestToken)
}

func (k *keyless) note(format string, args ...any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked = append(k.asked, fmt.Sprintf(format, args...))
}

func (k *keyless) ended() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drop--
	return k.drop >= 0
}

// token gives the token of the job, as the service of Actions does.
func (k *keyless) token(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+requestToken {
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	query := r.URL.Query()
	k.note("token: %s, audience %s", query.Get("api-version"), query.Get("audience"))
	_ = json.NewEncoder(w).Encode(map[string]string{"value": jobToken(query.Get("audience"))})
}

// exchange gives a key, as https://auth.openai.com does (RFC 8693).
func (k *keyless) exchange(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	var body map[string]string
	_ = json.Unmarshal(raw, &body)
	aud := "none"
	for _, known := range []string{"https://api.openai.com/v1", "another"} {
		if body["subject_token"] == jobToken(known) {
			aud = known
		}
	}
	k.note("exchange: %s %s %s, provider %s, account %s, token for %s, %s", r.Method, r.Host, r.URL.Path, body["identity_provider_id"], body["service_account_id"], aud,
		strings.TrimPrefix(body["subject_token_type"], "urn:ietf:params:oauth:token-type:"))
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.refuse) > 0 {
		answer := k.refuse[0]
		k.refuse = k.refuse[1:]
		var status int
		fmt.Sscan(answer, &status)
		w.WriteHeader(status)
		fmt.Fprint(w, answer[strings.IndexByte(answer, ' ')+1:])
		return
	}
	fmt.Fprintf(w, `{"access_token": %q, "issued_token_type": "urn:ietf:params:oauth:token-type:access_token", "token_type": "Bearer", "expires_in": 3600}`, mintedKey)
}

// refuseExchange has the next exchanges be refused, or the next requests find that
// their key has ended: unlet STATUS ANSWER [TIMES]; unlet key TIMES.
func refuseExchange(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: unlet STATUS ANSWER [TIMES], or unlet key TIMES")
	}
	k := worldOf(ts).keyless
	k.mu.Lock()
	defer k.mu.Unlock()
	times := 1
	if last := args[len(args)-1]; len(args) > 2 || args[0] == "key" {
		_, err := fmt.Sscan(last, &times)
		ts.Check(err)
	}
	if args[0] == "key" {
		k.drop = times
		return
	}
	k.refuse = slices.Repeat([]string{args[0] + " " + args[1]}, times)
}

// showExchanged prints what was asked for tokens and keys since the last time: exchanged.
func showExchanged(ts *testscript.TestScript, _ []string) {
	k := worldOf(ts).keyless
	k.mu.Lock()
	defer k.mu.Unlock()
	fmt.Fprintf(ts.Stdout(), "%s\n%d\n", strings.Join(k.asked, "\n"), len(k.asked))
	k.asked = nil
}
