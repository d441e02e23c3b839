package egress

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/authority"
	"github.com/agent-ci/agent-ci/policy/sandbox"
)

// trustVariables name the file of a program's trusted certificate authorities. Files of additionalTrustVariables add
// to the program's own authorities.
var (
	trustVariables = []string{
		"SSL_CERT_FILE", // OpenSSL, and with it Python and Ruby; Go; rustls
		"CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE", "BUNDLE_SSL_CA_CERT",
	}
	additionalTrustVariables = []string{
		"NODE_EXTRA_CA_CERTS", // npm, pnpm, Yarn
		"DENO_CERT",
	}
)

// systemBundles lists the files of trusted authorities of Debian and others, Fedora, and Alpine.
// Some programs read them and no variable. javaBundle is Debian's file for Java.
var systemBundles = []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"}

const javaBundle = "/etc/ssl/certs/java/cacerts"

// addTrust makes programs trust the certificates in own (PEM), besides those that they trust already.
func (k *ClientConfig) addTrust(own []byte, variable func(name string) string) error {
	system, err := authority.SystemBundle(variable)
	if err != nil {
		system, err = authority.SystemBundle(func(string) string { return "" })
	}
	if err != nil {
		return err
	}
	for _, name := range slices.Concat(trustVariables, additionalTrustVariables) {
		base, err := authority.ReadBundle(variable(name))
		replacesSystem := slices.Contains(trustVariables, name)
		if err != nil && replacesSystem {
			base = system
		}
		k.Env = append(k.Env, name+"="+k.addBundle(slices.Concat(base, own)))
	}
	for _, place := range systemBundles {
		if base, err := authority.ReadBundle(place); err == nil {
			k.Overrides[place] = slices.Concat(base, own)
		}
	}
	return k.addJavaTrust(slices.Concat(system, own), variable("JAVA_TOOL_OPTIONS"))
}

// addBundle adds a file with certificates and returns its path. Equal bundles share one file.
func (k *ClientConfig) addBundle(bundle []byte) (path string) {
	for i := 0; ; i++ {
		name := "authorities.pem"
		if i > 0 {
			name = fmt.Sprintf("authorities-%d.pem", i)
		}
		if existing, taken := k.files[name]; !taken || string(existing) == string(bundle) {
			return k.addFile(name, bundle)
		}
	}
}

// addJavaTrust makes JVMs trust a bundle and use the proxy, which Java does not read from the usual
// variables. options is the existing value of JAVA_TOOL_OPTIONS.
func (k *ClientConfig) addJavaTrust(bundle []byte, options string) error {
	store, err := authority.JavaStore(bundle)
	if err != nil {
		return err
	}
	file := k.addFile("authorities.p12", store)
	if info, err := os.Stat(javaBundle); err == nil && info.Mode().IsRegular() {
		k.Overrides[javaBundle] = store
	}
	all := []string{javaQuoted("-Djavax.net.ssl.trustStore=" + file), "-Djavax.net.ssl.trustStoreType=PKCS12", "-Djavax.net.ssl.trustStorePassword=changeit"}
	for _, protocol := range []string{"https", "http"} {
		all = append(all, fmt.Sprintf("-D%s.proxyHost=%s", protocol, proxyHost), fmt.Sprintf("-D%s.proxyPort=%d", protocol, sandbox.ProxyPort))
	}
	all = append(all, "-Dhttp.nonProxyHosts="+proxyExceptions)
	if options != "" {
		all = append([]string{options}, all...)
	}
	k.Env = append(k.Env, "JAVA_TOOL_OPTIONS="+strings.Join(all, " "))
	return nil
}

// javaQuoted quotes an option for JAVA_TOOL_OPTIONS if it contains white space or quotes.
func javaQuoted(option string) string {
	if !strings.ContainsAny(option, " \t\n\v\f\r'\"") {
		return option
	}
	return `"` + strings.ReplaceAll(option, `"`, `"'"'"`) + `"`
}
