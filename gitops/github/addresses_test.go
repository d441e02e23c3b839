package github

import "testing"

func TestServerOf(t *testing.T) {
	for api, want := range map[string]string{
		"https://api.github.com":         "https://github.com",
		"https://ghe.example.com/api/v3": "https://ghe.example.com",
		"https://api.octo.ghe.com":       "https://octo.ghe.com",
	} {
		if got := serverOf(api); got != want {
			t.Errorf("serverOf(%q) = %q, want %q", api, got, want)
		}
	}
}
