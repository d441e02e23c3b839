package reach

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/policy/must"
)

func TestParseEntry(t *testing.T) {
	for _, test := range []struct{ text, wrong string }{
		{"api.example.com", ""},
		{"API.Example.COM.", ""},
		{"*.example.org", ""},
		{"*.example.org:8443", ""},
		{"xn--bcher-kva.example", ""},
		{"intranet", ""},
		{"93.184.216.34", ""},
		{"93.184.216.34:8080", ""},
		{"[2606:2800:220:1::1]", ""},
		{"[2606:2800:220:1::1]:443", ""},
		{"2606:2800:220:1::1", ""},
		{"", "has no host"},
		{"*", "network: full"},
		{"**.example.org", "wildcard at its beginning"},
		{"a.*.example.org", "wildcard at its beginning"},
		{"*example.org", "wildcard at its beginning"},
		{"*.org", "whole top-level domain"},
		{"*.93.184.216.34", "wildcard before an address"},
		{"https://example.org", "must be a host alone, as in api.example.com"},
		{"http://example.org:8080/path", "must be a host alone"},
		{"example.org/path", "without scheme"},
		{"user@example.org", "without scheme"},
		{"bücher.example", "ASCII form"},
		{"example.org:", "no port after its colon"},
		{"example.org:0", "no port after its colon"},
		{"example.org:080", "no port after its colon"},
		{"example.org:65536", "no port after its colon"},
		{"example..org", "is no host"},
		{"-a.example.org", "is no host"},
		{strings.Repeat("a", 64) + ".org", "is no host"},
		{strings.Repeat("a.", 130) + "org", "too long"},
		{"2130706433", "ends in a number"},
		{"0x7f000001", "ends in a number"},
		{"127.1", "ends in a number"},
		{"0177.0.0.1", "ends in a number"},
		{"example.0x7f", "ends in a number"},
		{"[fe80::1%25eth0]", "with a zone"},
		{"fe80::1%eth0", "with a zone"},
		{"[::ffff:8.8.8.8]", "inside an IPv6"},
		{"[example.org]", "brackets"},
		{"[2606::1]x", "brackets"},
		{"127.0.0.1", "is a loopback address, which no list opens"},
		{"10.0.0.5:8080", "is a private address; one that commands are to reach is written as {host: …, private: true}"},
		{"[fd12:3456::1]:443", "is a private address"},
		{"fd00:ec2::254", "is an address of a cloud's own service, which no list opens"},
		{"64:ff9b::a00:1", "is a private address, which no list opens"},
		{"169.254.169.254", "is a link-local address"},
		{"[::1]:443", "is a loopback address"},
		{"localhost", "is this machine"},
		{"*.svc.localhost", "is this machine"},
		{"LocalHost.LocalDomain.", "is this machine"},
		{"ip6-loopback:8080", "is this machine"},
		{"metadata", "is the metadata service of a cloud, which no list opens"},
		{"Metadata.Google.Internal.", "is the metadata service of a cloud"},
		{"instance-data.ec2.internal:80", "is the metadata service of a cloud"},
		{"*.google.internal", ""},
	} {
		t.Run(test.text, func(t *testing.T) {
			_, err := ParseEntry(test.text)
			isWrong(t, test.wrong, err)
		})
	}
}

func TestParsePrivate(t *testing.T) {
	for _, test := range []struct{ text, wrong string }{
		{"db.corp.example", ""},
		{"db.corp.example:5432", ""},
		{"intranet", ""},
		{"10.0.0.5", ""},
		{"172.31.255.255:8443", ""},
		{"192.168.1.1", ""},
		{"[fd12:3456::1]:443", ""},
		{"fd12:3456::1", ""},
		{"*.corp.example", "has a wildcard, which private: true does not go with"},
		{"*", "network: full"},
		{"93.184.216.34", "is a public address; leave private out"},
		{"2606:2800:220:1::1", "is a public address"},
		{"127.0.0.1", "is a loopback address, which no list opens"},
		{"[::1]:443", "is a loopback address"},
		{"169.254.169.254", "is a link-local address"},
		{"fe80::1", "is a link-local address"},
		{"fd00:ec2::254", "is an address of a cloud's own service"},
		{"168.63.129.16", "is an address of a cloud's own service"},
		{"100.100.100.200", "is an address of a provider's own network"},
		{"64:ff9b::a00:1", "is a private address, which no list opens"},
		{"::ffff:10.0.0.1", "inside an IPv6"},
		{"0.0.0.0", "is an unspecified address"},
		{"224.0.0.1", "is a multicast address"},
		{"localhost", "is this machine"},
		{"metadata.google.internal", "is the metadata service of a cloud"},
		{"https://db.corp.example", "must be a host alone"},
		{"", "has no host"},
	} {
		t.Run(test.text, func(t *testing.T) {
			e, err := ParsePrivate(test.text)
			isWrong(t, test.wrong, err)
			if err == nil && (!e.Private() || e.Host() != test.text || e.String() != test.text+" (private)") {
				t.Errorf("it is %q, %q, private %t", e, e.Host(), e.Private())
			}
		})
	}
}

