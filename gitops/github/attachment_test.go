package github

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/forge"
	"github.com/agent-ci/agent-ci/policy/must"
)

// web answers requests by their address, and notes which of them had a token.
type web struct {
	answers map[string]string // a body, or "-> ADDRESS"
	asked   []string
}

func (w *web) RoundTrip(req *http.Request) (*http.Response, error) {
	note := req.URL.String()
	if req.Header.Get("Authorization") != "" {
		note += " with " + req.Header.Get("Authorization")
	}
	w.asked = append(w.asked, note)
	answer, found := w.answers[req.URL.String()]
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(answer)), Request: req}
	if to, redirects := strings.CutPrefix(answer, "-> "); redirects {
		resp.StatusCode = http.StatusFound
		resp.Header.Set("Location", to)
	} else if !found {
		resp.StatusCode = http.StatusNotFound
	}
	return resp, nil
}

const asset = "https://github.com/user-attachments/assets/12345678-1234-1234-1234-123456789abc"

func TestSendsAttachmentRequestsToGitHubOnly(t *testing.T) {
	const (
		signed = "https://github-production-user-asset-6210df.s3.amazonaws.com/1/2.png?X-Amz-Signature=a"
		jwt    = "https://private-user-images.githubusercontent.com/1/2.png?jwt=a"
		old    = "https://github.com/Octo/widgets/assets/7/12345678-1234-1234-1234-123456789abc"
		others = "https://github.com/octo/secrets/assets/7/12345678-1234-1234-1234-123456789abc"
		blob   = "https://github.com/octo/widgets/blob/main/a.png"
		raw    = "https://raw.githubusercontent.com/octo/secrets/main/a.png"
	)
	token := " with Bearer t"
	for name, c := range map[string]struct {
		address string
		answers map[string]string
		asked   []string
		want    string // the content, or part of the error
	}{
		"attachment":           {asset, map[string]string{asset: "-> " + signed, signed: "image"}, []string{asset + token, signed}, "image"},
		"private attachment":   {asset, map[string]string{asset: "-> " + jwt, jwt: "image"}, []string{asset + token, jwt}, "image"},
		"asset here":           {old, map[string]string{old: "image"}, []string{old + token}, "image"},
		"asset elsewhere":      {others, map[string]string{others: "image"}, []string{others}, "image"},
		"file's page":          {blob + "#x", map[string]string{blob + "?raw=true": "-> " + raw, raw: "image"}, []string{blob + "?raw=true", raw}, "image"},
		"raw file":             {raw, map[string]string{raw: "image"}, []string{raw}, "image"},
		"not there":            {asset, nil, []string{asset + token}, "github.com answered 404"},
		"too long":             {raw, map[string]string{raw: strings.Repeat("x", forge.MaxAttachment+1)}, []string{raw}, "more than 10 MiB"},
		"longest":              {raw, map[string]string{raw: strings.Repeat("x", forge.MaxAttachment)}, []string{raw}, strings.Repeat("x", forge.MaxAttachment)},
		"elsewhere":            {"https://example.com/a.png", nil, nil, "uploaded to github.com"},
		"looks alike":          {"https://github.com.example.com/user-attachments/assets/a", nil, nil, "only reads images"},
		"a user in it":         {"https://github.com@example.com/user-attachments/assets/a", nil, nil, "only reads images"},
		"user before it":       {"https://x:y@github.com/user-attachments/assets/a", nil, nil, "only reads images"},
		"not encrypted":        {strings.Replace(asset, "https", "http", 1), nil, nil, "only reads images"},
		"another port":         {strings.Replace(asset, "github.com", "github.com:8443", 1), nil, nil, "only reads images"},
		"a page":               {"https://github.com/octo/widgets/settings", nil, nil, "only reads images"},
		"way out of the path":  {"https://github.com/user-attachments/assets/../../octo/raw/../x", nil, nil, "only reads images"},
		"the API":              {"https://api.github.com/user", nil, nil, "only reads images"},
		"another store":        {"https://github-cloud.s3.amazonaws.com/a", nil, nil, "only reads images"},
		"led away":             {asset, map[string]string{asset: "-> https://example.com/a.png"}, []string{asset + token}, "leads away from GitHub, to example.com"},
		"led inside":           {asset, map[string]string{asset: "-> http://169.254.169.254/"}, []string{asset + token}, "leads away"},
		"led to be logged in":  {asset, map[string]string{asset: "-> /login"}, []string{asset + token}, "leads away"},
		"led round in circles": {asset, map[string]string{asset: "-> " + asset}, slicesOf(asset+token, 6), "leads away"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &web{answers: c.answers}
			a := must.Get(newAttachments("https://github.com", "octo/widgets", "t", w))(t)
			got, err := a.fetch(t.Context(), c.address)
			if err == nil && string(got) != c.want || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %.20q, %v, want %.40q", got, err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "https://") {
				t.Errorf("the error holds an address: %v", err)
			}
			must.Same(t, c.asked, w.asked, "requests")
		})
	}
}

func slicesOf(s string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = s
	}
	return all
}

func TestRecognisesEnterpriseAttachmentAddresses(t *testing.T) {
	a := must.Get(newAttachments("https://git.example.com", "octo/widgets", "t", &web{}))(t)
	for address, want := range map[string]bool{
		"https://git.example.com/user-attachments/assets/a-1": true,
		"https://git.example.com/storage/user/7/files/a":      true,
		"https://media.git.example.com/user/7/files/a":        true,
		"https://MEDIA.git.example.com/user/7/files/a":        true,
		"https://evilgit.example.com/user/7":                  false,
		"https://example.com/a":                               false,
		"https://raw.githubusercontent.com/o/r/main/a.png":    false,
	} {
		u := must.Get(url.Parse(address))(t)
		must.Same(t, want, a.isImageURL(u), address)
	}
	for _, server := range []string{"", "git.example.com", "http://git.example.com", "ftp://git.example.com"} {
		must.Fail(t, "", must.Err(newAttachments(server, "o/r", "", nil)), server, "is taken for a server")
	}
}