func TestPrivate(t *testing.T) {
	for _, address := range []string{"10.0.0.1", "172.16.0.1", "192.168.255.255", "fd12:3456::1", "fc00::1", "::ffff:10.0.0.1"} {
		must.Same(t, true, IsPrivate(netip.MustParseAddr(address)), address, "is not private")
	}
	for _, address := range []string{
		"127.0.0.1", "::1", "::ffff:127.0.0.1", "169.254.169.254", "169.254.0.1", "fe80::1", "fd00:ec2::254", "fd20:ce::254", "fd00:42::42", "fd00:c1::a9fe:a9fe", "fd00:a9fe:a9fe::1", "168.63.129.16",
		"100.64.0.1", "192.0.0.192", "0.0.0.0", "::", "224.0.0.1", "255.255.255.255", "64:ff9b::a00:1", "64:ff9b::a9fe:a9fe", "2002:a00:1::", "8.8.8.8", "172.32.0.1", "2606:4700::1", "192.0.2.1",
	} {
		must.Same(t, false, IsPrivate(netip.MustParseAddr(address)), address, "is private")
	}
	must.Same(t, false, IsPrivate(netip.Addr{}), "no address is private")
}

// An entry that says private counts before one that does not, wherever it stands; names
// that no list opens stay closed below a wildcard.
func TestPrefersPrivateEntry(t *testing.T) {
	list := must.Get(ParseList([]string{"*.corp.example", "db.corp.example", "*.google.internal", "*.ec2.internal:80"}))(t)
	private := must.Get(ParsePrivate("db.corp.example"))(t)
	list = append(list, private)
	for _, test := range []struct{ authority, want string }{
		{"db.corp.example:443", "db.corp.example (private)"},
		{"www.corp.example:443", "*.corp.example"},
		{"api.google.internal:443", "*.google.internal"},
		{"metadata.google.internal:443", ""},
		{"instance-data.ec2.internal:80", ""},
	} {
		target := must.Get(ParseTarget(HTTPS, test.authority))(t)
		if e, _ := list.EntryFor(target); e.String() != test.want {
			t.Errorf("%s is opened by %q", test.authority, e)
		}
	}
}

// isWrong reports an error that lacks part, or any error if part is "".
func isWrong(t *testing.T, part string, err error) {
	t.Helper()
	if part == "" {
		must.Do(t, err)
		return
	}
	must.Fail(t, part, err)
}

func TestAllowsTargets(t *testing.T) {
	list := must.Get(ParseList([]string{"Api.Example.com.", "*.example.org", "db.example.net:8443", "*.pages.example.net:80", "93.184.216.34", "[2606:2800:220:1::1]:8443"}))(t)
	for _, test := range []struct{ protocol, authority, want string }{
		{HTTPS, "api.example.com:443", "Api.Example.com."},
		{HTTPS, "API.EXAMPLE.COM.:443", "Api.Example.com."},
		{HTTP, "api.example.com", "Api.Example.com."},
		{HTTP, "api.example.com:80", "Api.Example.com."},
		{HTTPS, "api.example.com:80", ""},
		{HTTP, "api.example.com:443", ""},
		{HTTPS, "api.example.com:22", ""},
		{HTTPS, "xapi.example.com:443", ""},
		{HTTPS, "x.api.example.com:443", ""},
		{HTTPS, "api.example.com.evil.example:443", ""},
		{HTTPS, "a.example.org:443", "*.example.org"},
		{HTTPS, "a.b.example.org:443", "*.example.org"},
		{HTTPS, "example.org:443", ""},
		{HTTPS, "xexample.org:443", ""},
		{HTTPS, "db.example.net:8443", "db.example.net:8443"},
		{HTTP, "db.example.net:8443", "db.example.net:8443"},
		{HTTPS, "db.example.net:443", ""},
		{HTTPS, "a.pages.example.net:80", "*.pages.example.net:80"},
		{HTTPS, "a.pages.example.net:443", ""},
		{HTTPS, "93.184.216.34:443", "93.184.216.34"},
		{HTTPS, "93.184.216.35:443", ""},
		{HTTPS, "[2606:2800:220:1:0::1]:8443", "[2606:2800:220:1::1]:8443"},
		{HTTPS, "[2606:2800:220:1::1]:443", ""},
	} {
		t.Run(test.protocol+" "+test.authority, func(t *testing.T) {
			target := must.Get(ParseTarget(test.protocol, test.authority))(t)
			e, ok := list.EntryFor(target)
			if e.String() != test.want || ok != (test.want != "") {
				t.Errorf("opened by %q", e)
			}
		})
	}
}

func TestParseTargetRefuses(t *testing.T) {
	for _, test := range []struct{ protocol, authority string }{
		{HTTPS, "api.example.com"},
		{HTTPS, ""},
		{HTTP, ""},
		{HTTPS, "2130706433:443"},
		{HTTPS, "0x7f.0.0.1:443"},
		{HTTPS, "127.1:443"},
		{HTTPS, "[::ffff:127.0.0.1]:443"},
		{HTTPS, "[fe80::1%eth0]:443"},
		{HTTPS, "a b:443"},
		{HTTPS, "a\x00.example.com:443"},
		{HTTPS, "api.example.com:https"},
		{HTTPS, "api.example.com:443:443"},
		{HTTPS, "*.example.org:443"},
		{HTTP, "bücher.example"},
	} {
		must.Fail(t, "", must.Err(ParseTarget(test.protocol, test.authority)), test.protocol, test.authority, "is read as")
	}
}

func TestInside(t *testing.T) {
	for addr, want := range map[string]string{
		"8.8.8.8": "", "93.184.216.34": "", "172.15.0.1": "", "172.32.0.1": "", "100.128.0.1": "", "2606:4700::1": "", "2001:4860:4860::8888": "", "64:ff9b::808:808": "",
		"0.0.0.0": "unspecified", "0.1.2.3": "unspecified", "::": "unspecified", "10.1.2.3": "private", "172.16.0.1": "private", "172.31.255.255": "private", "192.168.1.1": "private",
		"fd00:ec2::254": "cloud", "fd20:ce::254": "cloud", "fd00:42::42": "cloud", "fd00:42::43": "private", "100.64.0.1": "provider", "100.100.100.200": "provider", "127.0.0.1": "loopback", "127.255.0.1": "loopback", "::1": "loopback",
		"169.254.169.254": "link-local", "fe80::1": "link-local", "fec0::1": "link-local", "168.63.129.16": "cloud", "192.0.0.192": "protocol", "192.88.99.1": "protocol",
		"2001:0:4136:e378:8000:63bf:3fff:fdd2": "protocol", "192.0.2.1": "documentation", "198.18.0.1": "documentation", "203.0.113.9": "documentation", "2001:db8::1": "documentation", "3fff::1": "documentation",
		"224.0.0.1": "multicast", "239.1.1.1": "multicast", "ff02::1": "multicast", "240.0.0.1": "reserved", "255.255.255.255": "reserved",
		"::ffff:127.0.0.1": "loopback", "::ffff:8.8.8.8": "", "64:ff9b::7f00:1": "loopback", "64:ff9b::a9fe:a9fe": "link-local", "64:ff9b:1::808:808": "reserved",
		"2002:7f00:1::1": "holds an IPv4", "::127.0.0.1": "reserved", "4000::1": "reserved", "100::1": "reserved", "5f00::1": "reserved",
	} {
		if got := DescribeNonPublic(netip.MustParseAddr(addr)); !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%s is %q, want %q", addr, got, want)
		}
	}
}

// What is read as a target is written as one that is read the same.
func FuzzParseTarget(f *testing.F) {
	for _, seed := range []string{"api.example.com:443", "[2606::1]:8443", "2606::1", "127.1:1", "A.:80", "[::1]", "::ffff:1.2.3.4"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, authority string) {
		target, err := ParseTarget(HTTP, authority)
		if err != nil {
			return
		}
		again, err := ParseTarget(HTTP, target.String())
		if err != nil || again != target {
			t.Errorf("%q is %+v, which is written %q and read as %+v, %v", authority, target, target, again, err)
		}
		must.Same(t, false, strings.ContainsAny(target.String(), " \r\n\t\x00/@%"), authority, "is written", target)
	})
}
